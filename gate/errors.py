"""The one root of every error the product raises, with its evidence as fields.

An error carries the code a caller can act on, a sentence that says what was wrong, where, and what to do, and, where
single members are at fault, one `FieldError` each. HTTP status codes are no business of this module: `api.errors`
maps codes to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

# A name could be as long as a body, and stand in the path of each of its members.
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class FieldError:
    """One member at fault.

    Attributes:
        field: Where it stands, as a dotted path with array indexes in brackets: `rules[0].outcome.action`.
        code: What is wrong, as a stable word: `unknown_field`, `required`, `type`, `pattern`, and so on.
        message: The same for a person, as a sentence.
    """

    field: str
    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """The error as a JSON object {field, code, message}."""
        return {"field": self.field, "code": self.code, "message": self.message}


def member(path: str, name: str) -> str:
    """The path of the member `name` of what stands at `path`; only the beginning of a very long name is in it."""
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    return f"{path}.{name}" if path else name


@dataclass(eq=False)
class GateError(Exception):
    """Root of the product's errors.

    Attributes:
        code: A stable code, for example `RULEBOOK_INVALID`.
        message: What was wrong, where, and what to do about it.
        errors: The members at fault, where the fault lies in single members.
        details: Further members of an error body, for example {"supported_binding_modes": [...]}.
    """

    code: str
    message: str
    errors: Sequence[FieldError] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The code and the sentence, with each member at fault on a line of its own."""
        lines = [f"{self.code}: {self.message}"]
        lines += [f"  {error.field}: {error.message}" for error in self.errors]
        return "\n".join(lines)


class MaterialRefused(GateError):
    """JSON, keys or records handed in are not usable as they are (malformed, out of bounds, incomplete)."""


class RequestRefused(GateError):
    """A request is well-formed JSON and yet no request that the gate can answer."""


class RulebookRefused(GateError):
    """A rulebook breaks Rulebook v1, is not known, or conflicts with what is registered."""


class AccessRefused(GateError):
    """A key is missing or unknown."""


class AccessForbidden(AccessRefused):
    """A key is known and yet may not: it is disabled, expired, or lacks the access that the operation needs."""


class NotFound(GateError):
    """Nothing of that name in the caller's scope."""


class IdempotencyConflict(GateError):
    """An idempotency key was used before with another payload."""


class ReviewConflict(GateError):
    """A decision cannot be resolved: it is not held for an owner, or was resolved before."""


class LimitReached(GateError):
    """A rate limit or a monthly cap; details carry retry_after, in seconds."""


class AdapterRefused(RequestRefused):
    """An adapter that a request invokes is not registered as it says, or not for such input."""


class AdapterFailed(GateError):
    """An adapter ran, or should have run, and made no facts. Nothing was recorded."""


class AdvisoryFailed(GateError):
    """The advisory upstream gave no answer that can be used. Nothing was recorded."""


class LineageMismatch(GateError):
    """What a stored decision was made from is not there as it was, or not for anything that this release evaluates."""


class ServiceUnavailable(GateError):
    """Something the answer needs is not there: storage, a signing key, an upstream. Nothing was recorded."""


@dataclass(eq=False)
class StorageUnavailable(ServiceUnavailable):
    """A database cannot be used now.

    Attributes:
        why: What it said, in a few words.
    """

    why: str = ""


class OperatorError(GateError):
    """An operator's command cannot be carried out as it was given."""
