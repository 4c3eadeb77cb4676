"""Validates JSON values with the schemas in `schemas/`, with errors that say what to correct."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import jsonschema_rs

from gate.encoding import resources
from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.errors import FieldError, member

# A hostile body could violate a schema in a million places; nobody reads more than this.
MAX_ERRORS: Final = 50


def _with_unsigned_year(name: str) -> Callable[[str], bool]:
    checked = jsonschema_rs.validator_for({"format": name}, validate_formats=True)
    return lambda text: not text.startswith(("+", "-")) and checked.is_valid(text)


# The library accepts +026-07-31 and -026-07-31 as days. RFC 3339 has no signs, and date arithmetic accepts none.
_STRICTER: Final = {name: _with_unsigned_year(name) for name in ("date", "date-time")}


class Shape:
    """One compiled schema."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        """Compiles a schema. It must have no references to other documents."""
        self._validator = jsonschema_rs.validator_for(
            dict(schema), validate_formats=True, offline=True, ignore_unknown_formats=False, formats=_STRICTER
        )

    def errors(self, value: object, *, root: str = "") -> list[FieldError]:
        """The errors of a value, at most `MAX_ERRORS`. The list is empty if the value is valid.

        Args:
            value: The JSON value.
            root: The name of the value itself in the paths of errors, or "".
        """
        if self._validator.is_valid(value):
            return []
        found: list[FieldError] = []
        for error in self._validator.iter_errors(value):
            found.extend(_explain(error, dotted(value, error.instance_path, root=root)))
            if len(found) >= MAX_ERRORS:
                break
        return sorted(found[:MAX_ERRORS], key=lambda error: (error.field, error.code))


@cache
def shape(name: str) -> Shape:
    """The compiled schema `schemas/<name>.schema.json`."""
    return Shape(resources.schema(name))


def dotted(value: object, steps: Sequence[str | int], *, root: str = "") -> str:
    """The path of a field as errors write it: `rules[0].outcome.action`."""
    text = root
    for step in steps:
        if isinstance(value, list):
            text = f"{text}[{step}]"
            value = value[int(step)] if int(step) < len(value) else None
        else:
            text = member(text, str(step))
            value = value.get(str(step)) if isinstance(value, dict) else None
    return text


def json_type(value: object) -> str:
    """The JSON type of a value: object, array, string, boolean, null, integer (1 and 1.0), or number."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        integral = isinstance(value, int) or (abs(value) <= MAX_SAFE_INTEGER and value.is_integer())
        return "integer" if integral else "number"
    names: dict[type, str] = {dict: "object", list: "array", str: "string", type(None): "null"}
    return names[type(value)]


def _explain(error: jsonschema_rs.ValidationError, where: str) -> list[FieldError]:
    keyword = error.kind.name
    if keyword == "required":
        return [FieldError(member(where, error.kind.value), "required", "It is missing; add it.")]
    if keyword == "additionalProperties":
        message = "It is unknown here; check its spelling or remove it."
        return [FieldError(member(where, name), "unknown_field", message) for name in error.kind.value]
    if keyword == "propertyNames":
        inner = error.kind.value
        return [FieldError(member(where, str(inner.instance)), *_sentence(inner))]
    return [FieldError(where, *_sentence(error))]


def _sentence(error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    keyword, value = error.kind.name, error.kind.value
    sentences: dict[str, tuple[str, Callable[[], str]]] = {
        "type": ("type", lambda: f"It must be {_either(value)}, but is {_CALLED[json_type(error.instance)]}."),
        "enum": ("enum", lambda: f"It must be one of {', '.join(map(str, value))}."),
        "const": ("const", lambda: f"It must be {value!r}."),
        "pattern": ("pattern", lambda: f"It must be {FORMS.get(value, f'text that matches the pattern {value}')}."),
        "format": ("format", lambda: f"It must be {FORMATS.get(value, f'of the format {value}')}."),
        "minLength": ("too_short", lambda: f"It must have at least {_count(value, 'character')}."),
        "maxLength": ("too_long", lambda: f"It must have at most {_count(value, 'character')}."),
        "minItems": ("too_few", lambda: f"It must have at least {_count(value, 'item')}."),
        "maxItems": ("too_many", lambda: f"It must have at most {_count(value, 'item')}."),
        "minProperties": ("too_few", lambda: f"It must have at least {_count(value, 'field')}."),
        "maxProperties": ("too_many", lambda: f"It must have at most {_count(value, 'field')}."),
        "minimum": ("too_small", lambda: f"It must be at least {value}."),
        "exclusiveMinimum": ("too_small", lambda: f"It must be greater than {value}."),
        "maximum": ("too_large", lambda: f"It must be at most {value}."),
        "uniqueItems": ("duplicate", lambda: "It contains the same item twice; keep one."),
    }
    code, sentence = sentences.get(keyword, (keyword, lambda: "It does not match its schema."))
    return code, sentence()


FORMS: Final[Mapping[str, str]] = {
    r"^[0-9a-f]{64}$": "64 characters of 0-9 a-f: a SHA-256 in lower-case hex",
    r"^[a-z][a-z0-9_.:-]{1,119}$": "2 to 120 characters of a-z 0-9 _ . : -, starting with a letter",
    r"^[a-z][a-z0-9_.:-]{1,159}$": "2 to 160 characters of a-z 0-9 _ . : -, starting with a letter",
    r"^[A-Z][A-Z0-9_]{1,79}$": "2 to 80 characters of A-Z 0-9 _, starting with a letter",
    r"^[A-Za-z_][A-Za-z0-9_.-]{0,159}$": "1 to 160 characters of A-Z a-z 0-9 _ . -, starting with a letter or _",
    r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,119}$": (
        "1 to 120 characters of A-Z a-z 0-9 _ . : -, starting with a letter or digit"
    ),
    r"^\S([\s\S]*\S)?$": "text without white space at either end",
    r"^[^./\\\u0000-\u001F\u007F][^/\\\u0000-\u001F\u007F]*(/[^./\\\u0000-\u001F\u007F][^/\\\u0000-\u001F\u007F]*)*$": (
        "a path below the manifest's folder: names separated by /, none of which begins with a dot, without \\ and "
        "control characters"
    ),
    r"^[^\u0000-\u001F\u007F]*[^\s\u0000-\u001F\u007F][^\u0000-\u001F\u007F]*$": (
        "text without control characters, and not blank"
    ),
    r"^https?://[^\s]+$": "a web address that begins with http:// or https://, without white space",
    r"^[A-Z]{3}$": "three capital letters",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "a day written YYYY-MM-DD",
}
"""Descriptions of the patterns in the schemas."""

FORMATS: Final[Mapping[str, str]] = {
    "date": "a calendar date, written YYYY-MM-DD",
    "date-time": "a time with a time zone, written as 2026-07-31T09:30:00Z",
    "time": "a time of day with a time zone, written as 09:30:00Z",
    "duration": "a duration, written as P1DT12H",
    "email": "an e-mail address",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uri": "an absolute address with its scheme, such as https://example.com/",
    "uuid": "a UUID, written in hex with four hyphens",
}
"""Descriptions of the formats of JSON Schema."""

_CALLED: Final = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "integer": "an integer",
    "number": "a number",
}


def _either(types: Sequence[str]) -> str:
    return " or ".join(_CALLED[name] for name in types)


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def to_mend(what: str, errors: Sequence[FieldError]) -> str:
    """The message of a refusal: `The body is not an outcome; correct outcome_status (see errors).`

    Args:
        what: The beginning of the sentence, which says what was refused.
        errors: The fields at fault.
    """
    named = list(dict.fromkeys(error.field or "the body" for error in errors))
    if len(named) > 3:
        named[3:] = [f"{len(named) - 3} more"]
    *most, last = named
    return f"{what}; correct {', '.join(most)}{' and ' if most else ''}{last} (see errors)."
