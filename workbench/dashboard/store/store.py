"""All that pages ask for, composed over one instance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from gate.decisions.drafts import DraftActs
from gate.decisions.migrations.acts import MigrationActs
from gate.decisions.migrations.reading import Migrations
from gate.encoding.strict_json import JsonObject
from gate.errors import NotFound
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.dismissals import Dismissals
from gate.ledger.drafts.cases import DraftCases
from gate.ledger.drafts.drafts import Drafts
from gate.records.documents import Record
from gate.rulebooks.rulebook import Rulebook
from workbench.analytics import Analytics
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.health import Health, health
from workbench.dashboard.store.histories import Histories
from workbench.dashboard.store.ledger import LedgerReads
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.reports import ReportStore, ScopeReports, unknown_anomaly
from workbench.dashboard.store.reviews import ReviewReads
from workbench.dashboard.store.slices import EVERYTHING, Shown, Slice
from workbench.dashboard.store.snapshots import FRESH_FOR, SCOPES, Snapshots, reading
from workbench.lake.entries import Personal
from workbench.migration.report import as_html, as_markdown
from workbench.notebooks import Notebook, as_ipynb, load, narrowed_to, written_for
from workbench.whatif import decided, registered

_REVISION: Final = re.compile(r"revision ([0-9]{1,4})")


class Store:
    """What pages ask for.

    Attributes:
        ledger: Decisions as the ledger has them.
        dismissals: Anomalies that somebody dismissed.
        histories: Imported past cases.
        drafts: Rulebooks that authors write.
        draft_cases: The cases that they hold them to.
        draft_acts: The acts of authors on drafts.
        migrations: The migrations of scopes, and their routes.
        migration_acts: The acts of authors and approvers on migrations.
        reviews: The reviews of held decisions, and what resolves them.
    """

    def __init__(
        self, instance: Instance, personal: Personal, clock: Callable[[], datetime], *, tells_paths: bool = True
    ) -> None:
        """Composes them.

        Args:
            instance: The instance.
            personal: What its lake leaves out.
            clock: The clock.
            tells_paths: Whether users may know where this machine keeps the lake, since they work on it themselves.
        """
        self._tells_paths: Final = tells_paths
        lake = instance.settings.lake_directory
        self._instance: Final = instance
        self._clock: Final = clock
        self._reports: Final = ReportStore(Snapshots(reading(instance.ledger, lake, personal), clock))
        self._healths: Final = Memo(SCOPES)
        self.reviews: Final = ReviewReads(instance, clock)
        analytics = Analytics(instance.ledger, lake, personal, instance.migrations())
        self.ledger: Final = LedgerReads(instance, analytics, self.reviews)
        self.dismissals: Final[Dismissals] = instance.ledger.dismissals
        self.histories: Final = Histories(instance, personal, clock)
        self.drafts: Final[Drafts] = instance.ledger.drafts
        self.draft_cases: Final[DraftCases] = instance.ledger.draft_cases
        self.draft_acts: Final[DraftActs] = instance.draft_acts(clock)
        self.migrations: Final[Migrations] = instance.migrations()
        self.migration_acts: Final[MigrationActs] = instance.migration_acts(clock)

    def reports(self, access: Access) -> ScopeReports:
        """Answers about the scope of an access.

        Raises:
            ServiceUnavailable: `SVC_REPORT_UNAVAILABLE` or `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._reports.of(access.scope_id)

    def version_figures(self, access: Access, policies: Iterable[str]) -> dict[tuple[str, str], dict[str, Any]]:
        """How each version of some policies did: {decisions, success}, by policy and version; those alone that
        decided something.

        Raises:
            ServiceUnavailable: `SVC_REPORT_UNAVAILABLE` or `SVC_STORAGE_UNAVAILABLE`.
        """
        found = {}
        reports = self.reports(access)
        for policy_id in policies:
            for of in reports.effectiveness(policy_id).body["versions"]:
                found[policy_id, of["policy_version"]] = {"decisions": of["decisions"], "success": of["success_rate"]}
        return found

    def other_text(self, scope: Scope, draft_id: str, base: str) -> str:
        """The text that a draft is compared with: `revision 3`, or a rulebook's id and version.

        Raises:
            NotFound: `DRAFT_REVISION_UNKNOWN` or `RULEBOOK_VERSION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if (revision := _REVISION.fullmatch(base)) is not None:
            return self.drafts.revision(scope.scope_id, draft_id, int(revision[1])).text
        rulebook_id, _, version = base.partition(" ")
        if not version:
            raise NotFound(
                "RULEBOOK_VERSION_UNKNOWN", "Choose a revision, or the ID and version of a rulebook, to compare with."
            )
        return self.draft_acts.registered_text(scope, rulebook_id, version)

    def rulebook_for(self, scope: Scope, policy_id: str, version: str | None) -> Rulebook:
        """A registered rulebook: of the version, or the one that was registered last where None.

        Raises:
            NotFound: `RULEBOOK_VERSION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return registered(self._instance.ledger, self.migrations, scope, policy_id, version)

    def decided(self, scope: Scope, decision_id: str) -> tuple[Record, JsonObject]:
        """The record of a stored decision, and the facts that it was made over.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            OperatorError: `FACTS_ERASED` or `DECISION_ADVISORY`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return decided(self._instance.ledger, scope, decision_id)

    def migration_report(self, access: Access, migration_id: str, ending: str) -> bytes:
        """The report of a migration as a file: `html`, `md`, or `json`. The JSON file is the evidence.

        Raises:
            OperatorError: `MIGRATION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        stored = self.migrations.migration(access, migration_id)
        if ending == "json":
            return orjson.dumps(stored.evidence, option=orjson.OPT_INDENT_2) + b"\n"
        document = self.migrations.document(access, stored)
        return {"html": as_html, "md": as_markdown}[ending](document, stored.evidence).encode()

    @property
    def self_approval(self) -> bool:
        """Whether authors may approve migrations of their own."""
        return self._instance.settings.migration_approval == "author"

    @property
    def instance_address(self) -> dict[str, str]:
        """The settings with which another process opens the instance: `{home, database_url}`."""
        settings = self._instance.settings
        return {"home": str(settings.home), "database_url": settings.database_url}

    def scope(self, access: Access) -> Scope:
        """The scope of an access, as the ledger has it.

        Raises:
            OperatorError: `SCOPE_UNKNOWN`: it is there no more.
        """
        return self._instance.ledger.directory.scope(access.scope)

    def health(self, access: Access) -> Health:
        """The health of ledger, chain, lake, and checkpoints, at most as old as a snapshot."""
        # A thousand links are hashed anew for it.
        looked = self._healths.get(access.scope_id, lambda: self._looked(access.scope_id), still=self._is_fresh)
        return looked[1]

    def _looked(self, scope_id: str) -> tuple[datetime, Health]:
        at = self._clock()
        return at, health(self._instance, scope_id, at)

    def _is_fresh(self, looked: tuple[datetime, Health]) -> bool:
        return self._clock() - looked[0] < FRESH_FOR

    def keys(self) -> bytes:
        """The public keys of receipts, as the service publishes them: what records and packets verify against."""
        return orjson.dumps(self._instance.published_keys("receipt", self._clock()).to_dict())

    def notebook(self, access: Access, policy_id: str, anomaly_id: str, of: Slice = EVERYTHING) -> bytes:
        """The notebook that investigates a policy's anomalies, written for the scope, as Jupyter's JSON.

        Args:
            access: The user and the scope.
            policy_id: The policy.
            anomaly_id: The anomaly that the notebook begins with.
            of: The decisions whose report lists it.

        Raises:
            NotFound: `DASHBOARD_ANOMALY_UNKNOWN`.
            ServiceUnavailable: As `reports`.
        """
        self.reports(access).listed(Shown(policy_id, of, anomaly_id))
        more = {"VERSION": of.policy_version, "ANOMALY": anomaly_id}
        notebook = narrowed_to(load("anomaly_investigation"), of.verdict, of.clock)
        return self._written(notebook, access, policy_id, more)

    def dry_run(self, access: Access, policy_id: str, anomaly_id: str, of: Slice = EVERYTHING) -> bytes:
        """The notebook that dry-runs the version before an anomaly's over the whole past, as Jupyter's JSON.

        Args:
            access: The user and the scope.
            policy_id: The policy.
            anomaly_id: The anomaly, which came with a version.
            of: As `notebook` takes it.

        Raises:
            NotFound: `DASHBOARD_ANOMALY_UNKNOWN`, also where it came with no version that another was before.
            ServiceUnavailable: As `reports`.
        """
        report, at = self.reports(access).listed(Shown(policy_id, of, anomaly_id))
        back = report.going_back(at)
        if back is None:
            raise unknown_anomaly()
        return self._written(load("migration_dry_run"), access, policy_id, {"CANDIDATE": back.before})

    def _written(self, notebook: Notebook, access: Access, policy_id: str, more: Mapping[str, str | None]) -> bytes:
        lake = self._instance.settings.lake_directory.absolute() if self._tells_paths else Path("lake")
        return as_ipynb(written_for(notebook, access.scope, policy_id, lake, more)).encode()
