"""Keeps checkpoints while the service runs, in a thread of `gate serve`.

The thread checks every chain twice a minute, and once more after the last request was answered. The workers read its
state from a small file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NotRequired, TypedDict

import orjson
from structlog.typing import FilteringBoundLogger

from gate.clock import utc_now
from gate.errors import GateError
from gate.ids import parse_timestamp, timestamp
from gate.instance.checkpoints import Refusal, Round
from gate.instance.instance import Instance, open_instance
from gate.instance.keys import write_private
from gate.instance.settings import Settings

STATE_VARIABLE: Final = "GATE_CHECKPOINT_STATE"
"""The environment variable with the path of the state file."""

INTERVAL: Final = 30.0
"""Seconds between two rounds, so that every minute with writes has one."""

_OVERDUE_SECONDS: Final = 4 * INTERVAL


class KeeperState(TypedDict):
    """The result of the last round.

    It states whether checkpoints are kept at all (not without receipt signing), and when all chains were last checked
    (UTC, or None). It also has the number of chains that contradict their last kept checkpoint, and the reason if no
    checkpoint was kept.
    """

    kept: bool
    looked_at: str | None
    refused: int
    reason: NotRequired[str]


class Keeper:
    """Keeps the checkpoints of an instance in a separate thread while a `with` block runs."""

    def __init__(
        self,
        settings: Settings,
        state: Path,
        log: FilteringBoundLogger,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Composes a keeper.

        Args:
            settings: The instance's settings.
            state: The file for the result of the last round.
            log: The log for refusals.
            interval: Seconds between two rounds.
            clock: Gives the current moment.
        """
        self._settings = settings
        self._file = state
        self._log = log
        self._interval = interval
        self._clock = clock
        self._instance: Instance | None = None
        self._state: KeeperState = {"kept": True, "looked_at": None, "refused": 0}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def __enter__(self) -> Keeper:
        """Starts the thread, whose first round is immediate."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread, after a last round."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._round()
            while not self._stopping.wait(self._interval):
                self._round()
            self._round()
        finally:
            if self._instance is not None:
                self._instance.close()

    def _round(self) -> None:
        before = self._state
        try:
            if self._instance is None:
                self._instance = open_instance(self._settings)
            found = self._instance.checkpoints.keep(self._clock())
        except (GateError, OSError) as error:
            reason = error.message if isinstance(error, GateError) else f"{error}."
            self._state = {**before, "reason": reason}
        else:
            self._state = state_of(found, timestamp(self._clock()))
            if found is not None:
                # What cannot be told now is told in a later round.
                with suppress(GateError):
                    tell(self._instance, found, self._clock())
        self._log_change(before)
        # The next round writes the file again.
        with suppress(OSError):
            write_private(self._file, orjson.dumps(self._state))

    def _log_change(self, before: KeeperState) -> None:
        was, now = before.get("reason"), self._state.get("reason")
        if now is not None and now != was:
            self._log.error("checkpoints_refused", reason=now, chains=self._state["refused"])
        elif now is None and was is not None:
            self._log.info("checkpoints_kept")


def tell(instance: Instance, found: Round, now: datetime) -> None:
    """Records webhook events about kept checkpoints, and about chains that contradict theirs.

    Args:
        instance: The instance.
        found: The result of a round.
        now: The current moment.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    log = instance.checkpoints.log
    refused = {refusal.chain_id for refusal in found.refused}
    kept = [log.kept(chain_id) for chain_id in log.chain_ids() if chain_id not in refused]
    # From the log, not from the round: a process that died after it kept a checkpoint has not told of it.
    instance.webhooks.tell_checkpoints([checkpoint for checkpoint in kept if checkpoint is not None], now)
    instance.webhooks.tell_broken([(chain_id, "checkpoint", None) for chain_id in sorted(refused)], now)


def state_of(found: Round | None, at: str) -> KeeperState:
    """The state after a round.

    Args:
        found: The result of the round; None without signing.
        at: UTC timestamp.
    """
    if found is None:
        return {"kept": False, "looked_at": at, "refused": 0}
    state: KeeperState = {"kept": True, "looked_at": at, "refused": len(found.refused)}
    if found.refused:
        state["reason"] = _refused(found.refused)
    return state


def read_state(now: datetime) -> KeeperState:
    """The last state of this service's keeper. `kept` is false if no keeper runs.

    If the keeper has checked nothing for two minutes, `reason` says so.

    Args:
        now: The current moment.
    """
    file = os.environ.get(STATE_VARIABLE)
    if not file:
        return {"kept": False, "looked_at": None, "refused": 0}
    try:
        state: KeeperState = orjson.loads(Path(file).read_bytes())
    except FileNotFoundError:
        return {"kept": True, "looked_at": None, "refused": 0}
    except (OSError, ValueError):
        return {"kept": True, "looked_at": None, "refused": 0, "reason": "The state of the checkpoints is unreadable."}
    looked_at = state["looked_at"]
    overdue = looked_at is not None and (now - parse_timestamp(looked_at)).total_seconds() > _OVERDUE_SECONDS
    if overdue and "reason" not in state:
        state["reason"] = f"No chain has been checked since {looked_at}; restart the service."
    return state


def _refused(refused: tuple[Refusal, ...]) -> str:
    chains = "1 chain does" if len(refused) == 1 else f"{len(refused)} chains do"
    return (
        f"{chains} not contain the last checkpoint that was kept, so none is signed: the history was cut or rewritten. "
        f"Run `gate chain check`."
    )
