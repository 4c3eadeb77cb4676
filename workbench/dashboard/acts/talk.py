"""The messages of a browser while somebody works on a page, and the answers to them.

A message is JSON, `{n, act, ...}`; its answer has the same `n`. Acts run one after the other. Some acts only send the
latest state of something, such as the text of a draft: the last of these in the queue replaces those before it.
User, role, and scope are looked up for each act.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gate.errors import GateError, MaterialRefused
from workbench.dashboard.acts.routes import ACTS, LATEST
from workbench.dashboard.acts.turn import MAX_MESSAGE, Answer, Seat, Turn
from workbench.dashboard.store.access import SIGNED_OUT, access
from workbench.dashboard.views.location import Location

if TYPE_CHECKING:
    from bokeh.document import Document

    from workbench.dashboard.pages.session import Services

_MOST_WAITING: Final = 20
_MOST_ERRORS: Final = 3


class Talk:
    """The acts of one browser's session."""

    def __init__(self, services: Services, handle: str, tell: Callable[[str], None]) -> None:
        """Has heard nothing yet.

        Args:
            services: What the session works with.
            handle: The handle of the signed-in session.
            tell: Sends an answer to the browser; from any thread.
        """
        self._services: Final = services
        self._handle: Final = handle
        self._tell: Final = tell
        self._seat: Final = Seat(self._tell_unasked)
        # Where the reader went on to another page stands None.
        self._waiting: list[tuple[dict[str, Any], str] | None] = []
        self._answering = False
        self._told = 0

    def hear(self, document: Document, said: str, url: str) -> None:
        """Takes a message.

        Args:
            document: The session's document.
            said: The message.
            url: The page that it was said on.
        """
        message = _read(said)
        if message is None:
            return
        if message["act"] in LATEST:
            self._drop_waiting(message["act"])
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append((message, url))
        if not self._answering:
            self._answering = True
            self._services.later(document, self._answer_waiting)

    def leave(self) -> None:
        """Ends the work for a page whose reader went to another one; its acts that still wait are done before."""
        if not self._answering:
            self._seat.leave()
        elif not self._waiting or self._waiting[-1] is not None:
            self._waiting.append(None)

    def close(self) -> None:
        """Ends the work for a page that was closed, and the work that an act under way still begins."""
        self._seat.leave()
        self.leave()

    def _drop_waiting(self, act: str) -> None:
        """Drops the waiting acts of this name on the same page."""
        page = max((at + 1 for at, each in enumerate(self._waiting) if each is None), default=0)
        rest = [each for each in self._waiting[page:] if each is not None and each[0]["act"] != act]
        self._waiting[page:] = rest

    async def _answer_waiting(self) -> None:
        try:
            while self._waiting:
                waiting = self._waiting.pop(0)
                if waiting is None:
                    self._seat.leave()
                    continue
                message, url = waiting
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._services.executor, partial(self._answer, message, url))
                self._send({**answer, "n": message["n"]})
        finally:
            self._answering = False

    def _answer(self, message: dict[str, Any], url: str) -> Answer:
        services = self._services
        try:
            who = access(services.user(self._handle), Location.read(url).scope)
            turn = Turn(services.store, services.workshop, services.proofs, who, message, self._seat, services.clock())
            return ACTS[message["act"]](turn)
        except GateError as error:
            return {"fault": _said(error), "signed_out": error.code == SIGNED_OUT}
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            services.observer.failed("act", error)
            return {"fault": "That did not work. Your input is still here. Load the page again to see what was saved."}

    def _tell_unasked(self, answer: Answer) -> None:
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        # The number makes each answer another value than the one before.
        self._told += 1
        self._tell(json.dumps({**answer, "told": self._told}))


def _said(error: GateError) -> str:
    """What is wrong, with the first members that are."""
    errors = error.errors if isinstance(error, MaterialRefused) else ()
    return " ".join([error.message, *(f"{each.field or 'It'}: {each.message}" for each in errors[:_MOST_ERRORS])])


def _read(said: str) -> dict[str, Any] | None:
    if len(said) > MAX_MESSAGE:
        return None
    try:
        message = json.loads(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("act") not in ACTS or not isinstance(message.get("n"), int):
        return None
    return message
