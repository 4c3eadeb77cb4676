"""The errors of the client: failed requests, and actions that the guard did not permit.

Every error is a `gate.errors.GateError` with a code, a message, and the fields at fault. No error contains an API key.

    ApiError                  a request failed
      Unauthorized            401: the key is missing or unknown
        Forbidden             403: the key lacks the access, or is disabled or expired
      NotFound                404
      Conflict                409: the idempotency key is in use, or the rulebook version has other content
      Refused                 400, 405, 413, 415, 422: the request is invalid
      LimitReached            429: rate limit or monthly cap; `retry_after` in seconds
      ServiceFailed           5xx
      AnswerUnusable          the response is not from this service: redirected, truncated, malformed or too large
      Unreachable             no connection, or no response in time
    NotPermitted              the guard did not run the body
      Blocked                 the verdict is no, or the owner refused the held action
      HeldForReview           the verdict is review, and no valid grant exists
      GateUnavailable         the guard has no verdict that it can rely on
        Undecidable           the service cannot decide the request as sent
      AlreadyStarted          the action was started before, here or elsewhere, and may have been done

The guard's store raises `StoreUnavailable`, which `gate.client.store.intents` defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gate.errors import GateError

if TYPE_CHECKING:
    from gate.client.store.intents import Intent
    from gate.verify import Verification


@dataclass(eq=False)
class ApiError(GateError):
    """A request to the service failed. The failure says nothing about the verdict.

    Attributes:
        status: The HTTP status, or None if no response arrived.
        retry_after: The number of seconds after which the service asks you to retry, or None if it does not say.
        request_id: The id of the request in the service's log, or None if no response arrived.
        tries: How often the client sent the request.
    """

    status: int | None = None
    retry_after: float | None = None
    request_id: str | None = None
    tries: int = 1


class Unauthorized(ApiError):
    """401: the key is missing or unknown."""


class Forbidden(Unauthorized):
    """403: the key lacks the access for this operation, or it is disabled or expired. It is also an `Unauthorized`."""


class NotFound(ApiError):
    """404: the key's scope has no object with that name or id."""


class Conflict(ApiError):
    """409: the request conflicts with stored data, or with a request that is still in progress."""


class Refused(ApiError):
    """400, 405, 413, 415, 422 and other 4xx: the request is invalid. `errors` lists the fields at fault."""


class LimitReached(ApiError):
    """429: the key exceeded its rate limit, or the scope its monthly cap. `retry_after` says when to retry."""


class ServiceFailed(ApiError):
    """5xx: the service failed. It acknowledged no record; you may retry with the same idempotency key."""


class AnswerUnusable(ApiError):
    """The response is not from this service: it is a redirect, not JSON, truncated, or too large."""


class Unreachable(ApiError):
    """The client could not connect, or got no response in time. The service may or may not have recorded something."""


@dataclass(eq=False)
class NotPermitted(GateError):
    """The guard did not permit the action, and the body did not run.

    Attributes:
        intent_id: The id of the intent in the guard's store.
        record: The full Decision Record of this action, or None if there is none.
        resolution: The verified resolution of the review, if it does not permit the action now; otherwise None.
    """

    intent_id: str = ""
    record: Mapping[str, Any] | None = None
    resolution: Mapping[str, Any] | None = None

    @property
    def decision_id(self) -> str | None:
        """The id of the decision, or None if there is no record."""
        return None if self.record is None else str(self.record["decision_id"])


class Blocked(NotPermitted):
    """The verdict is no, or the owner of the held action refused it (see `resolution`). Do not act.

    `record` has the evidence that the owner needs.
    """


class HeldForReview(NotPermitted):
    """The verdict is review: the action is held until its owner answers. `record` has the evidence.

    If the review or its grant has ended (see `resolution`), enter `client.guard` again to ask for a new decision.
    """


@dataclass(eq=False)
class GateUnavailable(NotPermitted):
    """The guard has no verdict that it can rely on. The action stays held, and you can retry with the same intent.

    Attributes:
        failure: The error behind this one: an `ApiError`, a `StoreUnavailable` or another `GateError`.
        verification: The failed verification of a record or resolution, or None if the cause is another one.
    """

    failure: GateError | None = None
    verification: Verification | None = None

    @property
    def retry_after(self) -> float | None:
        """The number of seconds after which the service asks you to retry, or None if it does not say."""
        return self.failure.retry_after if isinstance(self.failure, ApiError) else None


class Undecidable(GateUnavailable):
    """The service cannot decide the request as sent. Correct it before you retry.

    The message and `errors` say what is wrong: the facts, the adapter, its input, the context, or the rulebook.
    """


@dataclass(eq=False)
class AlreadyStarted(NotPermitted):
    """The action was started before, so the guard does not start it again. A person or a recovery hook has to decide.

    If another store holds the intent, the guard cannot know whether the action was started there. `record` is then that
    store's record, if the key has the access `read`.

    Attributes:
        intent: The intent in the store, with the time of its start and its execution report. None if another store
            holds it, or if this store never started the action and somebody else reported it as executed.
    """

    intent: Intent | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether another store holds the intent, this store lost its data, or somebody else executed the action."""
        return self.intent is None

    @property
    def execution(self) -> Mapping[str, Any] | None:
        """The execution report of the run, or None if nobody has reported how it ended."""
        return None if self.intent is None else self.intent.execution
