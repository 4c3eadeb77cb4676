"""The state of the workers, and the policy for restarts.

The parent process keeps a `Roster` and writes it to a file that its workers read, so that each of them can report it:

    {"workers": [{"worker": 1, "running": true, "since": 81250.2, "streak": 0}, ...], "deaths": 3,
     "last_deaths": [{"worker": 2, "at": "2026-11-24T20:40:07.512Z", "cause": "signal SIGKILL",
                      "ran_seconds": 4.2}, ...]}

Seconds are those of the machine's monotonic clock, which its processes share. After the first death, a worker restarts
at once. A worker that dies again within `STABLE_SECONDS` waits 0.5 seconds, and then twice as long each time, up to
`LONGEST_PAUSE`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from structlog.typing import FilteringBoundLogger

from api.http.logs import places
from gate.ids import timestamp

STABLE_SECONDS: Final = 30.0
"""After this time a worker has recovered, and its earlier deaths no longer count."""

CRASH_LOOP: Final = 3
"""A worker is crash-looping from this many deaths on, none of them `STABLE_SECONDS` after its start."""

SHORT_SECONDS: Final = 10.0
"""Fewer workers than requested may run for this time before readiness degrades. A restart takes a few seconds."""

LONGEST_PAUSE: Final = 10.0
_FIRST_PAUSE: Final = 0.5
_LAST_DEATHS: Final = 10
_FILE: Final = "workers.json"
_MAX_REASON: Final = 500


class Slot(TypedDict):
    """A worker: whether its process is alive, since when (monotonic seconds), and its deaths in a row."""

    worker: int
    running: bool
    since: float
    streak: int


class Death(TypedDict):
    """An unexpected end of a worker: its timestamp, its cause, and how long the worker had run."""

    worker: int
    at: str
    cause: str
    ran_seconds: float


class Facts(TypedDict):
    """The state of all workers, as in the file."""

    workers: list[Slot]
    deaths: int
    last_deaths: list[Death]


class WorkersPart(TypedDict):
    """The part of readiness about workers: how many run, how many should run, and how the last ones died."""

    ready: bool
    reason: NotRequired[str]
    asked: int
    running: int
    crash_looping: list[int]
    deaths: int
    last_deaths: list[Death]


class Roster:
    """The workers of one server. Seconds are monotonic and passed in; workers are numbered from 1."""

    def __init__(self, workers: int, now: float) -> None:
        """Begins with all workers running."""
        slots: list[Slot] = [
            {"worker": number, "running": True, "since": now, "streak": 0} for number in range(1, workers + 1)
        ]
        self.facts: Facts = {"workers": slots, "deaths": 0, "last_deaths": []}
        self._restart_at: dict[int, float] = {}

    def died(self, worker: int, cause: str, at: datetime, now: float) -> tuple[Death, float]:
        """Notes a death.

        Args:
            worker: The worker.
            cause: Why it died, as `cause_of` says it.
            at: The moment, for people.
            now: The moment in monotonic seconds.

        Returns:
            The death, and the pause until the worker is due for a restart, in seconds.
        """
        slot = self.facts["workers"][worker - 1]
        ran = max(0.0, now - slot["since"]) if slot["running"] else 0.0
        streak = 1 if ran >= STABLE_SECONDS else slot["streak"] + 1
        slot["running"], slot["since"], slot["streak"] = False, now, streak
        death: Death = {"worker": worker, "at": timestamp(at), "cause": cause, "ran_seconds": round(ran, 3)}
        self.facts["deaths"] += 1
        self.facts["last_deaths"] = [*self.facts["last_deaths"], death][-_LAST_DEATHS:]
        pause = pause_after(streak)
        self._restart_at[worker] = now + pause
        return death, pause

    def started(self, worker: int, now: float) -> None:
        """Notes that a worker was started again; does nothing for one that runs."""
        slot = self.facts["workers"][worker - 1]
        if not slot["running"]:
            slot["running"], slot["since"] = True, now
            self._restart_at.pop(worker, None)

    def due(self, now: float) -> list[int]:
        """The dead workers whose pause is over."""
        return sorted(worker for worker, at in self._restart_at.items() if at <= now)

    def next_restart(self, now: float) -> float | None:
        """The number of seconds until the next restart is due; None if no worker is dead."""
        return max(0.0, min(self._restart_at.values()) - now) if self._restart_at else None


def pause_after(streak: int) -> float:
    """The pause in seconds before a restart, after a number of deaths in a row."""
    return 0.0 if streak <= 1 else min(_FIRST_PAUSE * 2.0 ** min(streak - 2, 16), LONGEST_PAUSE)


def cause_of(exit_code: int, reason: str | None) -> str:
    """How a process ended, in words.

    Args:
        exit_code: Its exit code; below zero the signal that killed it.
        reason: What it said about its own end, if anything.
    """
    if exit_code >= 0:
        return f"exit code {exit_code}" + (f": {reason}" if reason else "")
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"


def workers_part(facts: Facts, now: float) -> WorkersPart:
    """The part of readiness about workers, at a moment in monotonic seconds."""
    slots = facts["workers"]
    running = [slot for slot in slots if slot["running"]]
    looping = [slot["worker"] for slot in slots if _is_crash_looping(slot, now)]
    part: WorkersPart = {
        "ready": True,
        "asked": len(slots),
        "running": len(running),
        "crash_looping": looping,
        "deaths": facts["deaths"],
        "last_deaths": facts["last_deaths"],
    }
    reason = _reason(slots, looping, facts["last_deaths"], now)
    return part if reason is None else {**part, "ready": False, "reason": reason}


def write_facts(directory: Path, facts: Facts) -> None:
    """Replaces the file that workers read, in one step."""
    whole = directory / f"{_FILE}.new"
    whole.write_text(json.dumps(facts))
    whole.replace(directory / _FILE)


def read_facts(directory: Path) -> Facts | None:
    """The state that the parent process wrote last; None if there is none or it is unreadable."""
    try:
        found: Facts = json.loads((directory / _FILE).read_text())
    except (OSError, ValueError):
        return None
    return found


@contextmanager
def starting(directory: Path, log: FilteringBoundLogger) -> Iterator[None]:
    """Ends this process if the block raises, and leaves the reason for the log and for the parent process.

    Args:
        directory: The folder that the parent process reads.
        log: The log.

    Raises:
        SystemExit: The block raised. Its message is not logged, because it could quote a secret.
    """
    try:
        yield
    except Exception as error:
        kind, where = type(error).__qualname__, places(error)
        log.error("worker_not_started", error_type=kind, places=where)
        with suppress(OSError):
            # Anyone may read the status: it names the module and not its folder.
            reason = f"{kind} at {where[-1].rpartition('/')[2]}"
            (directory / _reason_file(os.getpid())).write_text(reason[:_MAX_REASON])
        raise SystemExit(1) from error


def take_reason(directory: Path, pid: int) -> str | None:
    """Takes the reason that a dead process left, and removes it; None if there is none."""
    file = directory / _reason_file(pid)
    try:
        reason = file.read_text()
        file.unlink()
    except (OSError, ValueError):
        return None
    return reason


def _reason_file(pid: int) -> str:
    return f"worker-{pid}.reason"


def _is_crash_looping(slot: Slot, now: float) -> bool:
    recovered = slot["running"] and now - slot["since"] >= STABLE_SECONDS
    return slot["streak"] >= CRASH_LOOP and not recovered


def _reason(slots: Sequence[Slot], looping: Sequence[int], deaths: Sequence[Death], now: float) -> str | None:
    if looping:
        worker = looping[0]
        last = next((death["cause"] for death in reversed(deaths) if death["worker"] == worker), "unknown")
        return (
            f"Worker {worker} keeps dying: {slots[worker - 1]['streak']} times in a row (last: {last}). "
            f"The service restarts it with growing pauses."
        )
    dead = [slot["since"] for slot in slots if not slot["running"]]
    if dead and now - min(dead) >= SHORT_SECONDS:
        return f"Only {len(slots) - len(dead)} of {len(slots)} workers run, for {now - min(dead):.0f} seconds."
    return None
