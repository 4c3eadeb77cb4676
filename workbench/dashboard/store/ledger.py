"""Decisions as the ledger has them, by the service's functions: the story of one, its verification, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gate.decisions.export import MAX_BYTES, PacketExport, Parts, require_verifiable
from gate.decisions.stored import (
    decision_not_found,
    record_and_facts,
    require_as_made,
    stored_facts,
    stored_record,
    stored_report,
    stored_request,
)
from gate.decisions.verification import verify_decision
from gate.encoding.canonical import content_hash
from gate.errors import ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger.stores.store import read_object
from gate.policy.questions import Reports
from gate.proof.chain import Head
from gate.records.advisory import is_advisory
from gate.records.documents import Record, Report
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from gate.rulebooks.comparison import Comparison, compare
from gate.rulebooks.documents import Annotations, RulebookBody
from gate.rulebooks.explanation import ExplainedRule, explain_rules
from gate.verify import Verification
from gate.verify.dead_keys import dead_key
from workbench.dashboard.store.reviews import ReviewReads, Standing

MOST_REPORTS: Final = 100
"""How many reports of a kind a story shows, the newest."""

MOST_VERSIONS: Final = 1000
"""Among how many versions of a rulebook the one before another is looked for, those registered last."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The reports of one kind about a decision.

    Attributes:
        kind: `execution`, `outcome`, or `crm_sync`.
        reports: The newest of them, newest first.
        faults: Why the page cannot show some of them: the stored bytes were changed.
        more: Whether there are older ones.
    """

    kind: str
    reports: tuple[Report, ...]
    faults: tuple[str, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Story:
    """A decision and all that is known of it.

    Attributes:
        record: Its full record.
        facts: The facts that it was decided over; None where they were erased or are not kept, and of an
            advisory decision.
        request: The request; None where it was erased.
        rulebook: The rulebook that decided; None where it is not in the ledger as it was hashed.
        rules: Every rule of it in the order in which they are tried, explained; empty without a rulebook, and where the
            record's evaluation is none of it.
        annotations: The author's comments on the rulebook, which nothing authenticates.
        executions: Its execution receipts.
        outcomes: Its outcomes.
        crm_syncs: Its CRM syncs.
        erasure: The chain's entry that says what of it was erased, with its position in the chain; None where nothing
            was.
        verification: Whether all of it is as it was made.
        head: The chain's end.
        base_url: Where the service publishes its keys.
        review: Where its review stands; None where it is not held for an owner.
        shut: Why a grant opens nothing, as a key is compromised; None where none is.
    """

    record: Record
    facts: Mapping[str, Any] | None
    request: Mapping[str, Any] | None
    rulebook: RulebookBody | None
    rules: tuple[ExplainedRule, ...]
    annotations: Annotations
    executions: Reported
    outcomes: Reported
    crm_syncs: Reported
    erasure: tuple[int, Mapping[str, Any]] | None
    verification: Verification
    head: Head
    base_url: str
    review: Standing | None
    shut: str | None


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What a version of a rulebook changed.

    Attributes:
        version: The version.
        before: The version that was registered before it; None where it is the first, or where nobody registered it.
        comparison: How they differ; None where there is none before, or a body is not in the ledger as it was hashed.
    """

    version: str
    before: str | None
    comparison: Comparison | None


class LedgerReads:
    """Reads the decisions of an instance's ledger."""

    def __init__(self, instance: Instance, reports: Reports, reviews: ReviewReads) -> None:
        """Takes the instance, what answers the reports that packets hold, and what reads reviews."""
        self._reviews = reviews
        self._instance = instance
        self._ledger = instance.ledger
        self._reports = reports

    def story(self, scope_id: str, decision_id: str) -> Story:
        """A decision and all that is known of it.

        Args:
            scope_id: The scope.
            decision_id: The decision.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: a part cannot be read, or is not as it was made.
        """
        entry = self._ledger.entries.decision(scope_id, decision_id)
        if entry is None:
            raise decision_not_found()
        record = stored_record(entry)
        request = stored_request(self._ledger, scope_id, entry)
        hash_ = str(record.get("policy_hash", ""))
        rulebook = self._rulebook(scope_id, hash_)
        erasures, _ = self._ledger.entries.reports(scope_id, decision_id, "erasure", limit=1, room=MAX_BYTES)
        standing = self._reviews.standing(scope_id, record)
        resolution = None if standing is None or standing.review is None else standing.review["resolution"]
        return Story(
            record,
            None if is_advisory(record) else stored_facts(record, request),
            request,
            rulebook,
            () if rulebook is None else _explained(rulebook, record.get("evaluation")),
            self._ledger.rulebooks.annotations(scope_id, hash_),
            self._reported(scope_id, decision_id, EXECUTIONS),
            self._reported(scope_id, decision_id, OUTCOMES),
            self._reported(scope_id, decision_id, CRM_SYNCS),
            (erasures[0].position, read_object(erasures[0].body, decision_id)) if erasures else None,
            verify_decision(self._ledger, self._instance.trust(), scope_id, decision_id),
            self._ledger.entries.head(scope_id),
            self._instance.settings.base_url,
            standing,
            dead_key(record, resolution, self._instance.receipt_keys.registry()),
        )

    def decided(self, scope_id: str, decision_id: str) -> tuple[Record, Mapping[str, Any] | None]:
        """The record of a decision, and the facts that it was made over; None where they were erased.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            OperatorError: `DECISION_ADVISORY`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read, or is not as it was made.
        """
        return record_and_facts(self._ledger, scope_id, decision_id)

    def holds(self, scope_id: str, decision_id: str) -> bool:
        """Whether the ledger has a decision in a scope.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._ledger.entries.linked_body(scope_id, decision_id) is not None

    def changes(self, scope_id: str, rulebook_id: str, version: str) -> VersionChange:
        """The changes of a rulebook version compared with the version registered before it.

        Args:
            scope_id: The scope.
            rulebook_id: The rulebook.
            version: The version.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        versions = self._ledger.rulebooks.versions(scope_id, rulebook_id, limit=MOST_VERSIONS)
        earlier = versions[versions.index(version) + 1 :] if version in versions else []
        if not earlier:
            return VersionChange(version, None, None)
        old, new = (self._version(scope_id, rulebook_id, name) for name in (earlier[0], version))
        return VersionChange(version, earlier[0], None if old is None or new is None else compare(old, new))

    def rulebook_versions(self, scope_id: str) -> dict[str, list[str]]:
        """The registered versions of each rulebook of a scope, those registered last first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found: dict[str, list[str]] = {}
        for each in self._ledger.rulebooks.listed(scope_id, limit=MOST_VERSIONS):
            found.setdefault(each.rulebook_id, []).append(each.version)
        return found

    def record_file(self, scope_id: str, decision_id: str) -> bytes:
        """The full record of a decision, as JSON.

        Raises:
            NotFound, ServiceUnavailable: As `story`.
        """
        entry = self._ledger.entries.decision(scope_id, decision_id)
        if entry is None:
            raise decision_not_found()
        record = stored_record(entry)
        require_as_made(record, f"the record of {decision_id}")
        return orjson.dumps(record)

    def packet_file(self, scope_id: str, decision_id: str) -> bytes:
        """The packet of a decision without its input, as JSON; it verifies offline.

        Raises:
            NotFound, RequestRefused, ServiceUnavailable: As `PacketExport.packet`.
        """
        instance = self._instance
        export = PacketExport(
            self._ledger, instance.gate().signing, instance.trust, self._reports, instance.checkpoints
        )
        packet = orjson.dumps(export.packet(scope_id, decision_id, Parts()))
        require_verifiable(packet)
        return packet

    def _reported(self, scope_id: str, decision_id: str, kind: Kind) -> Reported:
        stored, more = self._ledger.entries.reports(
            scope_id, decision_id, kind.entry_type, limit=MOST_REPORTS, room=MAX_BYTES
        )
        reports: list[Report] = []
        faults: list[str] = []
        for each in stored:
            try:
                reports.append(stored_report(kind, each))
            except ServiceUnavailable as error:
                faults.append(error.message)
        return Reported(kind.name, tuple(reports), tuple(faults), more)

    def _version(self, scope_id: str, rulebook_id: str, version: str) -> RulebookBody | None:
        found = self._ledger.rulebooks.find_version(scope_id, rulebook_id, version)
        return None if found is None else self._rulebook(scope_id, found.hash)

    def _rulebook(self, scope_id: str, hash_: str) -> RulebookBody | None:
        body: RulebookBody | None = self._ledger.rulebooks.body(scope_id, hash_)
        return body if body is not None and content_hash(body) == hash_ else None


def _explained(rulebook: RulebookBody, evaluation: Any) -> tuple[ExplainedRule, ...]:
    """Every rule, those that were not tried as well; none where an evaluation was changed so that it fits no rule."""
    every = explain_rules(rulebook)
    if evaluation is None:
        return tuple(every)
    try:
        tried = {each.rule["rule_id"]: each for each in explain_rules(rulebook, evaluation)}
    except (KeyError, TypeError, AttributeError):
        return ()
    return tuple(tried.get(each.rule["rule_id"], each) for each in every)
