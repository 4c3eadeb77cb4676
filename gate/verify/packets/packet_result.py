"""The result of verifying a packet: its checks, and the specification's four steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypedDict

from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, Kind
from gate.verify.faults import Fault, shown
from gate.verify.result import Verification, VerificationResult

MAX_FAILURES: Final = 50
"""How many failures a result lists at most. After as many failures, the check of a part stops."""

STEPS: Final = ("packet_hash", "decision_record", "execution_and_outcome_hashes", "intelligence_and_chain")
"""The steps of the specification, in its order."""

Collection: TypeAlias = Literal["execution_receipts", "outcome_records"]

COLLECTIONS: Final[tuple[tuple[Collection, Kind], ...]] = (
    ("execution_receipts", EXECUTIONS),
    ("outcome_records", OUTCOMES),
)
"""The fields of a packet that contain reports, with their kinds."""


@dataclass(slots=True)
class Step:
    """The result of one step.

    Attributes:
        holds: True if it holds, False if it fails, None if it was skipped.
        failed: The names of the failed checks, among the first `MAX_FAILURES` of the packet.
    """

    holds: bool | None = None
    failed: list[str] = field(default_factory=list)


class StepResult(TypedDict):
    """The result of a step as services and commands return it."""

    holds: bool | None
    failed: list[str]


class PacketVerificationResult(VerificationResult):
    """The result of verifying a packet as services and commands return it."""

    steps: dict[str, StepResult]


@dataclass(slots=True)
class PacketVerification(Verification):
    """The result of verifying a packet: that of a record, with the four steps.

    Attributes:
        steps: The four steps by name.
        changed: The number of failed checks that show a change.
        unauthentic: The number of failed checks of signatures and keys.
        unlinked: The places of reports whose link is not in the packet, so only their own hash protects them.
        unflagged: The places of receipts that lack the flag `ACTION_TAKEN_MISMATCH`.
        vouched: The chain position up to which a trusted checkpoint covers the retained links; 0 if none does.
        unsigned: The places of reports that no such checkpoint covers, including those in `unlinked`.
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
        """Adds a failed check."""
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
        """Adds the first faults of one part, and a check with its name. Returns whether it has no fault."""
        before = self.changed
        for fault in itertools.islice(faults, MAX_FAILURES):
            self.fail(step, fault)
        sound = self.changed == before
        self.checks[name] = sound
        self.steps[step].holds = sound and self.steps[step].holds is not False
        return sound

    def note(self, step: str, name: str, holds: bool | None) -> None:
        """Adds a check of a signature or key, which is None if it was skipped."""
        if holds is False:
            self.fail(step, Fault(name), authenticity=True)
        else:
            self.checks[name] = holds

    def note_unlinked(self, place: str) -> None:
        """Adds a check that says that the link of a report is not in the packet."""
        self.unlinked.append(place)
        self.checks[unlinked_check(place)] = None

    def note_unflagged(self, place: str) -> None:
        """Adds a check that says that a receipt lacks the flag `ACTION_TAKEN_MISMATCH`, as in earlier releases."""
        self.unflagged.append(place)
        self.checks[flags_check(place)] = None

    def note_unbound(self, place: str) -> None:
        """Adds a check for a field that only the hash of the report's request covers, which no packet contains."""
        self.checks[place] = None


def unlinked_check(place: str) -> str:
    """The name of the check, always None, for a report whose link is not in the packet."""
    return f"{place}.audit_chain.link"


def flags_check(place: str) -> str:
    """The name of the check of a receipt's flags, which is None or False if they do not follow from the receipt."""
    return f"{place}.flags"
