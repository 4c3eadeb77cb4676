"""Checks whether the owner's resolution permits a held action. Pure.

    judged = judge(resolution, record, trust, now=now, max_age=None)
    judged.finding is Finding.GRANTED         # the body may begin

Only a grant permits the action. It must verify with a currently active key, be about this record and its action, and
be valid now by this machine's clock.
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
    """The result of checking a resolution.

    Attributes:
        GRANTED: It permits the action.
        REFUSED: The owner refused the action.
        EXPIRED: Nobody answered in time.
        ENDED: A grant that has ended.
        AGED: A grant that is older than the caller allows.
        AHEAD: A grant that is dated further in the future than clocks may differ.
        RETIRED: A grant whose key has been retired since it signed.
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
    """A resolution with the result of its check.

    Attributes:
        finding: The result.
        resolution: The resolution. If it verifies, it has no unknown fields.
        verification: The details of its verification.
    """

    finding: Finding
    resolution: Resolution
    verification: Verification

    def holds(self, now: datetime, max_age: float | None) -> bool:
        """Whether a grant also permits the action at another moment."""
        return self.finding is Finding.GRANTED and in_time(self.resolution, now, max_age) is Finding.GRANTED


def judge(resolution: object, record: DecisionRecord, trust: Trust, *, now: datetime, max_age: float | None) -> Judged:
    """Checks a resolution of a verified record. Pure.

    Args:
        resolution: The resolution from the response.
        record: The record of the decision.
        trust: The keys that it must be signed with.
        now: The time by this machine's clock.
        max_age: The maximum age of a grant, in seconds. None: it is valid until it ends.
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
    """Checks the time of a grant: `GRANTED`, `ENDED`, `AGED` or `AHEAD`. Pure.

    Args:
        grant: A grant that verifies.
        now: The time by this machine's clock.
        max_age: As for `judge`. A grant may also be dated that far ahead, at most `MAX_AGE`, because clocks differ.
    """
    if now >= parse_timestamp(str(grant.get("expires_at"))):
        return Finding.ENDED
    age = (now - parse_timestamp(grant["recorded_at"])) / timedelta(seconds=1)
    if -age > min(MAX_AGE, max_age or MAX_AGE):
        return Finding.AHEAD
    return Finding.AGED if max_age is not None and age > max_age else Finding.GRANTED


def _is_retired(grant: Resolution, trust: Trust, now: datetime) -> bool:
    """Whether the key of a verified grant is retired, because the holder of a replaced key can date a grant freely.

    A single pinned key and a secret have no state; they count as active.
    """
    known = None if trust.receipt_keys is None else trust.receipt_keys.find(str(grant.get("key_id")))
    if known is None:
        return False
    return known.status != "active" or (known.not_after is not None and now > parse_timestamp(known.not_after))
