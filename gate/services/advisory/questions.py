"""A Decision Request of an advisory mode as the question that the upstream gets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from gate.encoding.canonical import canonical
from gate.encoding.shapes import to_mend
from gate.encoding.strict_json import Json, JsonObject
from gate.errors import FieldError, RequestRefused, member
from gate.records.request import DecisionRequest
from gate.services.advisory.masking import is_sensitive_text, mask

OPTIONS: Final = (2, 8)
"""How many options a question of the modes multi and runtime has, at least and at most."""

MAX_OPTION: Final = 200
"""How many characters an option may have."""

WITH_OPTIONS: Final = ("multi", "runtime")
"""The modes whose questions have options."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question for the upstream.

    Attributes:
        mode: `single`, `multi`, or `runtime`.
        options: The options; none in mode single.
        text: The user's message: canonical JSON of {question, context, options?}, masked.
    """

    mode: str
    options: Sequence[str]
    text: str


def read_question(request: DecisionRequest, *, root: str = "") -> Question:
    """The question of a request.

    Args:
        request: The request.
        root: What to call the request in the paths of errors; nothing where empty.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: its options are no options, or a part that cannot be masked without
            changing the question looks like a credential or an account's number.
    """
    question, context = str(request.body["question"]), cast("JsonObject", request.context)
    asks = request.mode in WITH_OPTIONS
    faults = list(_option_faults(context.get("options"), member(root, "context"))) if asks else []
    if is_blank(question):
        faults.append(FieldError(member(root, "question"), "too_short", "It must have a visible character."))
    elif is_sensitive_text(question):
        faults.append(FieldError(member(root, "question"), "credential", _CREDENTIAL))
    if faults:
        raise RequestRefused(
            "SVC_API_REQUEST_INVALID", to_mend(f"Mode {request.mode} cannot ask this question", faults), faults
        )
    options = cast("list[str]", context["options"]) if asks else []
    rest = {name: item for name, item in context.items() if not (asks and name == "options")}
    sent: JsonObject = {"question": question, "context": mask(rest)}
    if asks:
        sent["options"] = list(options)
    return Question(request.mode, options, canonical(sent).decode())


# Letters and a sign that show nothing.
_UNSEEN: Final = "\u115f\u1160\u2800\u3164\uffa0"


def is_blank(text: str) -> bool:
    """Whether a text has no character that can be seen."""
    return not any(unicodedata.category(char)[0] in "LNPS" and char not in _UNSEEN for char in text)


def _seen(option: str) -> str:
    """An option without what a reader cannot tell apart from another; its accents and capitals stay."""
    alike = unicodedata.normalize("NFKC", option)
    return "".join(char for char in alike if unicodedata.category(char) != "Cf").strip()


_CREDENTIAL: Final = (
    "It looks like a credential, or the number of a card or an account. The gate never sends these to the "
    "upstream. Remove it."
)


def _option_faults(options: Json, path: str) -> Iterator[FieldError]:
    where = member(path, "options")
    fewest, most = OPTIONS
    if options is None:
        yield FieldError(where, "required", f"This mode needs {fewest} to {most} options. Add a list of texts.")
        return
    if not isinstance(options, list):
        yield FieldError(where, "type", f"It must be a list of {fewest} to {most} texts.")
        return
    if not fewest <= len(options) <= most:
        code = "too_few" if len(options) < fewest else "too_many"
        yield FieldError(where, code, f"It must have {fewest} to {most} items.")
        return
    for index, option in enumerate(options):
        at = f"{where}[{index}]"
        if not isinstance(option, str):
            yield FieldError(at, "type", "It must be a string.")
        elif len(option) > MAX_OPTION or is_blank(option):
            code = "too_long" if len(option) > MAX_OPTION else "too_short"
            yield FieldError(at, code, f"It must have 1 to {MAX_OPTION} characters, at least one of them visible.")
        elif _seen(option) in [_seen(other) for other in options[:index] if isinstance(other, str)]:
            yield FieldError(at, "duplicate", "It reads the same as an earlier option. Keep one.")
        elif is_sensitive_text(option):
            yield FieldError(at, "credential", _CREDENTIAL)
