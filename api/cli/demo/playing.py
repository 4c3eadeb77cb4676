"""Plays a scope's year: the product's own code decides, resolves, and reports, with the clock at each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.cli.demo.owners import Resolve
from api.cli.demo.reports import Report
from api.cli.demo.scenario import Decide, Event, Register
from gate.decisions.decide import Decision
from gate.errors import AdapterFailed
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority
from gate.records.reports.receipts import KINDS
from gate.records.reports.resolution import RESOLUTIONS

_TOLD_EVERY: Final = 20
# An adapter has a second, which a busy machine may use up without it; nothing is recorded then.
_TRIES: Final = 20
_TOO_LATE: Final = "TRUSTED_ADAPTER_EXECUTION_TIMEOUT"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a scope.

    Attributes:
        caller: Decides and reports.
        owner: Resolves; None if held decisions have no owner.
    """

    caller: Authority
    owner: Authority | None


class _Player:
    """A scope of an instance, at the moment of the current event.

    Attributes:
        entries: The number of entries of each type so far.
    """

    def __init__(self, instance: Instance, scope: str, keys: Keys) -> None:
        self.entries: Final = dict.fromkeys(("decision", *(kind.entry_type for kind in (*KINDS, RESOLUTIONS))), 0)
        self._scope = scope
        self._keys = keys
        self._gate = instance.gate(self._clock)
        self._lifecycle = instance.lifecycle(self._clock)
        self._resolutions = instance.resolutions(self._clock)
        # The decisions that more is to come of: their ids, and how much more.
        self._ids: dict[int, str] = {}
        self._to_come: dict[int, int] = {}
        self._moment: datetime

    def play(self, event: Event) -> None:
        self._moment = event.moment
        if isinstance(event, Register):
            self._gate.sources.register(self._keys.caller.scope_id, event.rulebook, event.dependency)
        elif isinstance(event, Decide):
            self._decide(event)
        elif isinstance(event, Report):
            self._lifecycle.report(self._keys.caller, event.kind, self._id(event.number), event.body)
            self.entries[event.kind.entry_type] += 1
        else:
            self._resolve(event)
            self.entries[RESOLUTIONS.entry_type] += 1

    def _clock(self) -> datetime:
        return self._moment

    def _decide(self, event: Decide) -> None:
        decision = self._decided(event)
        if event.reports:
            self._ids[event.number], self._to_come[event.number] = decision.record["decision_id"], event.reports
        self.entries["decision"] += 1

    def _decided(self, event: Decide) -> Decision:
        request_id = f"req_{self._scope}_{event.number}"
        for _ in range(_TRIES - 1):
            try:
                return self._gate.decide(self._keys.caller, event.request, request_id=request_id)
            except AdapterFailed as error:
                if error.code != _TOO_LATE:
                    raise
        return self._gate.decide(self._keys.caller, event.request, request_id=request_id)

    def _resolve(self, event: Resolve) -> None:
        decision_id = self._id(event.number)
        if event.body is None:
            # Of this decision alone: other processes are at other moments of the year.
            self._resolutions.expire(self._keys.caller.scope_id, decision_id)
        elif self._keys.owner is not None:
            self._resolutions.resolve(self._keys.owner, decision_id, event.body)

    def _id(self, number: int) -> str:
        """The id of a decision, for one of the things that were to come of it."""
        self._to_come[number] -= 1
        if self._to_come[number]:
            return self._ids[number]
        del self._to_come[number]
        return self._ids.pop(number)


def play(
    instance: Instance, scope: str, keys: Keys, events: Iterable[Event], add: Callable[[int], bool]
) -> dict[str, int]:
    """Plays events in the order of time.

    Args:
        instance: The instance.
        scope: The name of the scope.
        keys: The keys of the scope.
        events: The events.
        add: Called with the number of decisions made since the last call; returns whether to continue.

    Returns:
        The number of entries of each type.
    """
    player = _Player(instance, scope, keys)
    told = 0
    for event in events:
        player.play(event)
        made = player.entries["decision"]
        if made - told >= _TOLD_EVERY:
            told = made
            if not add(_TOLD_EVERY):
                break
    add(player.entries["decision"] - told)
    return player.entries
