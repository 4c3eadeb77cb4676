"""Advice: a request of an advisory mode becomes the answer of the upstream, a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from gate.encoding.canonical import canonical, is_plain
from gate.encoding.strict_json import JsonObject
from gate.errors import AdvisoryFailed, ServiceUnavailable
from gate.records.advisory import Advised, advised
from gate.records.documents import AdvisoryEvaluation
from gate.records.request import DecisionRequest
from gate.services.advisory.answers import read_answer
from gate.services.advisory.failures import failed
from gate.services.advisory.questions import read_question
from gate.services.advisory.templates import Template, template
from gate.services.advisory.upstream import Call, Upstream

CALLS: Final = 4
"""How many calls one process makes at a time. Beyond them it answers at once: binding decisions need its threads."""

_RETRY_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class Advice:
    """An answer that fits its question.

    Attributes:
        template: The template that the upstream was asked with.
        evaluation: The answer, as a record holds it.
        said: What it says.
        plain: Whether the evaluation is plain, as `canonical.is_plain` says.
    """

    template: Template
    evaluation: AdvisoryEvaluation
    said: Advised
    plain: bool


class Advisor:
    """Asks the upstream.

    Attributes:
        waiting: What a thread enters while it waits for an answer.
        ready: Whether there is an upstream to ask.
    """

    def __init__(self, upstream: Upstream | None, *, unusable: bool = False) -> None:
        """Takes the upstream; None where none is configured, or where the settings of the one that is are unusable."""
        self.ready: Final = upstream is not None
        self._unusable = unusable
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        self._upstream = upstream
        self._calls = threading.BoundedSemaphore(CALLS)
        self._lock = threading.Lock()
        self._under_way: set[Call] = set()
        self._closed = False

    def advise(self, request: DecisionRequest, *, root: str = "") -> Advice:
        """The answer of the upstream to a request of an advisory mode.

        Args:
            request: The request.
            root: What to call the request in the paths of errors; nothing where empty.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`: it cannot be asked.
            ServiceUnavailable: `SVC_ADVISORY_UNCONFIGURED`, or `SVC_ADVISORY_BUSY` where too many are being asked, or
                the advisor was closed.
            AdvisoryFailed: `SVC_ADVISORY_UPSTREAM_FAILED`.
        """
        question = read_question(request, root=root)
        if self._upstream is None:
            raise self._unconfigured(request.mode)
        prompt = template(request.mode)
        content_type, body = self._asked(self._upstream.call(prompt.system, question.text))
        answer = read_answer(content_type, body, question, prompt.shape)
        if _holds(answer, self._upstream.key):
            raise failed("returned an unusable answer: it contains the key of the request")
        said = advised(request.mode, answer)
        if said is None:
            raise failed("returned an unusable answer: it has no meaning in this mode")
        evaluation: AdvisoryEvaluation = {"mode": request.mode, "model": self._upstream.model, "answer": answer}
        return Advice(prompt, evaluation, said, is_plain(evaluation))

    def _unconfigured(self, mode: str) -> ServiceUnavailable:
        why = (
            "the settings of its upstream are invalid, which the operator must correct"
            if self._unusable
            else "no advisory upstream is configured"
        )
        return ServiceUnavailable(
            "SVC_ADVISORY_UNCONFIGURED",
            f"Mode {mode} is advisory, and {why}. Use mode rulebook for a binding verdict.",
        )

    def close(self) -> None:
        """Gives up every call, and makes no more: the process is about to end, and waits for its requests."""
        with self._lock:
            self._closed = True
            under_way = list(self._under_way)
        for call in under_way:
            call.give_up()

    def _asked(self, call: Call) -> tuple[str, bytes]:
        if self._closed:
            raise _busy(_ENDS)
        if not self._calls.acquire(blocking=False):
            raise _busy(f"This worker is already asking the advisory upstream {CALLS} questions")
        with self._lock:
            closed = self._closed
            if not closed:
                self._under_way.add(call)
        if closed:
            self._calls.release()
            raise _busy(_ENDS)
        try:
            with self.waiting():
                return call.answer(self._calls.release)
        except AdvisoryFailed as error:
            if self._closed:
                raise _busy(_ENDS) from error
            raise
        finally:
            with self._lock:
                self._under_way.discard(call)


def _holds(answer: JsonObject, key: str | None) -> bool:
    """Whether an answer has the operator's key in it. A record stays for good, and is shown to many."""
    # Servers that need no key are often given a word.
    return key is not None and len(key) >= _SHORTEST_KEY and canonical(key)[1:-1] in canonical(answer)


_SHORTEST_KEY: Final = 12
_ENDS: Final = "The service is stopping, and canceled the call to the advisory upstream"


def _busy(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_ADVISORY_BUSY",
        f"{why}; retry in {_RETRY_SECONDS} seconds with the same idempotency key.",
        details={"retry_after": _RETRY_SECONDS},
    )
