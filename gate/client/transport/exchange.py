"""A call with its retries, as a flow.

The client sends a call again only after a network error or a 5xx, with the same idempotency key, and before the common
deadline. The pauses grow and are random, so that callers that failed together do not all retry at the same time.
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
"""The maximum of the first pause, in seconds. Each later pause may be twice as long."""

LONGEST_PAUSE: Final = 5.0
"""The maximum of every pause, in seconds, unless the service asks for a longer one."""


def exchange(call: Call[T], *, seconds: float, tries: int) -> Flow[Answer[T]]:
    """Sends a call, with retries if it is safe to repeat, and returns the response.

    Args:
        call: The call.
        seconds: The time limit with all retries.
        tries: How often to send the call at most.

    Raises:
        ApiError: The last error, with `tries` set.
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
