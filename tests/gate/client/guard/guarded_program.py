"""A program that guards an action, in threads or in an event loop, and that can be made to die at any step.

The action appends a line to a file: what stands there was done, whatever else is known of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final, Protocol

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    Client,
    Delivery,
    Intent,
    Recovery,
    Report,
    SqliteStore,
    State,
)
from gate.client.guard.permit import BasePermit
from gate.errors import GateError

Body = Callable[[BasePermit], None]

PATIENT: Final = 60.0
"""A time-out that nothing in these tests comes to, in seconds."""


class BodyFailed(Exception):
    """What a body raises."""


class Caller(Protocol):
    """A client, as the tests use it."""

    def attempt(self, body: Body, *, outcome: bool = False, **said: Any) -> Exception | None:
        """Guards a body, and reports an outcome after it where that is wanted; what the caller is told instead. Where
        an `intent_id` is said, that intent is resumed.
        """

    def flush(self, *, again: bool = False) -> Delivery:
        """Delivers what waits."""

    def close(self) -> None:
        """Closes the client."""


class InThread:
    """The client for threads."""

    def __init__(self, url: str, **made: Any) -> None:
        """Makes the client."""
        self._client = Client(url, **made)

    def attempt(self, body: Body, *, outcome: bool = False, **said: Any) -> Exception | None:
        """See `Caller.attempt`."""
        try:
            with (self._client.resume if "intent_id" in said else self._client.guard)(**said) as permit:
                body(permit)
            if outcome:
                permit.outcome("succeeded")
        except (GateError, BodyFailed) as error:
            return error
        return None

    def flush(self, *, again: bool = False) -> Delivery:
        """See `Caller.flush`."""
        return self._client.flush(again=again)

    def close(self) -> None:
        """See `Caller.close`."""
        self._client.close()


class InLoop:
    """The client for asyncio, with an event loop of its own."""

    def __init__(self, url: str, **made: Any) -> None:
        """Makes the client."""
        self._client = AsyncClient(url, **made)
        self._loop = asyncio.Runner()

    def attempt(self, body: Body, *, outcome: bool = False, **said: Any) -> Exception | None:
        """See `Caller.attempt`."""
        return self._loop.run(self._attempt(body, outcome, said))

    async def _attempt(self, body: Body, outcome: bool, said: Mapping[str, Any]) -> Exception | None:
        try:
            async with (self._client.resume if "intent_id" in said else self._client.guard)(**said) as permit:
                body(permit)
            if outcome:
                await permit.outcome("succeeded")
        except (GateError, BodyFailed) as error:
            return error
        return None

    def flush(self, *, again: bool = False) -> Delivery:
        """See `Caller.flush`."""
        return self._loop.run(self._client.flush(again=again))

    def close(self) -> None:
        """See `Caller.close`."""
        self._loop.run(self._client.close())
        self._loop.close()


CALLERS: Final[Mapping[str, Callable[..., Caller]]] = {"Client": InThread, "AsyncClient": InLoop}


@dataclass(frozen=True, slots=True)
class Effects:
    """What was done, in a file.

    Attributes:
        path: The file.
    """

    path: Path

    def do(self, permit: BasePermit) -> None:
        """Does the action, so that it survives whatever comes."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{permit.decision_id}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)

    @property
    def decisions(self) -> list[str]:
        """Under which decisions it was done, once for each time."""
        return self.path.read_text().split() if self.path.exists() else []

    def recover(self, error: AlreadyStarted) -> Recovery:
        """A recovery hook that looks."""
        return Recovery.EXECUTED if self.decisions else Recovery.NOT_EXECUTED


@dataclass(frozen=True, slots=True)
class Setting:
    """What a process is given.

    Attributes:
        kind: The name of its client.
        made: What its client is made of.
        said: What its guards are made of; one is entered after the other.
        effects: Where its actions show.
        dies: The step at which it kills itself: `before` or `after` and a method of the store, or a place in the body.
    """

    kind: str
    made: Mapping[str, Any]
    said: Sequence[Mapping[str, Any]]
    effects: Path
    dies: str = ""


def run(setting: Setting, told: Connection | None = None, meeting: Barrier | None = None) -> None:
    """Guards the actions, and tells what the caller saw of each: a code, or None."""
    effects = Effects(setting.effects)
    made = {**setting.made, "store": MortalStore(setting.made["store"], setting.dies)}
    caller = CALLERS[setting.kind](**made)

    def body(permit: BasePermit) -> None:
        _die_if(setting.dies == "body before its effect")
        effects.do(permit)
        _die_if(setting.dies == "body after its effect")

    seen = []
    for said in setting.said:
        if meeting is not None:
            meeting.wait(PATIENT)
        error = caller.attempt(body, **said)
        seen.append(None if error is None else getattr(error, "code", type(error).__name__))
    caller.flush()
    caller.close()
    if told is not None:
        told.send(seen)


def _die_if(so: bool) -> None:
    if so:
        os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(SqliteStore):
    """A store whose process dies right before or right after one of its methods."""

    def __init__(self, path: str, dies: str) -> None:
        """Takes the file, and when: `before hold`, `after hold` and so on."""
        super().__init__(path)
        self._dies = dies

    def hold(self, intent: Intent, *, instead_of: Intent | None = None) -> bool:
        """See `Store.hold`."""
        with self._dying("hold"):
            return super().hold(intent, instead_of=instead_of)

    def answer(self, intent: Intent, record: bytes, state: State) -> bool:
        """See `Store.answer`."""
        with self._dying("answer"):
            return super().answer(intent, record, state)

    def resolve(self, intent: Intent, resolution: bytes, state: State) -> bool:
        """See `Store.resolve`."""
        with self._dying("resolve"):
            return super().resolve(intent, resolution, state)

    def start(self, intent: Intent, at: str, by: str) -> bool:
        """See `Store.start`."""
        with self._dying("start"):
            return super().start(intent, at, by)

    def finish(self, intent: Intent, report: Report) -> bool:
        """See `Store.finish`."""
        with self._dying("finish"):
            return super().finish(intent, report)

    def delivered(self, report: Report) -> None:
        """See `Store.delivered`."""
        with self._dying("delivered"):
            super().delivered(report)

    @contextmanager
    def _dying(self, name: str) -> Iterator[None]:
        _die_if(self._dies == f"before {name}")
        yield
        _die_if(self._dies == f"after {name}")
