"""Turns the ledger's entries into the lake's rows, both for exports and for the tail that a report adds.

    frames(scope_id, entries, rulebook_fields, withheld)["outcomes"]

The service wrote these entries itself. So bodies are decoded by type, with only the fields that a column holds. An
unreadable entry stops the export.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import polars as pl
import pyarrow as pa
from msgspec import Raw, Struct, field

from gate.encoding.canonical import canonical
from gate.errors import OperatorError
from gate.labels import ADVISORY_EVALUATOR
from gate.ledger.packing import unpack
from gate.ledger.reads.tail import FollowedEntry
from gate.records.reports.receipts import ACTION_TAKEN_MISMATCH, BINDING_MISMATCH, NOT_APPROVED
from gate.rulebooks.documents import RulebookBody
from workbench.columns import ADVISORY, ENTRY_TABLES, FACTS, OBSERVED, TIME, personal_columns, schema
from workbench.facts import canonical_text, fact_series, fields_of, without

# Columns that nobody reads still cost something in every file; a rulebook tests ten fields, not a hundred.
_MAX_FIELDS: Final = 256
# Four for each field.
_MAX_COLUMNS: Final = 4 * _MAX_FIELDS
_CHUNK_BYTES: Final = 96 * 1024 * 1024
_TYPE_AT, _BODY, _REQUEST_AT = map(FollowedEntry._fields.index, ("entry_type", "body", "request"))
_MAX_RULEBOOKS: Final = 10_000
_FACTS_PREFIX: Final = "inputs."
# Of this form Polars reads in a fifth of the time that `%.3f` takes.
_TIMESTAMP: Final = "%Y-%m-%dT%H:%M:%S.%3fZ"

ENTRY_UNREADABLE: Final = "LAKE_ENTRY_UNREADABLE"
"""The code of the error where an entry cannot be exported."""

_STRINGS: Final = pl.List(pl.String)

Frames = dict[str, pl.DataFrame]

Column: TypeAlias = Sequence[object] | pl.Series
"""The values of a column, a row each."""

Columns: TypeAlias = dict[str, Column]
"""Columns by name."""

_Body = TypeVar("_Body")


class Rulebooks:
    """The rulebooks of a scope, by hash: which fields they have, and which the lake does not hold yet."""

    def __init__(self, body: Callable[[str], RulebookBody | None], held: Iterable[str] = ()) -> None:
        """Takes what finds a body, None where there is none, and the hashes of those that the lake holds."""
        self._body = body
        self._held = set(held)
        self._fields: dict[str, tuple[str, ...]] = {}

    def fields(self, hash_: str) -> tuple[str, ...]:
        """The fields that a rulebook declares, requires or tests."""
        if hash_ not in self._fields:
            body = self._body(hash_)
            if len(self._fields) >= _MAX_RULEBOOKS:
                self._fields.clear()
            self._fields[hash_] = () if body is None else fields_of(body)
        return self._fields[hash_]

    def take_new(self, hash_: str) -> str | None:
        """The text of a rulebook that the lake does not hold, as canonical JSON; it is taken for held from then on."""
        if hash_ in self._held:
            return None
        self._held.add(hash_)
        body = self._body(hash_)
        return None if body is None else canonical(body).decode()


@dataclass(frozen=True, slots=True)
class Personal:
    """What an operator marked as personal.

    Attributes:
        columns: Columns that stay empty.
        facts: Paths of facts that are left out.
    """

    columns: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset()

    @property
    def marks(self) -> tuple[str, ...]:
        """As the setting `personal_fields` names them, sorted."""
        return tuple(sorted({*self.columns, *(f"{_FACTS_PREFIX}{path}" for path in self.facts)}))

    @classmethod
    def of(cls, marks: Iterable[str]) -> Personal:
        """What the setting `personal_fields` names.

        Raises:
            OperatorError: `SETTINGS_INVALID`.
        """
        marks = frozenset(marks)
        facts = frozenset(mark.removeprefix(_FACTS_PREFIX) for mark in marks if mark.startswith(_FACTS_PREFIX))
        columns = frozenset(mark for mark in marks if not mark.startswith(_FACTS_PREFIX))
        if wrong := sorted(path for path in facts if not all(path.split("."))):
            raise OperatorError(
                "SETTINGS_INVALID",
                f"personal_fields has the fact {wrong[0]!r}, which is not a path; write a fact as "
                f"{_FACTS_PREFIX}<path>, such as {_FACTS_PREFIX}customer.email.",
            )
        if unknown := sorted(columns - personal_columns()):
            raise OperatorError(
                "SETTINGS_INVALID",
                f"personal_fields has {unknown[0]!r}, which is not a column that can be left out; write a fact as "
                f"{_FACTS_PREFIX}<path>, or one of {', '.join(sorted(personal_columns()))}.",
            )
        return cls(columns, facts)


_NOTHING_PERSONAL: Final = Personal()
# Members that are not there, and those that say that there is nothing.
_MEANT: Final[Mapping[str, None]] = {"": None, "null": None}


class _Rows:
    """Entries of one type, and what is stored of them beside their bodies, a column for each member."""

    def __init__(self, scope_id: str, entries: Sequence[Sequence[Any]]) -> None:
        self.scope_id = scope_id
        self.entries = entries
        members = zip(*entries, strict=True) if entries else ((),) * len(FollowedEntry._fields)
        stored: dict[str, Sequence[Any]] = dict(zip(FollowedEntry._fields, members, strict=True))
        named = stored["policy_version"]
        versions = {
            each: None if each is None else each.decode("utf-8", "replace") for each in set(stored["policy_version"])
        }
        self.columns = {
            **stored,
            "scope_id": (scope_id,) * len(entries),
            "policy_version": [versions[each] for each in named],
        }

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]


_NOTHING: Final = Raw(b"")


class _Binding(Struct, gc=False):
    system: str = ""
    resource: str = ""
    proposed_action: str = ""
    mutation: str | None = None
    actor: Raw = _NOTHING
    subject: Raw = _NOTHING
    amount: Any = None
    currency: Any = None


class _TrustedAdapter(Struct, gc=False):
    adapter_id: str
    version: str
    manifest_hash: str
    input_hash: str

    @property
    def name(self) -> str:
        return f"{self.adapter_id}@{self.version}"


class _Record(Struct, gc=False):
    policy_hash: str
    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    evidence: list[str]
    action_binding: _Binding
    request_id: str
    input_hash: str
    output_hash: str
    evaluator_version: str = ""
    idempotency_key: str | None = None
    trusted_adapter: _TrustedAdapter | None = None
    adapter_facts: dict[str, Any] | None = None


class _Confidence(Struct, gc=False):
    score: float
    level: str


class _Context(Struct, gc=False, frozen=True):
    inputs: Raw = Raw(b"{}")


# A request without a context has no facts, like one whose context names none.
_NO_CONTEXT: Final = _Context()


class _Request(Struct, gc=False):
    context: _Context = _NO_CONTEXT
    occurred_at: str | None = None


class _Proposed(Struct, gc=False, frozen=True):
    # What a caller named in its place may be anything.
    proposed_action: Any = None


class _Execution(Struct, gc=False):
    execution_status: str
    decision_action: str
    action_binding_match: bool
    flags: list[str]
    action_binding: _Proposed = _Proposed()
    decision_verdict: str | None = None
    execution_result: str | None = None
    action_taken: str | None = None
    target_system: str | None = None
    target_object_id: str | None = None
    mutation: str | None = None
    external_ref: str | None = None
    execution_id: str | None = None
    executor: Raw = _NOTHING
    state_before_hash: str | None = None
    state_after_hash: str | None = None
    state_before_ref: str | None = None
    state_after_ref: str | None = None
    evidence_refs: list[str] | None = None
    executed_at: str | None = None


class _Outcome(Struct, gc=False):
    outcome_status: str
    action_executed: bool | None = None
    action_taken: str | None = None
    target_system: str | None = None
    target_object_id: str | None = None
    mutation: str | None = None
    external_ref: str | None = None
    observed_metrics: dict[str, float] | None = None
    evidence_refs: list[str] | None = None
    executed_at: str | None = None
    occurred_at: str | None = None


class _CrmSync(Struct, gc=False):
    sync_status: str
    sync_direction: str | None = None
    crm_provider: str | None = None
    crm_object_type: str | None = None
    crm_object_id: str | None = None
    crm_record_url: str | None = None
    mapped_fields: Raw = _NOTHING


class _Resolution(Struct, gc=False):
    resolution: str
    actor: Raw
    expires_at: str | None = None
    resolved_by: str | None = None
    evidence_refs: list[str] | None = None
    note: str | None = None
    idempotency_key: str | None = None
    key_id: str | None = None


class _Erasure(Struct, gc=False):
    reason: str
    erased: list[str]


class _Version(Struct, gc=False):
    version: str
    hash: str


class _Candidate(Struct, gc=False):
    rulebook_id: str
    version: str
    hash: str


class _Migration(Struct, gc=False):
    migration_id: str
    event: str
    manifest_hash: str
    evidence_hash: str
    candidates: list[_Candidate]
    actor: Raw
    note: str


class _Route(Struct, gc=False):
    to: _Version
    cause: str
    migration_id: str
    evidence_hash: str
    actor: Raw
    note: str
    approval_hash: str | None = None
    before: _Version | None = field(name="from", default=None)


_RECORD: Final = msgspec.json.Decoder(_Record)
_EXECUTION: Final = msgspec.json.Decoder(_Execution)
_OUTCOME: Final = msgspec.json.Decoder(_Outcome)
_CRM_SYNC: Final = msgspec.json.Decoder(_CrmSync)
_RESOLUTION: Final = msgspec.json.Decoder(_Resolution)
_ERASURE: Final = msgspec.json.Decoder(_Erasure)
_MIGRATION: Final = msgspec.json.Decoder(_Migration)
_ROUTE: Final = msgspec.json.Decoder(_Route)
# The state of an action that changed its target.
_CHANGING: Final = frozenset({"executed", "reverted"})
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_CONFIDENCE: Final = msgspec.json.Decoder(_Confidence)
_REQUEST: Final = msgspec.json.Decoder(_Request)
_FACTS: Final = msgspec.json.Decoder(dict[str, Any])


def chunks(page: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Unpacks entries in parts of bounded size, because a deflated entry can grow a thousandfold.

    Args:
        page: The entries, as rows of the ledger with the fields of `FollowedEntry`.
    """
    chunk: list[Sequence[Any]] = []
    room = _CHUNK_BYTES
    for entry in page:
        body = unpack(entry[_BODY])
        request = entry[_REQUEST_AT]
        if request is not None:
            request = unpack(request)
            room -= len(request)
        chunk.append((*entry[:_BODY], body, request, entry[-1]))
        room -= len(body)
        if room < 0:
            yield chunk
            chunk, room = [], _CHUNK_BYTES
    if chunk:
        yield chunk


def frames(scope_id: str, entries: Sequence[Sequence[Any]], rulebooks: Rulebooks | None, personal: Personal) -> Frames:
    """The rows of entries, by table; a table without rows is left out.

    Args:
        scope_id: The scope of the entries.
        entries: Entries of its chain, as `chunks` gives them.
        rulebooks: The scope's rulebooks; None where neither `facts` nor `rulebooks` are wanted.
        personal: What is left out.

    Raises:
        OperatorError: `LAKE_ENTRY_UNREADABLE`.
    """
    by_type: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    for entry in entries:
        by_type[entry[_TYPE_AT]].append(entry)
    found: Frames = {}
    for entry_type, of_type in by_type.items():
        rows = _Rows(scope_id, of_type)
        if entry_type == "decision":
            records = _decoded(_RECORD, rows)
            requests = _decoded_where_kept(_REQUEST, rows, "request")
            columns = _decision_columns(rows, records, requests)
        elif entry_type in _COLUMNS:
            columns = _COLUMNS[entry_type](rows)
        else:
            raise _unreadable(of_type[0], f"this release does not know its type {entry_type}")
        found[ENTRY_TABLES[entry_type]] = _frame(ENTRY_TABLES[entry_type], rows, columns, personal)
        if entry_type == "decision" and rulebooks is not None:
            found |= _of_rulebooks(rows, records, requests, rulebooks, personal)
    return found


def _of_rulebooks(
    rows: _Rows,
    records: Sequence[_Record],
    requests: Sequence[_Request | None],
    rulebooks: Rulebooks,
    personal: Personal,
) -> Frames:
    """The facts and the new rulebooks of decisions. Advisory ones have neither: an upstream answered a question."""
    binding = [index for index, record in enumerate(records) if record.evaluator_version != ADVISORY_EVALUATOR]
    if not binding:
        return {}
    if len(binding) < len(records):
        rows = _Rows(rows.scope_id, [rows.entries[index] for index in binding])
        records, requests = [records[index] for index in binding], [requests[index] for index in binding]
    found = {"facts": _facts(rows, records, requests, rulebooks, personal)}
    hashes = [record.policy_hash for record in records]
    if (new := _new_rulebooks(rows, hashes, rulebooks)) is not None:
        found["rulebooks"] = new
    return found


def _decoded(decoder: msgspec.json.Decoder[_Body], rows: _Rows) -> list[_Body]:
    try:
        return list(map(decoder.decode, rows["body"]))
    except _UNREADABLE as error:
        raise _unreadable(_first_unreadable(decoder, rows, "body"), str(error)) from error


def _decoded_where_kept(decoder: msgspec.json.Decoder[_Body], rows: _Rows, member: str) -> list[_Body | None]:
    decode = decoder.decode
    try:
        return [None if text is None else decode(text) for text in rows[member]]
    except _UNREADABLE as error:
        raise _unreadable(_first_unreadable(decoder, rows, member), str(error)) from error


def _first_unreadable(decoder: msgspec.json.Decoder[Any], rows: _Rows, member: str) -> Sequence[Any]:
    """The first entry of which a member cannot be decoded, where that is so of one."""

    def is_readable(text: bytes | None) -> bool:
        try:
            return text is None or decoder.decode(text) is not None
        except _UNREADABLE:
            return False

    return next(entry for entry, text in zip(rows.entries, rows[member], strict=True) if not is_readable(text))


def _unreadable(entry: Sequence[Any], why: str) -> OperatorError:
    row = FollowedEntry._make(entry)
    return OperatorError(
        ENTRY_UNREADABLE,
        f"The {row.entry_type} at chain position {row.position} cannot be exported ({why}). The entries before it are "
        f"in the lake; run `gate chain check` to see the damage.",
    )


def _frame(table: str, rows: _Rows, columns: Columns, personal: Personal) -> pl.DataFrame:
    given: Columns = {**rows.columns, **columns}
    types = schema(table)
    hidden = personal.columns & types.keys()
    return _typed(types, given | {name: [None] * len(rows) for name in hidden} if hidden else given)


def _typed(types: pl.Schema, given: Columns) -> pl.DataFrame:
    """The columns of these types; times are given as the ledger writes them, and read all at once."""
    frame = pl.DataFrame([_series(name, dtype, given[name]) for name, dtype in types.items()])
    times = [name for name, dtype in types.items() if dtype == TIME]
    read = pl.col(times).str.to_datetime(_TIMESTAMP, time_unit="ms", time_zone="UTC", strict=True)
    return frame.with_columns(read)


def _series(name: str, dtype: pl.DataType, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values
    if dtype == _STRINGS:
        flat = [text for texts in values if texts for text in texts]
        return _lists(name, dtype, values, pa.array(flat, pa.large_string()))
    return pl.Series(name, values, pl.String if dtype == TIME else dtype)


def _lists(name: str, dtype: pl.DataType, lists: Sequence[Any], flat: pa.Array) -> pl.Series:
    """A column of lists of what is given one after another; from Python's own lists it takes ten times as long."""
    ends = accumulate((len(each) if each else 0 for each in lists), initial=0)
    missing = [each is None for each in lists]
    made = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), flat, mask=pa.array(missing, pa.bool_()))
    return pl.Series(name, pl.from_arrow(made), dtype)


def _decision_columns(rows: _Rows, bodies: Sequence[_Record], requests: Sequence[_Request | None]) -> Columns:
    members = _members(bodies, _Record)
    bindings = _members(members["action_binding"], _Binding)
    adapters = members["trusted_adapter"]
    confidences = _decoded_where_kept(_CONFIDENCE, rows, "confidence")
    return {
        "occurred_at": _occurred(requests),
        **members,
        "rule": [ADVISORY if body.evaluator_version == ADVISORY_EVALUATOR else body.evidence[1] for body in bodies],
        "target_system": bindings["system"],
        "target_object_id": bindings["resource"],
        "proposed_action": bindings["proposed_action"],
        "mutation": bindings["mutation"],
        "actor": _texts(bindings["actor"]),
        "subject": _texts(bindings["subject"]),
        "amount": [float(amount) if type(amount) in (int, float) else None for amount in bindings["amount"]],
        "currency": [currency if type(currency) is str else None for currency in bindings["currency"]],
        "adapter": [None if adapter is None else adapter.name for adapter in adapters],
        "adapter_manifest_hash": [None if adapter is None else adapter.manifest_hash for adapter in adapters],
        "adapter_input_hash": [None if adapter is None else adapter.input_hash for adapter in adapters],
        "confidence_score": [None if found is None else found.score for found in confidences],
        "confidence_level": [None if found is None else found.level for found in confidences],
    }


def _execution_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_EXECUTION, rows)
    return {
        **_members(bodies, _Execution),
        "execution_receipt_id": rows["entry_id"],
        "executor": _texts(body.executor for body in bodies),
        "not_approved": [NOT_APPROVED in body.flags for body in bodies],
        "binding_mismatch": [BINDING_MISMATCH in body.flags for body in bodies],
        "action_mismatch": [_is_another_action(body) for body in bodies],
        "other_action": [_is_another_action(body) and not _is_proposed_unopened(body) for body in bodies],
        "state_mismatch": [_state_mismatch(body) for body in bodies],
        "reported_at": rows["created_at"],
    }


def _is_another_action(body: _Execution) -> bool:
    """Whether a receipt names another action than the decided one, or behind a grant than the proposed one."""
    if body.action_taken in (None, body.decision_action):
        return False
    granted = body.decision_verdict == "review" and NOT_APPROVED not in body.flags
    # Earlier releases did not set the flag; every release that knows grants does.
    return ACTION_TAKEN_MISMATCH in body.flags if granted else True


def _is_proposed_unopened(body: _Execution) -> bool:
    """Whether a receipt names the proposed action, or nothing is proposed, of an action that nothing opened: what was
    breached is the hold, and the decision's label says only where the case goes.
    """
    proposed = body.action_binding.proposed_action
    return NOT_APPROVED in body.flags and (not proposed or body.action_taken == proposed)


def _state_mismatch(body: _Execution) -> bool | None:
    """Whether the state hashes of a receipt contradict its status; what is queued has yet to happen."""
    before, after = body.state_before_hash, body.state_after_hash
    if before is None or after is None or body.execution_status == "queued":
        return None
    return (before != after) != (body.execution_status in _CHANGING)


def _outcome_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_OUTCOME, rows)
    return {
        **_members(bodies, _Outcome),
        "outcome_id": rows["entry_id"],
        "observed_metrics": _metrics([body.observed_metrics for body in bodies]),
        "reported_at": rows["created_at"],
    }


def _crm_sync_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_CRM_SYNC, rows)
    return {
        **_members(bodies, _CrmSync),
        "sync_id": rows["entry_id"],
        "mapped_fields": _texts(body.mapped_fields for body in bodies),
        "reported_at": rows["created_at"],
    }


def _resolution_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_RESOLUTION, rows)
    return {
        **_members(bodies, _Resolution),
        **_of_act(rows, bodies),
        "resolution_entry_id": rows["entry_id"],
    }


def _erasure_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_ERASURE, rows)
    return {
        **_members(bodies, _Erasure),
        "erasure_id": rows["entry_id"],
        "erased_at": rows["created_at"],
    }


def _migration_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_MIGRATION, rows)
    return {
        **_members(bodies, _Migration),
        "candidates": [[msgspec.to_builtins(of) for of in body.candidates] for body in bodies],
        **_of_act(rows, bodies),
        "migration_entry_id": rows["entry_id"],
    }


def _route_columns(rows: _Rows) -> Columns:
    bodies = _decoded(_ROUTE, rows)
    return {
        **_members(bodies, _Route),
        **_of_act(rows, bodies),
        "route_entry_id": rows["entry_id"],
        "policy_hash": [body.to.hash for body in bodies],
        "from_version": [None if body.before is None else body.before.version for body in bodies],
        "from_hash": [None if body.before is None else body.before.hash for body in bodies],
    }


def _of_act(rows: _Rows, bodies: Sequence[_Migration] | Sequence[_Route] | Sequence[_Resolution]) -> Columns:
    return {
        "actor": _texts(body.actor for body in bodies),
        "note": [body.note or None for body in bodies],
        "recorded_at": rows["created_at"],
    }


# Rows of decisions are made separately, because their facts are read from the same records.
_COLUMNS: Final[Mapping[str, Callable[[_Rows], Columns]]] = {
    "execution": _execution_columns,
    "outcome": _outcome_columns,
    "crm_sync": _crm_sync_columns,
    "resolution": _resolution_columns,
    "erasure": _erasure_columns,
    "migration": _migration_columns,
    "route": _route_columns,
}


def _members(bodies: Sequence[Struct], of: type[Struct]) -> dict[str, tuple[Any, ...]]:
    names = of.__struct_fields__
    return dict(zip(names, zip(*map(attrgetter(*names), bodies), strict=True), strict=True))


def _texts(raws: Iterable[Raw]) -> list[str | None]:
    return [_MEANT.get(text, text) for text in map(_utf8, raws)]


def _utf8(raw: Raw) -> str:
    return str(raw, "utf-8")


def _metrics(observed: Sequence[Mapping[str, float] | None]) -> pl.Series:
    """A list of names and numbers for each row, by name."""
    flat = [sorted(metrics.items()) for metrics in observed if metrics]
    names = pa.array([name for metrics in flat for name, _ in metrics], pa.large_string())
    # JSON has one zero, but the lesser of 0.0 and -0.0 is whichever comes first.
    values = pa.array([value + 0.0 for metrics in flat for _, value in metrics], pa.float64())
    flat = pa.StructArray.from_arrays([names, values], ["name", "value"])
    return _lists("observed_metrics", OBSERVED, observed, flat)


def _facts(
    rows: _Rows,
    bodies: Sequence[_Record],
    requests: Sequence[_Request | None],
    rulebooks: Rulebooks,
    personal: Personal,
) -> pl.DataFrame:
    hashes = [body.policy_hash for body in bodies]
    texts = [_inputs(body, request) for body, request in zip(bodies, requests, strict=True)]
    inputs = [None if text is None else _FACTS.decode(text) for text in texts]
    if personal.facts:
        kept = [None if facts is None else canonical_text(without(facts, personal.facts)) for facts in inputs]
    else:
        kept = texts
    columns: Columns = {
        "occurred_at": _occurred(requests),
        "policy_hash": hashes,
        "known": [facts is not None for facts in inputs],
        "inputs": kept,
    }
    frame = _frame("facts", rows, columns, _NOTHING_PERSONAL)
    parts = []
    for indexes in _by_policy(rows["policy_id"]):
        versions = {hashes[index] for index in indexes}
        fields = sorted({field for hash_ in versions for field in rulebooks.fields(hash_)})[:_MAX_FIELDS]
        typed = fact_series([inputs[index] for index in indexes], fields, withheld=personal.facts)
        part = frame if len(indexes) == len(rows) else frame[indexes]
        parts.append(part.with_columns(typed))
    return parts[0] if len(parts) == 1 else together("facts", parts).sort("position")


def _new_rulebooks(rows: _Rows, hashes: Sequence[str], rulebooks: Rulebooks) -> pl.DataFrame | None:
    # Read backwards, the first of each is what stays.
    firsts = {hash_: index for index, hash_ in reversed(list(enumerate(hashes)))}
    texts = {index: rulebooks.take_new(hash_) for hash_, index in firsts.items()}
    new = sorted(index for index, text in texts.items() if text is not None)
    if not new:
        return None
    first = _Rows(rows.scope_id, [rows.entries[index] for index in new])
    columns: Columns = {
        "policy_hash": [hashes[index] for index in new],
        "first_used_at": first["created_at"],
        "body": [texts[index] for index in new],
    }
    return _frame("rulebooks", first, columns, _NOTHING_PERSONAL)


def _by_policy(policies: Iterable[str | None]) -> Iterable[list[int]]:
    found: defaultdict[str | None, list[int]] = defaultdict(list)
    for index, policy in enumerate(policies):
        found[policy].append(index)
    return found.values()


def _occurred(requests: Sequence[_Request | None]) -> list[str | None]:
    return [None if request is None else request.occurred_at for request in requests]


def _inputs(body: _Record, request: _Request | None) -> str | None:
    """The facts: those of the record where an adapter made them, else as they stand in the request, which is kept in
    its canonical form.
    """
    if body.trusted_adapter is not None:
        return None if body.adapter_facts is None else canonical_text(body.adapter_facts)
    return None if request is None else bytes(request.context.inputs).decode()


def concat(parts: Sequence[Frames]) -> Frames:
    """The rows of several parts together, by table."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: together(name, [part[name] for part in parts if name in part]) for name in names}


def together(table: str, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of one table. For facts, each part may have other fields, and only those of the part are kept."""
    if table != "facts":
        return pl.concat(parts)
    kept = dict.fromkeys(name for part in parts for name in part.columns)
    chosen = [*FACTS, *(name for name in kept if name not in FACTS)][: len(FACTS) + _MAX_COLUMNS]
    return pl.concat([part.select(name for name in chosen if name in part.columns) for part in parts], how="diagonal")


def held(facts: pl.DataFrame) -> pl.DataFrame:
    """Facts as a file holds them: without the columns that are null in every row, for readers take those that a file
    lacks for null. Few facts come in more than one type, so that half of the columns say nothing.
    """
    names = facts.columns[len(FACTS) :]
    return facts.drop(name for name in names if not name.endswith(":type") and facts[name].null_count() == facts.height)


EVENT_TIMES: Final[Mapping[str, Mapping[str, str | None]]] = {
    "decisions": {"occurred_at": None},
    "outcomes": {"occurred_at": None},
    "facts": {"occurred_at": None},
    "metrics": {"occurred_at": None},
    "cases": {
        "occurred_at": None,
        "outcome_occurred_at": None,
        "first_outcome_event_at": "first_outcome_at",
        "last_outcome_event_at": "last_outcome_at",
    },
}
"""The columns of each table that follow from what an erasure takes out of a decision and its outcomes, each with the
column that is left to say the same; None where none does.
"""


def erased_from(table: str, positions: pl.Series) -> pl.Expr:
    """Whether a row of a table is about a decision at one of some positions."""
    return pl.col("decision_position" if table == "outcomes" else "position").is_in(positions.implode())


def has_event_time(table: str) -> pl.Expr:
    """Whether a row of a table holds what an erasure of its decision takes out of it."""
    return pl.any_horizontal(
        pl.col(name).is_not_null() if left is None else pl.col(name).ne_missing(pl.col(left))
        for name, left in EVENT_TIMES[table].items()
    )


def untimed(table: str, erased: pl.Expr) -> list[pl.Expr]:
    """The columns of `EVENT_TIMES` as the erasure of some rows' decisions leaves them."""
    return [
        pl.when(~erased).then(pl.col(name)).otherwise(None if left is None else pl.col(left)).alias(name)
        for name, left in EVENT_TIMES[table].items()
    ]


def forgotten(facts: pl.DataFrame, positions: pl.Series) -> pl.DataFrame:
    """Facts without those of the decisions at some positions, which were erased."""
    erased = pl.col("position").is_in(positions.implode())
    kept = frozenset(FACTS) - {"known", "inputs", "occurred_at"}
    return facts.with_columns(
        (pl.col("known") & ~erased).alias("known"),
        *(
            pl.when(~erased).then(pl.col(name)).alias(name)
            for name in facts.columns
            if name != "known" and name not in kept
        ),
    )
