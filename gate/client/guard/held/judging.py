"""Whether the owner's resolution of a held action opens it. Pure.

    judged = judge(resolution, record, trust, now=now, max_age=None)
    judged.finding is Finding.GRANTED         # the body may begin

A grant opens the action where it verifies with a key that is active now, is about this very record and its action, and
is in time by this machine's clock. Nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from gate.client.guard.terms import MAX_AGE
from gate.ids import parse_timestamp

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord, Resolution
    from gate.verify import Trust, Verification
    from gate.verify.reports import ReportedOn


class Finding(Enum):
    """What was found of a resolution.

    Attributes:
        GRANTED: It opens the action.
        REFUSED: Its owner refused the action.
        EXPIRED: Nobody answered in time.
        ENDED: A grant whose time is over.
        AGED: A grant that is older than the caller allows.
        AHEAD: A grant that is dated further in the future than clocks may differ.
        RETIRED: A grant that its key signed in its time, and the key is retired since.
        UNVERIFIED: It does not verify, or its key is compromised or unknown.
        FOREIGN: It verifies for another decision, or for none.
    """

    GRANTED = auto()
    REFUSED = auto()
    EXPIRED = auto()
    ENDED = auto()
    AGED = auto()
    AHEAD = auto()
    RETIRED = auto()
    UNVERIFIED = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class Judged:
    """A resolution, and what was found of it.

    Attributes:
        finding: What was found.
        resolution: The resolution; where it verifies, the members that resolutions have and no others.
        verification: How it verifies.
    """

    finding: Finding
    resolution: Resolution
    verification: Verification

    def holds(self, now: datetime, max_age: float | None) -> bool:
        """Whether a resolution that was found to be a grant opens the action at another moment as well."""
        return self.finding is Finding.GRANTED and in_time(self.resolution, now, max_age) is Finding.GRANTED


def judge(resolution: object, record: DecisionRecord, trust: Trust, *, now: datetime, max_age: float | None) -> Judged:
    """Judges a resolution of a record that verifies. Pure.

    Args:
        resolution: The resolution, as it was answered.
        record: The record of the decision.
        trust: The keys that it must be signed with.
        now: The time by this machine's clock.
        max_age: How long ago a grant may have been made, in seconds; None for as long as it says.
    """
    # Loaded with the first resolution, so that importing the client needs no cryptography.
    from gate.encoding.canonical import with_integers
    from gate.verify.resolution import OPTIONAL, REQUIRED, verify_resolution

    found = verify_resolution(with_integers(cast("Any", resolution)), cast("ReportedOn", record), trust)
    said = cast("Resolution", resolution)
    if not found.verified or found.error is not None:
        is_foreign = found.error == "RESOLUTION_FOREIGN"
        return Judged(Finding.FOREIGN if is_foreign else Finding.UNVERIFIED, said, found)
    # Anybody on the way may have added other members, and a caller's body believes what it reads.
    said = cast("Resolution", {name: value for name, value in said.items() if name in REQUIRED or name in OPTIONAL})
    if said["resolution"] != "granted":
        return Judged(Finding.REFUSED if said["resolution"] == "refused" else Finding.EXPIRED, said, found)
    finding = in_time(said, now, max_age)
    if finding is not Finding.ENDED and _is_retired(said, trust, now):
        finding = Finding.RETIRED
    return Judged(finding, said, found)


def in_time(grant: Resolution, now: datetime, max_age: float | None) -> Finding:
    """Whether a grant is in time: GRANTED, ENDED, AGED or AHEAD. Pure.

    Args:
        grant: A grant that verifies.
        now: The time by this machine's clock.
        max_age: As for `judge`. It is also how far ahead a grant may be dated, at most `MAX_AGE`, for clocks differ.
    """
    if now >= parse_timestamp(str(grant.get("expires_at"))):
        return Finding.ENDED
    age = (now - parse_timestamp(grant["recorded_at"])) / timedelta(seconds=1)
    if -age > min(MAX_AGE, max_age or MAX_AGE):
        return Finding.AHEAD
    return Finding.AGED if max_age is not None and age > max_age else Finding.GRANTED


def _is_retired(grant: Resolution, trust: Trust, now: datetime) -> bool:
    """Whether the key of a grant that verifies signs no more: the holder of one that was replaced can date a grant at
    will.

    A single pinned key and a secret have no state; who pins them says that they are active.
    """
    known = None if trust.receipt_keys is None else trust.receipt_keys.find(str(grant.get("key_id")))
    if known is None:
        return False
    return known.status != "active" or (known.not_after is not None and now > parse_timestamp(known.not_after))
