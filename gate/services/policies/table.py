"""A policy table: what vendors publish about one question, as an operator keeps it in a file.

    table = read_table(path.read_bytes(), "refund", today)
    table.find("Example Store", "US", "standard")     # the entry, or what is unknown

`schemas/policy-table-v1.schema.json` has the shape. This module adds the rules that a schema cannot express.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final, Literal, NotRequired, TypedDict, cast

from gate.encoding.canonical import content_hash
from gate.encoding.shapes import MAX_ERRORS, shape, to_mend
from gate.encoding.strict_json import parse_document
from gate.errors import FieldError, MaterialRefused
from gate.services.policies.regions import near, overlap

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
    """The condition that a caller must confirm before a favorable verdict."""

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
    """Why a table has no entry for a question.

    Attributes:
        what: The argument at fault: `vendor`, `region`, or `plan`; `argument` if one has a name that the question
            lacks.
        why: unknown; missing, where it was left out; no_text, where it is no text that a table can have; or no_country.
        known: Some that the table has instead, sorted.
        rest: Whether an entry for every other plan is there, which answers where the plan is left out.
        sent: The value that was sent instead: the names of unknown arguments, or the region that is not a country.
    """

    what: Literal["argument", "vendor", "region", "plan"]
    why: Literal["unknown", "missing", "no_text", "no_country"] = "unknown"
    known: tuple[str, ...] = ()
    rest: bool = False
    sent: tuple[str, ...] = ()


class PolicyTable:
    """A valid policy table.

    Attributes:
        service: `refund`, `cancel`, `return`, or `trial`.
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
        """The entry for a vendor, a region, and a plan.

        The region decides first: a subdivision, then its country, then every region. Within each, this plan comes
        before the entry for every plan. A missing region or plan finds only an entry that is for all of them, because a
        table never guesses. For the same reason, an unknown plan finds nothing if there are entries for other plans.
        """
        entries = self._vendors.get(_slug(vendor))
        if entries is None:
            return Unfound("vendor", "unknown" if vendor else "missing", _some(self._vendors))
        exact = () if region is None else near(region)
        if region is not None and not exact:
            return Unfound("region", "no_country", sent=(region.strip(),))
        regions = (*exact, ANY)
        here = {of: None for of, _ in entries if of in regions}
        if not here:
            return Unfound("region", _left_out(region), _some({of: None for of, _ in entries}))
        name = None if plan is None else _slug(plan)
        named = {one: None for of, one in entries if one != ANY and _may_be(of, exact)}
        found = next((entries[of, one] for of in regions for one in (name or ANY, ANY) if (of, one) in entries), None)
        if found is not None and (name is None or name in named or not named):
            return found
        known = named if found is not None else {one: None for of, one in entries if of in regions}
        return Unfound("plan", _left_out(plan), _some(known), rest=found is not None)


def _may_be(region: str, asked: tuple[str, ...]) -> bool:
    """Whether an entry's region could be the one that was asked for, of which some is known, or nothing."""
    return region == ANY or not asked or overlap(region, asked[0])


def _left_out(sent: str | None) -> Literal["missing", "unknown"]:
    return "missing" if sent is None else "unknown"


def _some(names: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_LISTED])


def _slug(name: str) -> str:
    """A vendor or plan as tables name it: `Best Buy` is best-buy."""
    return "-".join(name.casefold().split())


def read_table(text: bytes, service: str, today: date) -> PolicyTable:
    """Reads and checks a policy table.

    Args:
        text: The file.
        service: The question that it is to answer.
        today: The current day, in UTC.

    Raises:
        MaterialRefused: `POLICY_TABLE_INVALID`, with an error for each member at fault.
    """
    body = _parsed(text)
    faults = sorted(_faults(body, service, today), key=lambda error: (error.field, error.code))[:MAX_ERRORS]
    if faults:
        raise _refused(faults)
    return PolicyTable(body)


def read_checked(text: bytes) -> PolicyTable:
    """Reads a policy table that was checked before it came into force, by this release or by one that asked for less.

    Raises:
        MaterialRefused: `POLICY_TABLE_INVALID`: it does not have the shape of a policy table.
    """
    return PolicyTable(_parsed(text))


def _parsed(text: bytes) -> Mapping[str, Any]:
    if len(text) > MAX_TABLE_BYTES:
        raise _invalid(f"It has {len(text)} bytes; at most {MAX_TABLE_BYTES} are read.")
    try:
        body = parse_document(text)
    except MaterialRefused as error:
        raise _invalid(error.message.replace("The body", "It")) from error
    if errors := shape("policy-table-v1").errors(body):
        raise _refused([_told(error) for error in errors])
    return cast("Mapping[str, Any]", body)


# What members must be, in the words of somebody who writes a table; the schema has it as alternatives and patterns.
_FORMS: Final = (
    (r"\.windows\.(refund|return)_days", "a number of days or never; days are whole, from 0 to 36500"),
    (r"\.windows\.(free|locked)_days", "a number of days, whole and from 0 to 36500"),
    (r"\.last_verified", "a day such as 2026-11-27, or null"),
    (r"\.region", "a country such as DE, US-CA, or *"),
    (r"\.plan", "a plan in small letters with hyphens, such as final-sale, or *"),
    (r"\.vendor", "a vendor in small letters with hyphens, such as example-store"),
    (r"\.conditions\[\d+\]\.name", "small letters, digits and _, such as bought_directly"),
    (
        r"\.offers",
        "none, or an object with trial_days, from 1 to 3650, and card_required, which is true, false or null",
    ),
)
_FORMED: Final = frozenset(("anyOf", "pattern", "type", "too_small", "too_large"))


def _told(error: FieldError) -> FieldError:
    """An error of the schema in those words."""
    form = next((form for end, form in _FORMS if re.search(f"{end}$", error.field)), None)
    return error if form is None or error.code not in _FORMED else replace(error, message=f"It must be {form}.")


def _refused(errors: Sequence[FieldError]) -> MaterialRefused:
    return MaterialRefused("POLICY_TABLE_INVALID", to_mend("The file is not a policy table", errors), errors)


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


def _faults(body: Mapping[str, Any], service: str, today: date) -> Iterator[FieldError]:
    if body["service"] != service:
        yield FieldError("service", "const", f"It must be {service!r}, as the file's name says.")
    keys = Counter(_key(entry) for entry in body["entries"])
    called: dict[str, set[str]] = {}
    for entry in body["entries"]:
        for name in (entry["vendor"], _slug(entry["name"])):
            called.setdefault(name, set()).add(entry["vendor"])
    for index, entry in enumerate(body["entries"]):
        where = f"entries[{index}]"
        if keys[_key(entry)] > 1:
            what = f"Several entries are for {', '.join(_key(entry))}. Keep one of them."
            yield FieldError(where, "duplicate", what)
        if len(vendors := called[_slug(entry["name"])]) > 1:
            what = f"The vendors {' and '.join(sorted(vendors))} would match this name. Give each vendor its own name."
            yield FieldError(f"{where}.name", "conflict", what)
        faults = (*_entry_faults(entry, service), *_contradictions(entry, today))
        yield from (FieldError(f"{where}.{name}", code, text) for name, code, text in faults)


def _key(entry: Entry) -> tuple[str, str, str]:
    return entry["vendor"], entry["region"], entry["plan"]


def _entry_faults(entry: Entry, service: str) -> Iterator[tuple[str, str, str]]:
    for name in ("windows", "penalties", "offers"):
        if name in entry and name not in _TERMS[service]:
            yield name, "unknown_field", f"A table of {service} has no {name}. Remove it."
    for name in entry.get("windows", {}):
        if name not in _WINDOWS[service] and "windows" in _TERMS[service]:
            known = " and ".join(_WINDOWS[service])
            yield f"windows.{name}", "unknown_field", f"A table of {service} has only {known}. Remove it."
    names = Counter(condition["name"] for condition in entry.get("conditions", []))
    if any(count > 1 for count in names.values()):
        yield "conditions", "duplicate", "Two conditions have the same name. Keep one."
    mode = entry["decision_mode"]
    if (mode == "conditional") != bool(entry.get("conditions")):
        yield (
            "conditions",
            "conflict",
            "Only entries with decision_mode conditional have conditions, and they must have some.",
        )
    if mode == _REVIEW_ONLY:
        return
    if entry["last_verified"] is None:
        what = f"decision_mode {mode} needs the day on which the source was read. Add it, or use review_only."
        yield "last_verified", "required", what
    yield from (
        (name, "required", f"decision_mode {mode} needs this field. Add it.") for name in _missing(entry, service)
    )


def _contradictions(entry: Entry, today: date) -> Iterator[tuple[str, str, str]]:
    """What an entry says that cannot be so."""
    if entry["region"] != ANY and not near(entry["region"]):
        what = f"It must be a country such as DE, US-CA, or *; ISO 3166-1 has no {entry['region'][:2]}."
        yield "region", "country", what
    if _is_to_come(entry, today):
        yield "last_verified", "future", "last_verified is in the future. Correct it."
    windows = entry.get("windows", {})
    free, locked = windows.get("free_days"), windows.get("locked_days")
    if free is not None and locked is not None and free < locked:
        what = (
            f"It ends before locked_days, so canceling would never be free: free_days is {free}, locked_days is "
            f"{locked}. Correct one of them, or use review_only."
        )
        yield "windows.free_days", "conflict", what
    if free is not None and entry.get("penalties") == []:
        what = "Canceling later has a cost, but penalties is empty. Add the penalty, or remove free_days."
        yield "windows.free_days", "conflict", what


def _missing(entry: Entry, service: str) -> Iterator[str]:
    """The terms without which an entry carries no verdict."""
    if service in ("refund", "return") and not entry.get("windows"):
        yield f"windows.{service}_days"
    if service == "cancel" and "penalties" not in entry:
        yield "penalties"
    if service == "trial" and "offers" not in entry:
        yield "offers"


def _is_to_come(entry: Entry, today: date) -> bool:
    """Whether the verification is on a day to come. The day after today is none: it has begun elsewhere."""
    verified = entry["last_verified"]
    return verified is not None and date.fromisoformat(verified) > today + timedelta(days=1)


def age_in_days(entry: Entry, today: date) -> int | None:
    """How many days ago an entry was verified; None where it never was, or where its day is still to come."""
    verified = entry["last_verified"]
    if verified is None or _is_to_come(entry, today):
        return None
    return max(0, (today - date.fromisoformat(verified)).days)
