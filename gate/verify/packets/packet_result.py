"""What the verification of a packet found: its checks, and the specification's four steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypedDict

from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, Kind
from gate.verify.faults import Fault, shown
from gate.verify.result import Verification, VerificationResult

MAX_FAILURES: Final = 50
"""How many failures a result names, and after how many of them a part is looked at no further."""

STEPS: Final = ("packet_hash", "decision_record", "execution_and_outcome_hashes", "intelligence_and_chain")
"""The steps of the specification, in its order."""

Collection: TypeAlias = Literal["execution_receipts", "outcome_records"]

COLLECTIONS: Final[tuple[tuple[Collection, Kind], ...]] = (
    ("execution_receipts", EXECUTIONS),
    ("outcome_records", OUTCOMES),
)
"""The members of a packet that hold reports, with their kinds."""


@dataclass(slots=True)
class Step:
    """What one step found.

    Attributes:
        holds: True it holds, False it does not, None it could not be made.
        failed: The names of the checks that failed, of the first `MAX_FAILURES` of the packet.
    """

    holds: bool | None = None
    failed: list[str] = field(default_factory=list)


class StepResult(TypedDict):
    """A step as it is answered."""

    holds: bool | None
    failed: list[str]


class PacketVerificationResult(VerificationResult):
    """The verification of a packet as it is answered."""

    steps: dict[str, StepResult]


@dataclass(slots=True)
class PacketVerification(Verification):
    """What the verification of a packet found: as that of a record, with its steps.

    Attributes:
        steps: The four steps by name.
        changed: How many checks failed that tell of a change.
        unauthentic: How many failed that tell of a signature or its key.
        unlinked: Where the reports stand whose link is not in the packet, so that only their own hash speaks for them.
        unflagged: Where the receipts stand that lack the flag ACTION_TAKEN_MISMATCH.
        vouched: The chain position up to which a checkpoint that a trusted key signed saw the retained links; 0 where
            there is none.
        unsigned: Where the reports stand that no such checkpoint covers, those in `unlinked` among them.
    """

    steps: dict[str, Step] = field(default_factory=lambda: {name: Step() for name in STEPS})
    changed: int = 0
    unauthentic: int = 0
    unlinked: list[str] = field(default_factory=list)
    unflagged: list[str] = field(default_factory=list)
    vouched: int = 0
    unsigned: list[str] = field(default_factory=list)

    def to_dict(self) -> PacketVerificationResult:
        """As `Verification.to_dict`, with `steps`."""
        steps: dict[str, StepResult] = {
            name: {"holds": step.holds, "failed": step.failed} for name, step in self.steps.items()
        }
        return {**Verification.to_dict(self), "steps": steps}

    def fail(self, step: str, fault: Fault, *, authenticity: bool = False) -> None:
        """Records that a check failed."""
        self.unauthentic += authenticity
        self.changed += not authenticity
        self.steps[step].holds = False
        if self.changed + self.unauthentic > MAX_FAILURES:
            return
        self.steps[step].failed.append(fault.place)
        self.checks[fault.place] = False
        if fault.compared:
            self.expected[fault.place], self.actual[fault.place] = shown(fault.expected), shown(fault.actual)

    def examine(self, step: str, name: str, faults: Iterable[Fault]) -> bool:
        """Records the first faults of one part, and under its name whether it has none, which it returns."""
        before = self.changed
        for fault in itertools.islice(faults, MAX_FAILURES):
            self.fail(step, fault)
        sound = self.changed == before
        self.checks[name] = sound
        self.steps[step].holds = sound and self.steps[step].holds is not False
        return sound

    def note(self, step: str, name: str, holds: bool | None) -> None:
        """Records a check about authenticity, which is None where it could not be made."""
        if holds is False:
            self.fail(step, Fault(name), authenticity=True)
        else:
            self.checks[name] = holds

    def note_unlinked(self, place: str) -> None:
        """Records that the link of a report is not in the packet."""
        self.unlinked.append(place)
        self.checks[unlinked_check(place)] = None

    def note_unflagged(self, place: str) -> None:
        """Records that a receipt lacks the flag ACTION_TAKEN_MISMATCH, which earlier releases did not set."""
        self.unflagged.append(place)
        self.checks[flags_check(place)] = None

    def note_unbound(self, place: str) -> None:
        """Records a member of a report that only the request of the report binds, which no packet holds."""
        self.checks[place] = None


def unlinked_check(place: str) -> str:
    """The name of the check, always None, that tells of a report whose link is not in the packet."""
    return f"{place}.audit_chain.link"


def flags_check(place: str) -> str:
    """The name of the check of a receipt's flags: None or False where they are not those that follow."""
    return f"{place}.flags"
