"""Reads a Decision Request from the body of `POST /api/decide`.

`check_request` raises an error for the first fault, in this order: binding mode, response-only fields, shape, and
conflicts between the parts. The page `docs/reference/errors.md` describes the errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from gate.encoding.shapes import MAX_ERRORS, shape, to_mend
from gate.errors import FieldError, RequestRefused, member
from gate.ids import event_fault
from gate.labels import BINDING_ADAPTER, BINDING_DIRECT, BINDING_MODES, OUTPUT_MATERIAL, ROOT_OUTPUT_MATERIAL
from gate.records.envelope import input_material

if TYPE_CHECKING:
    from gate.encoding.strict_json import Json, JsonObject
    from gate.records.documents import DecisionBody, DecisionContext, RulebookPointer


class DecisionRequest(NamedTuple):
    """A request whose parts fit together. Its rulebook and its adapter are not checked yet.

    Attributes:
        body: The request as sent, without `response_view`.
        input_hash: H(body).
        mode: `rulebook`, `single`, `multi`, or `runtime`.
        rulebook: The rulebook in the request, or None.
        rulebook_ref: The reference to a registered rulebook, or None.
        adapter: The invocation of an adapter, or None.
        context: The context, or {}.
        inputs: The facts in `context.inputs`, or {}.
        plain: Whether the body is plain, as `canonical.is_plain` defines it.
    """

    body: Mapping[str, object]
    input_hash: str
    mode: str
    rulebook: Mapping[str, object] | None
    rulebook_ref: RulebookPointer | None
    adapter: Mapping[str, object] | None
    context: DecisionContext
    inputs: Mapping[str, object]
    plain: bool


def read_request(
    body: object, input_hash: str, *, now: datetime | None = None, plain: bool = False, root: str = ""
) -> DecisionRequest:
    """Reads the parsed body of a Decision Request.

    Args:
        body: The parsed JSON value.
        input_hash: H(envelope.input_material(body)), which the caller computes before the body is checked.
        now: As for `check_request`.
        plain: Whether the body is known to be plain, as `canonical.is_plain` defines it.
        root: The name of the body in the paths of errors, or "".

    Raises:
        RequestRefused: As `check_request`.
    """
    return accepted_request(check_request(body, now=now, root=root), input_hash, plain=plain)


def check_request(body: object, *, now: datetime | None = None, root: str = "") -> DecisionBody:
    """Requires that a parsed body is a Decision Request whose parts fit together, and returns it.

    Args:
        body: The parsed JSON value.
        now: The service's clock, which `occurred_at` must not be far ahead of. None accepts any time.
        root: The name of the body in the paths of errors, or "".

    Raises:
        RequestRefused: The first of `RULEBOOK_BINDING_MODE_UNSUPPORTED`, `RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN`,
            `SVC_API_REQUEST_INVALID`, `RULEBOOK_BINDING_MODE_CONFLICT` and `TRUSTED_ADAPTER_INPUT_CONFLICT`.
    """
    binds = isinstance(body, dict) and body.get("mode") == "rulebook"
    # Before the shape, so that no other fault hides an attempt to send a verdict. Advisory contexts are not restricted.
    if isinstance(body, dict) and (binds or not body.keys().isdisjoint(BINDING_MEMBERS)):
        _check_binding_mode(body)
        _check_output_material(body, root)
    shaped = _shaped(body, binds, root, now)
    _check_conflicts(shaped, binds)
    return shaped


def accepted_request(body: DecisionBody, input_hash: str, *, plain: bool = False) -> DecisionRequest:
    """A Decision Request that was checked before, now or when it was stored. This function checks nothing.

    Args:
        body: The parsed body.
        input_hash: H(envelope.input_material(body)).
        plain: Whether the body is known to be plain, as `canonical.is_plain` defines it.
    """
    context: DecisionContext = body.get("context", {})
    return DecisionRequest(
        body=cast("Mapping[str, object]", input_material(body)),
        input_hash=input_hash,
        mode=body.get("mode", "single"),
        rulebook=body.get("rulebook"),
        rulebook_ref=body.get("rulebook_ref"),
        adapter=body.get("adapter"),
        context=context,
        inputs=context.get("inputs", {}),
        plain=plain,
    )


def hint(body: object) -> str | None:
    """A hint for the sender of a decided request about a field that may be misspelled, or None.

    The context may have any fields, so a misspelled field is valid. It may be a fact that no rule reads, or a target
    that is not in the action binding.
    """
    context = body.get("context") if isinstance(body, dict) and body.get("mode") == "rulebook" else None
    if not isinstance(context, dict):
        return None
    expects_inputs = isinstance(body, dict) and "adapter" not in body and "inputs" not in context
    if len(context) <= _USUAL and sum(map(len, context)) <= _USUAL * _LONGEST:
        return _usual_hint(tuple(context), expects_inputs)
    return _hint(context, expects_inputs)


def _hint(context: Collection[str], expects_inputs: bool) -> str | None:
    absent = [name for name in _BINDING if name not in context]
    overlooked: dict[str, str] = {}
    for name in islice(context, _LOOKED_AT):
        if expects_inputs and (_meant_for_inputs(name) or _is_near(name, "inputs")):
            overlooked["inputs"] = f"{member('context', name)} is not read; the facts belong in context.inputs."
        elif name not in _BINDING and (meant := next((each for each in absent if _is_near(name, each)), None)):
            what = "is only part of the hash" if meant in _UNBOUND else "is not part of the action binding"
            overlooked.setdefault(meant, f"{member('context', name)} {what}; did you mean {meant}?")
    return " ".join(overlooked.values()) or None


# A caller sends the same fields each time. Too many or too long ones are not cached.
_usual_hint: Final = lru_cache(256)(_hint)
_USUAL: Final = 20
_UNBOUND: Final = ("workflow", "source_record_id")
_BINDING: Final = (
    "target_system",
    "target_object_id",
    "requested_action",
    "mutation",
    "actor",
    "subject",
    "amount",
    "currency",
    *_UNBOUND,
)
# A request may have a hundred thousand members, and every decision waits for this.
_LOOKED_AT: Final = 100
_LONGEST: Final = 40


def _is_near(name: str, meant: str) -> bool:
    """Whether a name is probably a typo of another: in its case, its separators, or one letter, two in a long name."""
    # Printable ASCII, so that a header can contain it. A typo seldom changes the first letter: `factor` is no `actor`.
    if len(name) > _LONGEST or not (name.isascii() and name.isprintable()) or name[:1].lower() != meant[0]:
        return False
    letters = meant.replace("_", "")
    return _within("".join(filter(str.isalnum, name.lower())), letters, 2 if len(letters) > 8 else 1)


def _within(a: str, b: str, edits: int) -> bool:
    """Whether a number of edits turns a text into another: a letter removed, added, changed, or swapped."""
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    if not a or not b:
        return len(a) + len(b) <= edits
    if edits == 0:
        return False
    swapped = a[:2] == b[1::-1] and _within(a[2:], b[2:], edits - 1)
    return swapped or any(_within(*rest, edits - 1) for rest in ((a[1:], b), (a, b[1:]), (a[1:], b[1:])))


def _meant_for_inputs(name: str) -> bool:
    # Only ASCII, so that a header can contain the name.
    return name.isascii() and name.lower() in ("input", "inputs", "facts")


def _shaped(body: object, binds: bool, root: str, now: datetime | None) -> DecisionBody:
    shaped = cast("DecisionBody", body)
    errors = [_about_facts(error, root) for error in shape("decision-request").errors(body, root=root)]
    if not errors and binds and not {"rulebook", "rulebook_ref"} & shaped.keys():
        message = "Mode rulebook needs it, or rulebook_ref; add one of them."
        errors = [FieldError(member(root, "rulebook"), "required", message)]
    if not errors and not binds and not {"question", *BINDING_MEMBERS} & shaped.keys():
        message = "The advisory modes need it; a binding verdict needs mode rulebook."
        errors = [FieldError(member(root, "question"), "required", message)]
    if not errors and "occurred_at" in shaped and (fault := event_fault(shaped["occurred_at"], now)) is not None:
        errors = [FieldError(member(root, "occurred_at"), *fault)]
    if errors:
        raise _invalid(errors, root)
    return shaped


def _about_facts(error: FieldError, root: str) -> FieldError:
    name = error.field.removeprefix(f"{root}." if root else "")
    if error.code != "unknown_field" or not _meant_for_inputs(name):
        return error
    return replace(error, message="It is unknown here; the facts belong in context.inputs.")


# With another mode they are a conflict, and its error is clearer than that of a missing question.
BINDING_MEMBERS: Final = ("rulebook", "rulebook_ref", "binding_mode", "adapter")
"""The fields that only mode rulebook has."""


def _invalid(errors: list[FieldError], root: str) -> RequestRefused:
    what = f"{root or 'The body'} is not a Decision Request"
    return RequestRefused("SVC_API_REQUEST_INVALID", to_mend(what, errors), errors)


def _check_binding_mode(body: JsonObject) -> None:
    binding_mode = body.get("binding_mode", BINDING_DIRECT)
    if binding_mode not in BINDING_MODES:
        raise RequestRefused(
            "RULEBOOK_BINDING_MODE_UNSUPPORTED",
            "binding_mode is not supported; leave it out or use one of supported_binding_modes.",
            details={"supported_binding_modes": list(BINDING_MODES)},
        )


def _check_output_material(body: JsonObject, root: str) -> None:
    forbidden = list(islice(_forbidden(body, root), MAX_ERRORS))
    if forbidden:
        raise RequestRefused(
            "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN",
            "The request contains fields that only a response may contain; remove those in forbidden_fields.",
            details={"forbidden_fields": sorted(forbidden)},
        )


def _forbidden(body: JsonObject, root: str) -> Iterator[str]:
    if not ROOT_OUTPUT_MATERIAL.isdisjoint(body):
        yield from (member(root, name) for name in body if name in ROOT_OUTPUT_MATERIAL)
    context, adapter = body.get("context"), body.get("adapter")
    if isinstance(context, dict):
        at = member(root, "context")
        if not OUTPUT_MATERIAL.isdisjoint(context):
            yield from (member(at, name) for name in context if name in OUTPUT_MATERIAL)
        yield from _output_material(context.get("inputs"), member(at, "inputs"))
    if isinstance(adapter, dict):
        yield from _output_material(adapter.get("input"), member(member(root, "adapter"), "input"))


def _output_material(value: Json, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in OUTPUT_MATERIAL:
                yield member(path, name)
            if isinstance(item, _CONTAINERS):
                yield from _output_material(item, member(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, _CONTAINERS):
                yield from _output_material(item, f"{path}[{index}]")


_CONTAINERS: Final = (dict, list)


def _check_conflicts(body: DecisionBody, binds: bool) -> None:
    for conflict in _conflicts(body, binds):
        raise RequestRefused("RULEBOOK_BINDING_MODE_CONFLICT", conflict)
    if "adapter" in body and "inputs" in body.get("context", {}):
        raise RequestRefused(
            "TRUSTED_ADAPTER_INPUT_CONFLICT",
            "adapter and context.inputs are both sent; facts come from exactly one of them, so remove the other.",
        )


def _without_mode(name: str) -> str:
    return f'{name} is sent without mode; add "mode": "rulebook" for a binding verdict, or leave {name} out.'


def _conflicts(body: DecisionBody, binds: bool) -> Iterator[str]:
    if not binds:
        for name in BINDING_MEMBERS:
            if name in body:
                yield (
                    _without_mode(name)
                    if "mode" not in body
                    else (f"{name} is sent with mode {body['mode']}; send mode rulebook, or leave {name} out.")
                )
    if "rulebook" in body and "rulebook_ref" in body:
        yield "rulebook and rulebook_ref are both sent; send one of them."
    binding_mode = body.get("binding_mode")
    if binding_mode == BINDING_DIRECT and "adapter" in body:
        yield f"binding_mode {BINDING_DIRECT} takes its facts from context.inputs; leave adapter out."
    if binding_mode == BINDING_ADAPTER and "adapter" not in body:
        yield f"binding_mode {BINDING_ADAPTER} takes its facts from an adapter; add adapter."
