"""A call with its retries, as a flow.

A call is sent again only where the specification allows it: after a network error or a 5xx, under the same idempotency
key, before anything was done about the answer, and within the one deadline of all tries. The pauses grow and are drawn
at random, so that callers that failed together do not come back together.
"""

from __future__ import annotations

import random
import time
from itertools import count
from typing import Final, TypeVar

from gate.client.errors import ApiError
from gate.client.transport.calls import Answer, Call, may_be_sent_again, read_answer
from gate.client.transport.flow import Flow, Pause, Send

T = TypeVar("T")

FIRST_PAUSE: Final = 0.1
"""How long the pause before the second try is at most, in seconds; each later one may be twice as long."""

LONGEST_PAUSE: Final = 5.0
"""How long any pause is at most, in seconds, where the service asks for no longer one."""


def exchange(call: Call[T], *, seconds: float, tries: int) -> Flow[Answer[T]]:
    """Sends a call, again where it may be, until it is answered.

    Args:
        call: The call.
        seconds: How long all tries together may take.
        tries: How often it is sent at most.

    Raises:
        ApiError: The last failure, with how often the call was sent.
    """
    deadline = time.monotonic() + seconds
    for number in count(1):
        try:
            raw = yield from Send(call, deadline)
            return read_answer(call, raw, tries=number)
        except ApiError as error:
            error.tries = number
            pause = max(_pause(number), error.retry_after or 0.0)
            if number >= tries or not may_be_sent_again(call, error) or time.monotonic() + pause >= deadline:
                raise
        yield from Pause(pause)
    raise AssertionError("a count is missing its end")


def _pause(number: int) -> float:
    return random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1)))  # noqa: S311 - not a secret
