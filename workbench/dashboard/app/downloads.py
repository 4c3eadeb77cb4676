"""Records, packets, keys, and notebooks as files, for users who may see them on a page.

They are made in threads of their own, one at a time for each user: nobody's downloads hold up a page or a sign-in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from gate.errors import AccessForbidden, GateError, NotFound
from gate.policy.questions import CLOCKS, VERDICTS
from workbench.dashboard.app.sign_in import Outside, SignIns, sign_in_url
from workbench.dashboard.store.access import Access, access
from workbench.dashboard.store.slices import Slice
from workbench.dashboard.store.store import Store
from workbench.lake.reader import RECORDED

_MAX_ARGUMENT: Final = 200
_THREADS: Final = 2


class Files:
    """Makes files."""

    def __init__(self) -> None:
        """Makes none yet."""
        self._executor: Final = ThreadPoolExecutor(_THREADS, "download")
        self._users: Final[set[str]] = set()

    def busy(self, user_id: str) -> bool:
        """Whether a file is being made for a user."""
        return user_id in self._users

    async def make(self, user_id: str, make: Callable[[], bytes]) -> bytes:
        """A file for a user. A user can make only one at a time."""
        self._users.add(user_id)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, make)
        finally:
            self._users.discard(user_id)


class Download(Outside):
    """A file of a scope."""

    def initialize(self, sign_ins: SignIns, store: Store, files: Files) -> None:  # type: ignore[override]
        """Takes what makes the files as well."""
        super().initialize(sign_ins, store)
        self.files = files

    async def get(self) -> None:
        """The file, or a page that says why there is none."""
        user = await self.sign_ins.user(self)
        if user is None:
            self.redirect(sign_in_url("/", self.sign_ins.over(self)))
            return
        try:
            who = access(user, self.argument("scope") or None)
            name, content_type, make = self.file(who)
            if self.files.busy(user.user_id):
                self._refuse(429, "Your previous download is not finished. Wait for it, and try again.")
                return
            body = await self.files.make(user.user_id, make)
        except (AccessForbidden, NotFound) as error:
            self._refuse(404, error.message)
            return
        except GateError as error:
            self._refuse(503, error.message)
            return
        self.set_header("Content-Type", content_type)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(body)

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """Its name, its type, and what makes it."""
        raise NotImplementedError

    def argument(self, name: str) -> str:
        """A parameter of the query string; empty where it is missing or too long."""
        value = self.get_query_argument(name, "")
        return value if len(value) <= _MAX_ARGUMENT else ""

    def decisions(self) -> Slice:
        """The decisions that an anomaly is one of; those of a verdict or a clock that there is not are all."""
        verdict, clock = self.argument("verdict"), self.argument("clock")
        return Slice(
            self.argument("version") or None,
            verdict if verdict in VERDICTS else None,
            clock=clock if clock in CLOCKS else RECORDED,
        )

    def _refuse(self, status: int, message: str) -> None:
        self.show("message.html", status, title="No file", message=message, link="/", link_text="Overview")


class RecordDownload(Download):
    """GET /download/record?scope&id: the whole record of a decision."""

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The record as JSON."""
        id_ = self.argument("id")
        return f"{safe(id_)}.json", "application/json", partial(self.store.ledger.record_file, who.scope_id, id_)


class PacketDownload(Download):
    """GET /download/packet?scope&id: the packet of a decision, which verifies offline."""

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The packet as JSON."""
        id_ = self.argument("id")
        return f"{safe(id_)}.packet.json", "application/json", partial(self.store.ledger.packet_file, who.scope_id, id_)


class KeysDownload(Download):
    """GET /download/keys?scope: the public keys that records and packets verify against."""

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The key registry as JSON."""
        return "receipt-keys.json", "application/json", self.store.keys


class NotebookDownload(Download):
    """GET /download/notebook?scope&policy&version&verdict&clock&anomaly: the anomaly notebook, written for a policy."""

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The notebook as Jupyter's JSON."""
        policy, anomaly, of = self.argument("policy"), self.argument("anomaly"), self.decisions()
        name = f"anomalies-{safe(policy)}.ipynb"
        return name, "application/x-ipynb+json", partial(self.store.notebook, who, policy, anomaly, of)


class DryRunDownload(Download):
    """GET /download/dry-run?scope&policy&version&verdict&clock&anomaly: the notebook of going back before it."""

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The notebook as Jupyter's JSON."""
        policy, anomaly, of = self.argument("policy"), self.argument("anomaly"), self.decisions()
        name = f"going-back-{safe(policy)}.ipynb"
        return name, "application/x-ipynb+json", partial(self.store.dry_run, who, policy, anomaly, of)


class ReportDownload(Download):
    """`GET /download/report?scope&id&format`: the report of a migration.

    The format is `html`, `md`, or `json`. The JSON file is the evidence.
    """

    def file(self, who: Access) -> tuple[str, str, Callable[[], bytes]]:
        """The report."""
        migration_id, ending = self.argument("id"), self.argument("format") or "html"
        if ending not in _REPORTS:
            raise NotFound(
                "REPORT_FORMAT_UNKNOWN", f"There is no report as {ending}; choose {', '.join(_REPORTS)} instead."
            )
        name = f"{safe(migration_id)}.{ending}"
        return name, _REPORTS[ending], partial(self.store.migration_report, who, migration_id, ending)


_REPORTS: Final = {"html": "text/html; charset=utf-8", "md": "text/markdown; charset=utf-8", "json": "application/json"}


def safe(name: str) -> str:
    """A name as part of a file's name."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name) or "file"
