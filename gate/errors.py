"""The base class of all errors of the product, and the errors that several packages raise.

An error has a stable code, a message that says what is wrong and what to do, and one `FieldError` for each field at
fault. `api.errors` maps the codes to HTTP status codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

# A name could be as long as a body, and be part of the path of each of its fields.
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field at fault.

    Attributes:
        field: The path of the field, with dots and with array indexes in brackets: `rules[0].outcome.action`.
        code: A stable word for the kind of fault: `unknown_field`, `required`, `type`, `pattern`, and so on.
        message: A sentence that says what is wrong and what to do.
    """

    field: str
    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Returns the error as a JSON object {field, code, message}."""
        return {"field": self.field, "code": self.code, "message": self.message}


def member(path: str, name: str) -> str:
    """The path of the field `name` in the object at `path`. It contains only the beginning of a long name."""
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    return f"{path}.{name}" if path else name


@dataclass(eq=False)
class GateError(Exception):
    """The base class of all errors of the product.

    Attributes:
        code: A stable code, for example `RULEBOOK_INVALID`.
        message: A sentence that says what is wrong, where, and what to do.
        errors: The fields at fault, if single fields are wrong.
        details: Further fields of an error body, for example {"supported_binding_modes": [...]}.
    """

    code: str
    message: str
    errors: Sequence[FieldError] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The code and the message, followed by one line for each field at fault."""
        lines = [f"{self.code}: {self.message}"]
        lines += [f"  {error.field}: {error.message}" for error in self.errors]
        return "\n".join(lines)


class MaterialRefused(GateError):
    """JSON, a key, or a record is unusable, because it is malformed, incomplete, or beyond a limit."""


class RequestRefused(GateError):
    """A request is well-formed JSON, but the gate cannot answer it."""


class RulebookRefused(GateError):
    """A rulebook violates Rulebook v1, is unknown, or conflicts with a registered one."""


class AccessRefused(GateError):
    """A key is missing or unknown."""


class AccessForbidden(AccessRefused):
    """A key is known but not allowed: it is disabled, expired, or lacks the access that the operation needs."""


class NotFound(GateError):
    """The caller's scope has no object with that name or id."""


class IdempotencyConflict(GateError):
    """An idempotency key was used before with a different payload."""


class ReviewConflict(GateError):
    """A decision cannot be resolved, because it is not held for an owner or was resolved before."""


class LimitReached(GateError):
    """A rate limit or a monthly cap was reached. `details` has `retry_after`, in seconds."""


class AdapterRefused(RequestRefused):
    """A request invokes an adapter that is not registered as stated, or that does not accept such input."""


class AdapterFailed(GateError):
    """An adapter failed to compute facts. The gate recorded nothing."""


class AdvisoryFailed(GateError):
    """The advisory upstream returned no usable answer. The gate recorded nothing."""


class LineageMismatch(GateError):
    """The inputs of a stored decision are missing or changed, or this release cannot evaluate them."""


class ServiceUnavailable(GateError):
    """Storage, a signing key or an upstream is unavailable. The gate recorded nothing."""


@dataclass(eq=False)
class StorageUnavailable(ServiceUnavailable):
    """A database is unavailable now.

    Attributes:
        why: The reason in a few words.
    """

    why: str = ""


class OperatorError(GateError):
    """A command or a configuration is invalid, or cannot be carried out as given."""
