"""What a caller can be told: answers that are refusals, answers that do not come, and actions that must not happen.

All of them are `gate.errors.GateError`: a code, a sentence, the members at fault. None of them ever carries a key.

    ApiError                  the service did not give what it was asked for
      Unauthorized            401: the key is missing, unknown, disabled or expired
        Forbidden             403: the key lacks the access
      NotFound                404
      Conflict                409: an idempotency key with another payload, one in progress, another rulebook's version
      Refused                 400, 405, 413, 415, 422: the request is not one that can be answered
      LimitReached            429: rate or monthly cap; `retry_after` in seconds
      ServiceFailed           5xx
      AnswerUnusable          an answer that is no answer of this service: redirected, truncated, malformed, too large
      Unreachable             no answer: no connection, or none in time
    NotPermitted              the guard did not let the action begin
      Blocked                 the verdict is no, or the owner refused the held action
      HeldForReview           the verdict is review, and no grant opens the action now
      GateUnavailable         there is no verdict that can be relied on
        Undecidable           the service refuses to decide the request as it is
      AlreadyStarted          the action was begun before, and perhaps done

`StoreUnavailable`, where the guard's store cannot be used, belongs to `gate.client.store`.
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
    """The service did not give what it was asked for. No verdict can be inferred from it.

    Attributes:
        status: The HTTP status; None where no answer came.
        retry_after: After how many seconds the service says to come again; None where it does not say.
        request_id: The handle under which the service's log knows the request; None where no answer came.
        tries: How often the request was sent.
    """

    status: int | None = None
    retry_after: float | None = None
    request_id: str | None = None
    tries: int = 1


class Unauthorized(ApiError):
    """401: the key is missing, unknown, disabled or expired."""


class Forbidden(Unauthorized):
    """403: the key is known, and may not."""


class NotFound(ApiError):
    """404: nothing of that name in the key's scope."""


class Conflict(ApiError):
    """409: the request contradicts what is stored, or meets one that is still in progress."""


class Refused(ApiError):
    """400, 405, 413, 415, 422 and other 4xx: the request is none that can be answered; `errors` names the members."""


class LimitReached(ApiError):
    """429: the key's rate or the scope's monthly cap is used up."""


class ServiceFailed(ApiError):
    """5xx: the service failed, and recorded nothing that it acknowledged."""


class AnswerUnusable(ApiError):
    """An answer came that is none of this service: a redirection, no JSON, cut off, or larger than is read."""


class Unreachable(ApiError):
    """No answer came in time, or no connection. Whether the service recorded something is not known."""


@dataclass(eq=False)
class NotPermitted(GateError):
    """The guard did not let the action begin. The body did not run.

    Attributes:
        intent_id: The name of the intent in the guard's store.
        record: The full Decision Record, where there is one that concerns this action.
        resolution: The resolution of its review, which verifies and is not a grant that opens the action now; None
            where there is none.
    """

    intent_id: str = ""
    record: Mapping[str, Any] | None = None
    resolution: Mapping[str, Any] | None = None

    @property
    def decision_id(self) -> str | None:
        """The decision's id, where there is a record."""
        return None if self.record is None else str(self.record["decision_id"])


class Blocked(NotPermitted):
    """The verdict is no, or the owner of the held action refused it (`resolution`): it must not happen. `record` has
    the evidence for its owner.
    """


class HeldForReview(NotPermitted):
    """The verdict is review: the action is held until its owner has decided. `record` has the evidence. Where the
    review or the grant is over (`resolution`), the gate has to be asked anew.
    """


@dataclass(eq=False)
class GateUnavailable(NotPermitted):
    """There is no verdict that can be relied on; the action stays held.

    Attributes:
        failure: What failed: an ApiError, a StoreUnavailable or another GateError.
        verification: What was found of a record that does not verify; None where that is not why.
    """

    failure: GateError | None = None
    verification: Verification | None = None

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the service says to come again; None where it does not say."""
        return self.failure.retry_after if isinstance(self.failure, ApiError) else None


class Undecidable(GateUnavailable):
    """The service refuses to decide the request as it is, so that asking again is in vain until what the sentence and
    `errors` name is mended: the facts, the adapter or its input, the context, or the rulebook.
    """


@dataclass(eq=False)
class AlreadyStarted(NotPermitted):
    """The action was begun before, so that it is not begun again: a person decides, or a recovery hook.

    Attributes:
        intent: What the store knows of the intent: when it was started, and what was told of it; None where another
            store holds it.
    """

    intent: Intent | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether another store holds the intent, or this one has lost what it knew."""
        return self.intent is None

    @property
    def execution(self) -> Mapping[str, Any] | None:
        """What was told of the run: the execution report; None where its end is not known."""
        return None if self.intent is None else self.intent.execution
