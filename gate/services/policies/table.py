"""A policy table: what vendors publish about one question, as an operator keeps it in a file.

    table = read_table(path.read_bytes(), "refund")
    table.find("Example Store", "US", "standard")     # the entry, or what is unknown

The shape stands in schemas/policy-table-v1.schema.json; what a schema cannot say is added here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal, NotRequired, TypedDict, cast

from gate.encoding.canonical import content_hash
from gate.encoding.shapes import MAX_ERRORS, shape, to_mend
from gate.encoding.strict_json import parse_document
from gate.errors import FieldError, MaterialRefused

ANY: Final = "*"
"""The region or the plan of an entry that holds for every one."""

MAX_TABLE_BYTES: Final = 4 * 1024 * 1024
"""The largest file that is read."""

NEVER: Final = "never"
NO_OFFER: Final = "none"

_REVIEW_ONLY: Final = "review_only"
_LISTED: Final = 10


class Windows(TypedDict, total=False):
    """Periods, in days; see the schema."""

    refund_days: int | Literal["never"]
    return_days: int | Literal["never"]
    free_days: int
    locked_days: int


class Offer(TypedDict):
    """A free trial."""

    trial_days: int
    card_required: bool | None


class Condition(TypedDict):
    """What a caller must confirm before a favourable verdict."""

    name: str
    text: str


class Entry(TypedDict):
    """What one vendor publishes for one region and plan; see the schema."""

    vendor: str
    name: str
    region: str
    plan: str
    decision_mode: Literal["deterministic", "conditional", "review_only"]
    source: str
    last_verified: str | None
    windows: NotRequired[Windows]
    penalties: NotRequired[list[str]]
    offers: NotRequired[Offer | Literal["none"]]
    conditions: NotRequired[list[Condition]]
    notes: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Unfound:
    """Why a table has no entry for what was asked.

    Attributes:
        what: vendor, region or plan.
        known: Some that the table has instead, sorted.
    """

    what: Literal["vendor", "region", "plan"]
    known: tuple[str, ...]


class PolicyTable:
    """A valid policy table.

    Attributes:
        service: refund, cancel, return or trial.
        body: The table as its file has it.
        hash: H(body).
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        """Indexes a table that `read_table` found valid."""
        self.service: Final[str] = body["service"]
        self.body: Final = body
        self.hash: Final = content_hash(body)
        self._vendors: dict[str, dict[tuple[str, str], Entry]] = {}
        for entry in self.entries:
            for name in {entry["vendor"], _slug(entry["name"])}:
                self._vendors.setdefault(name, {})[entry["region"], entry["plan"]] = entry

    @property
    def entries(self) -> list[Entry]:
        """Its entries, in the order of the file."""
        return cast("list[Entry]", self.body["entries"])

    def find(self, vendor: str, region: str | None, plan: str | None) -> Entry | Unfound:
        """The entry for a vendor, a region and a plan; one for exactly these before one for every region or plan.

        A region or plan that is not named finds only an entry for every one: a table never guesses.
        """
        entries = self._vendors.get(_slug(vendor))
        if entries is None:
            return Unfound("vendor", _some(self._vendors))
        region = ANY if region is None else region.strip().upper()
        plan = ANY if plan is None else _slug(plan)
        plans: dict[str, None] = {}
        for near in dict.fromkeys((region, ANY)):
            for exact in dict.fromkeys((plan, ANY)):
                if (found := entries.get((near, exact))) is not None:
                    return found
            plans |= dict.fromkeys(one for of, one in entries if of == near)
        if not plans:
            return Unfound("region", _some({of: None for of, _ in entries}))
        return Unfound("plan", _some(plans))


def _some(names: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_LISTED])


def _slug(name: str) -> str:
    """A vendor or plan as tables name it: `Best Buy` is best-buy."""
    return "-".join(name.casefold().split())


def read_table(text: bytes, service: str) -> PolicyTable:
    """Reads a policy table.

    Args:
        text: The file.
        service: The question that it is to answer.

    Raises:
        MaterialRefused: POLICY_TABLE_INVALID, with an error for each member at fault.
    """
    if len(text) > MAX_TABLE_BYTES:
        raise _invalid(f"It has {len(text)} bytes; at most {MAX_TABLE_BYTES} are read.")
    try:
        body = parse_document(text)
    except MaterialRefused as error:
        raise _invalid(error.message.replace("The body", "It")) from error
    errors = shape("policy-table-v1").errors(body)
    if not errors:
        errors = sorted(_faults(body, service), key=lambda error: (error.field, error.code))[:MAX_ERRORS]
    if errors:
        raise MaterialRefused("POLICY_TABLE_INVALID", to_mend("The file is not a policy table", errors), errors)
    return PolicyTable(body)


def _invalid(what: str) -> MaterialRefused:
    return MaterialRefused("POLICY_TABLE_INVALID", f"The file is not a policy table. {what}")


# The members that hold the terms of each service, and the windows that each has.
_TERMS: Final[Mapping[str, tuple[str, ...]]] = {
    "refund": ("windows",),
    "cancel": ("windows", "penalties"),
    "return": ("windows",),
    "trial": ("offers",),
}
_WINDOWS: Final[Mapping[str, tuple[str, ...]]] = {
    "refund": ("refund_days",),
    "cancel": ("free_days", "locked_days"),
    "return": ("return_days",),
    "trial": (),
}


def _faults(body: Mapping[str, Any], service: str) -> Iterator[FieldError]:
    if body["service"] != service:
        yield FieldError("service", "const", f"It must be {service!r}, as the file's name says.")
    keys = Counter(_key(entry) for entry in body["entries"])
    for index, entry in enumerate(body["entries"]):
        where = f"entries[{index}]"
        if keys[_key(entry)] > 1:
            what = f"Several entries are for {', '.join(_key(entry))}; keep one of them."
            yield FieldError(where, "duplicate", what)
        yield from (FieldError(f"{where}.{name}", code, text) for name, code, text in _entry_faults(entry, service))


def _key(entry: Entry) -> tuple[str, str, str]:
    return entry["vendor"], entry["region"], entry["plan"]


def _entry_faults(entry: Entry, service: str) -> Iterator[tuple[str, str, str]]:
    for name in ("windows", "penalties", "offers"):
        if name in entry and name not in _TERMS[service]:
            yield name, "unknown_field", f"A table of {service} has no {name}; remove it."
    for name in entry.get("windows", {}):
        if name not in _WINDOWS[service] and "windows" in _TERMS[service]:
            known = " and ".join(_WINDOWS[service])
            yield f"windows.{name}", "unknown_field", f"A table of {service} has {known} only; remove it."
    names = Counter(condition["name"] for condition in entry.get("conditions", []))
    if any(count > 1 for count in names.values()):
        yield "conditions", "duplicate", "Two conditions have the same name; keep one."
    mode = entry["decision_mode"]
    if (mode == "conditional") != bool(entry.get("conditions")):
        yield "conditions", "conflict", "Exactly the entries with decision_mode conditional have conditions."
    if mode == _REVIEW_ONLY:
        return
    if entry["last_verified"] is None:
        what = f"decision_mode {mode} needs the day on which the source was read; add it, or use review_only."
        yield "last_verified", "required", what
    yield from ((name, "required", f"decision_mode {mode} needs it; add it.") for name in _missing(entry, service))


def _missing(entry: Entry, service: str) -> Iterator[str]:
    """The terms without which an entry carries no verdict."""
    if service in ("refund", "return") and not entry.get("windows"):
        yield f"windows.{service}_days"
    if service == "cancel" and "penalties" not in entry:
        yield "penalties"
    if service == "trial" and "offers" not in entry:
        yield "offers"


def age_in_days(entry: Entry, today: date) -> int | None:
    """How many days ago an entry was verified; None where it never was. A day to come counts as today."""
    verified = entry["last_verified"]
    return None if verified is None else max(0, (today - date.fromisoformat(verified)).days)
