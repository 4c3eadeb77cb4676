"""Checks what a caller reports about a run and its outcome, so that the service will accept the report. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.errors import FieldError, RequestRefused

EXECUTION_STATUSES: Final = ("executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted")
OUTCOME_STATUSES: Final = ("succeeded", "failed", "partial", "reverted", "pending", "review")

LONGEST_RESULT: Final = 2000
"""The maximum length of the result in an execution receipt, in characters."""

LONGEST_ACTION: Final = 200
"""The maximum length of the name of the performed action, in characters."""

LONGEST_NAME: Final = 200
"""The maximum length of the name of an executor or an exception, in characters."""

_MAX_METRICS: Final = 64
_LONGEST_METRIC: Final = 120
# What the service takes of an execution receipt, so that none is refused after the action was done.
_LONGEST: Final = {
    "execution_result": LONGEST_RESULT,
    "action_taken": LONGEST_ACTION,
    "external_ref": 200,
    "state_before_hash": 200,
    "state_after_hash": 200,
    "state_before_ref": 500,
    "state_after_ref": 500,
}
_MAX_REFS: Final = 64
_LONGEST_REF: Final = 500
# For names that differ between the caller and the receipt.
_ARGUMENTS: Final = {"execution_result": "result", "observed_metrics": "metrics"}


class Outcome(TypedDict, total=False):
    """The optional fields of an outcome.

    Attributes:
        metrics: Measured numbers by name: at most 64 finite numbers, with integers within 2^53-1.
        executed: Whether the action was executed.
        external_ref: The caller's reference.
        evidence_refs: References to evidence that the caller keeps elsewhere.
    """

    metrics: Mapping[str, int | float]
    executed: bool
    external_ref: str
    evidence_refs: Sequence[str]


def described(given: Mapping[str, object]) -> dict[str, object]:
    """The fields of an execution receipt that the caller sets.

    Args:
        given: The fields of the receipt, with None for missing ones.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid; `errors` names it.
    """
    said = {name: value for name, value in given.items() if value is not None}
    if said.get("execution_status", EXECUTION_STATUSES[0]) not in EXECUTION_STATUSES:
        raise _invalid("status", f"must be one of {', '.join(EXECUTION_STATUSES)}")
    for name, value in said.items():
        _check(name, value)
    return {name: _copied(value) for name, value in said.items()}


def outcome_said(status: str, said: Outcome) -> dict[str, object]:
    """The fields of an outcome that the caller sets.

    Args:
        status: The outcome's status.
        said: The optional fields.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid; `errors` names it.
    """
    if status not in OUTCOME_STATUSES:
        raise _invalid("status", f"must be one of {', '.join(OUTCOME_STATUSES)}")
    measured = _measured(said.get("metrics"))
    if unknown := sorted(said.keys() - Outcome.__optional_keys__):
        known = ", ".join(sorted(Outcome.__optional_keys__))
        raise _invalid(unknown[0], f"is unknown; an outcome can have {known}")
    body: dict[str, object] = {"outcome_status": status}
    if measured:
        body["observed_metrics"] = measured
    executed = said.get("executed")
    if executed is not None:
        if not isinstance(executed, bool):
            raise _invalid("executed", "must be True or False")
        body["action_executed"] = executed
    for name in ("external_ref", "evidence_refs"):
        reference = dict(said).get(name)
        if reference is not None:
            _check(name, reference)
            body[name] = _copied(reference)
    _require_no_credential(body)
    return body


def _measured(metrics: object) -> dict[str, object]:
    if metrics is not None and not isinstance(metrics, Mapping):
        raise _invalid("metrics", "must be a mapping from names to numbers")
    measured = dict(metrics or {})
    if len(measured) > _MAX_METRICS:
        raise _invalid("metrics", f"has more than {_MAX_METRICS} numbers; report the ones that matter")
    for name, value in measured.items():
        if not is_text(name, _LONGEST_METRIC):
            raise _invalid("metrics", f"must have names of 1 to {_LONGEST_METRIC} characters")
        if not _is_number(value):
            raise _invalid(f"metrics.{name}", "must be a finite number, and within 2^53-1 if it is an integer")
    return measured


def _check(name: str, value: object) -> None:
    argument = _ARGUMENTS.get(name, name)
    if name == "evidence_refs":
        refs = value if isinstance(value, list | tuple) and len(value) <= _MAX_REFS else ()
        if not refs or not all(is_text(ref, _LONGEST_REF) for ref in refs):
            raise _invalid(argument, f"must be a list of 1 to {_MAX_REFS} strings of 1 to {_LONGEST_REF} characters")
    elif name == "executor":
        parts = value if isinstance(value, Mapping) and value.keys() == {"type", "id"} else {}
        if not parts or not all(is_text(part, LONGEST_NAME) for part in parts.values()):
            raise _invalid(argument, f"must be a type and an id, each of 1 to {LONGEST_NAME} characters")
    elif name in _LONGEST and not is_text(value, _LONGEST[name]):
        raise _invalid(argument, f"must be a string of 1 to {_LONGEST[name]} characters")
    _require_no_credential({name: value})


def holds_credential(body: Mapping[str, object]) -> bool:
    """Whether a report contains something like a credential, so that the service would refuse it."""
    return bool(_faults(body))


def _faults(body: Mapping[str, object]) -> Sequence[FieldError]:
    # Loaded with the first: its patterns take a while to make.
    from gate.encoding.credentials import credentials

    return list(credentials(body))


def _require_no_credential(body: Mapping[str, object]) -> None:
    for fault in _faults(body):
        name, _, inner = fault.field.partition(".")
        path = ".".join(filter(None, (_ARGUMENTS.get(name, name), inner)))
        raise _invalid(path, "looks like a credential, which is never stored; remove it")


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list | tuple) else value


def is_text(value: object, longest: int) -> bool:
    """Whether a value is a string of 1 to `longest` characters that UTF-8 can encode."""
    return isinstance(value, str) and 1 <= len(value) <= longest and value.encode("utf-8", "ignore").decode() == value


def _is_number(value: object) -> bool:
    """Whether a value is a number that I-JSON can represent."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= MAX_SAFE_INTEGER
    return isinstance(value, float) and math.isfinite(value)


def _invalid(field: str, why: str) -> RequestRefused:
    return RequestRefused(
        "SVC_API_REQUEST_INVALID",
        f"The report cannot be made: {field} {why}.",
        [FieldError(field, "invalid", f"It {why}.")],
    )
