"""Migrations and routes under audit: each entry, the index that finds it, the documents it cites, and what it rests on.

A decision that cites a rulebook by its id alone is compared with the route that was active at its position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gate.decisions.migrations.documents import CANDIDATE, EVIDENCE, MANIFEST, is_evidence
from gate.encoding.canonical import content_hash
from gate.errors import GateError
from gate.instance.audit.finding import Finding, beside, read_stored, tampered
from gate.instance.audit.material import Entry, Material
from gate.ledger.reads.audited import AuditedLedger, DocumentRow, Snapshot
from gate.ledger.tables import changes, migration_documents
from gate.migration.approval import needs_approval
from gate.migration.routes import find_break
from gate.proof.chain import Link
from gate.records.changes import CHANGE_KINDS, MIGRATIONS, EntryKind, MigrationEntry, RouteEntry, entry_link, find_fault
from gate.records.documents import Record


def change_fault(entry: Entry, link: Link, kind: EntryKind) -> str | None:
    """The fault of a migration or a route, as a sentence; None if it is valid in itself.

    Raises:
        GateError, KeyError, TypeError, AttributeError: It has not the fields that every entry of its kind has.
    """
    document, members = entry.document, dict(link)
    fault = find_fault(kind, document)
    if fault is not None:
        return fault
    material = entry_link(kind, document)
    linked = all(members[name] == getattr(material, name) for name in material._fields)
    if entry.row.entry_id != document[kind.id_member] or not linked:
        return f"The link does not match the stored {kind.entry_type}."
    return None


def index_finding(entry: Entry, kind: EntryKind | None, material: Material) -> Finding | None:
    """The fault of an entry's row in the table of changes. An entry that is not a change must have no such row."""
    position = entry.row.position
    expected = None if kind is None else (kind.entry_type, entry.document[kind.subject_member])
    if material.changes.get(position) == expected:
        return None
    what = "Its row in the table changes does not match it, so the active route may be a different one."
    return tampered(position, what, position, table=changes.name)


def routed_by(request: Any) -> str | None:
    """The rulebook id that a request refers to without a version; None where it does not."""
    reference = request.get("rulebook_ref") if isinstance(request, dict) else None
    if not isinstance(reference, dict) or set(reference) != {"rulebook_id"}:
        return None
    named = reference["rulebook_id"]
    return named if isinstance(named, str) and "\0" not in named else None


def route_timelines(seen: Snapshot, rulebook_ids: Iterable[str]) -> dict[str, list[tuple[int, Any]]]:
    """The positions from which rulebook ids led to which hash, ascending."""
    found: dict[str, list[tuple[int, Any]]] = {rulebook_id: [] for rulebook_id in rulebook_ids}
    for row in seen.routes(sorted(found)):
        try:
            target = read_stored(row.body, "route")[0]["to"]["hash"]
        except (GateError, KeyError, TypeError):
            target = None
        found[row.subject].append((row.position, target))
    return found


def routed_fault(record: Record, request: Any, position: int, material: Material) -> str | None:
    """The fault of a decision by a route, as a sentence; None if the route led to its rulebook at that time."""
    named = routed_by(request)
    if named is None:
        return None
    timeline = material.routes.get(named, [])
    index = bisect_left(timeline, position, key=lambda route: route[0]) - 1
    if index >= 0 and timeline[index][1] == record["policy_hash"] and record["policy_id"] == named:
        return None
    return (
        f"Its request refers to {named} by its route, but at this position that route led to another version, or "
        "to none."
    )


def check_changes(ledger: AuditedLedger, scope_id: str, size: int) -> Finding | None:
    """The first migration, route, or document of a scope that does not follow from the entries before it in the chain.

    Args:
        ledger: The ledger.
        scope_id: The scope.
        size: How many entries of the chain were judged; each change among them has its row.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    with ledger.snapshot(scope_id) as seen:
        stray = seen.stray_change()
        if stray is not None:
            what = f"The table {stray.table} has a row for it, but there is no such entry."
            return beside(stray.position, what, stray.row, table=changes.name)
        documents = _Documents()
        for row in seen.documents():
            if fault := documents.add(row):
                return tampered(None, fault, row.hash, table=migration_documents.name)
        audit = _Changes(documents)
        for change in seen.found_changes(size):
            kind, document = CHANGE_KINDS[change.entry_type], read_stored(change.body, change.entry_type)[0]
            if fault := audit.add(kind, document, change.position):
                return tampered(change.position, fault, document[kind.id_member])
        # Later entries, which this audit leaves to the next, may cite documents as well.
        later = [read_stored(row.body, row.entry_type)[0] for row in seen.found_changes(seen.head().size)]
        cited = audit.cited | {hash_ for document in later for hash_ in _cited(document)}
        if uncited := sorted(documents.kinds.keys() - cited):
            what = f"The table {migration_documents.name} has a document that no entry cites."
            return beside(None, what, uncited[0], table=migration_documents.name)
        hashes = audit.targets
        missing = hashes - {row.hash for row in seen.registered(sorted(hashes))}
    if missing:
        what = f"A route leads to the rulebook {min(missing)}, which the table rulebooks lacks."
        return tampered(None, what, min(missing), table="rulebooks")
    return audit.find_break()


class _Documents:
    """The documents that entries cite, each held against its hash; what an approval depends on is kept."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.unapproved: dict[str, Any] = {}

    def add(self, row: DocumentRow) -> str | None:
        """Takes a document; what is wrong with it, as a sentence."""
        try:
            body = read_stored(row.body, f"document {row.hash}")[0]
            holds = _is_document(row, body)
            if holds:
                self._keep(row, body)
        except (GateError, KeyError, TypeError, AttributeError):
            holds = False
        if not holds:
            return f"The document {row.hash} differs from the stored {row.kind}: its hash is different."
        return None

    def _keep(self, row: DocumentRow, body: Any) -> None:
        self.kinds[row.hash] = row.kind
        if row.kind == MANIFEST and body["approval"]["status"] == "not_required":
            self.unapproved[row.hash] = body
        elif row.kind == EVIDENCE:
            # Evidence is long, and only this much of it says whether an approval was needed.
            equal = [of["difference"] and {"equal": of["difference"]["equal"]} for of in body["rulebooks"]]
            rulebooks = [{"difference": difference} for difference in equal]
            self.unapproved[row.hash] = {"rulebooks": rulebooks, "corpus": {"ok": body["corpus"]["ok"]}}


def _is_document(row: DocumentRow, body: Any) -> bool:
    if row.kind == EVIDENCE:
        return is_evidence(body, row.hash)
    hashed = {MANIFEST: body, CANDIDATE: body.get("rulebook")}
    return row.kind in hashed and content_hash(hashed[row.kind]) == row.hash


class _Changes:
    """The changes of a chain so far."""

    def __init__(self, documents: _Documents) -> None:
        self._documents = documents
        self._proposed: dict[str, MigrationEntry] = {}
        self._approved: dict[str, MigrationEntry] = {}
        self._routes: dict[str, list[tuple[int, RouteEntry]]] = {}
        self.cited: set[str] = set()

    @property
    def targets(self) -> set[str]:
        """The hashes that routes lead to."""
        return {route["to"]["hash"] for of in self._routes.values() for _, route in of}

    def add(self, kind: EntryKind, document: Any, position: int) -> str | None:
        """Takes the next change; what is wrong with it, as a sentence."""
        self.cited.update(_cited(document))
        if missing := sorted(_cited(document) - self._documents.kinds.keys()):
            return f"It cites the document {missing[0]}, which the table {migration_documents.name} lacks."
        if kind is MIGRATIONS:
            return self._add_migration(document)
        self._routes.setdefault(document["rulebook_id"], []).append((position, document))
        return self._route_fault(document)

    def _add_migration(self, entry: MigrationEntry) -> str | None:
        before = self._proposed.get(entry["migration_id"])
        if entry["event"] == "proposed":
            self._proposed[entry["migration_id"]] = entry
            return None
        if before is None or any(before[name] != entry[name] for name in _OF_PROPOSAL):
            return "It is about another proposal than the entry before it in the chain."
        if entry["event"] == "approved":
            self._approved[entry["migration_hash"]] = entry
        return None

    def _route_fault(self, route: RouteEntry) -> str | None:
        if route["cause"] == "rollback":
            return None
        proposed = self._proposed.get(route["migration_id"])
        target = {"rulebook_id": route["rulebook_id"], **route["to"]}
        if proposed is None or proposed["evidence_hash"] != route["evidence_hash"] or target not in _targets(proposed):
            return "It leads to a version that its migration did not propose on this evidence."
        if route["approval_hash"] is None:
            manifest, evidence = (
                self._documents.unapproved.get(hash_) for hash_ in (proposed["manifest_hash"], route["evidence_hash"])
            )
            if manifest is None or evidence is None or needs_approval(manifest, evidence):
                return "It cites no approval, though its migration needed one."
            return None
        approval = self._approved.get(route["approval_hash"])
        if approval is None or approval["evidence_hash"] != route["evidence_hash"]:
            return "It cites an approval that does not come before it in the chain, or that is about other evidence."
        return None

    def find_break(self) -> Finding | None:
        """The first route that does not lead on from those before it."""
        for of in self._routes.values():
            found = find_break([route for _, route in of])
            if found is not None:
                position, route = of[found[0]]
                return tampered(position, found[1], route["route_entry_id"])
        return None


_OF_PROPOSAL: Final = ("manifest_hash", "evidence_hash", "candidates")


def _targets(proposed: MigrationEntry) -> list[dict[str, str]]:
    return [{**candidate} for candidate in proposed["candidates"]]  # type: ignore[dict-item]


def _cited(document: Mapping[str, Any]) -> set[str]:
    cited = {document["evidence_hash"]}
    if "manifest_hash" in document:
        cited |= {document["manifest_hash"], *(of["hash"] for of in document["candidates"])}
    return cited
