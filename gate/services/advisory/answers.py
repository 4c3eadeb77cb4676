"""The strict reader of answers from the upstream: one JSON object that fits the template's schema and the request's
options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from gate.encoding.shapes import Shape
from gate.encoding.strict_json import Json, JsonObject, parse, parse_with_any_number
from gate.errors import MaterialRefused
from gate.services.advisory.failures import failed
from gate.services.advisory.questions import Question, is_blank

_JSON: Final = re.compile(r'application/json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*', re.IGNORECASE)
_DEPTH: Final = 8
_VALUES: Final = 1_000


def read_answer(content_type: str, body: bytes, question: Question, shape: Shape) -> JsonObject:
    """The answer in the body of a chat completion.

    Args:
        content_type: The media type that the upstream states.
        body: The body.
        question: The question that was asked.
        shape: The schema of the answer.

    Raises:
        AdvisoryFailed: `SVC_ADVISORY_UPSTREAM_FAILED`: it is no answer to the question.
    """
    if not _JSON.fullmatch(content_type):
        raise failed("returned an unusable answer: its content type is not application/json")
    try:
        # Upstreams report times and probabilities of their own, which decide nothing here.
        completion: Json = parse_with_any_number(body)
    except MaterialRefused as error:
        raise failed("returned an unusable answer: its body is not JSON") from error
    try:
        answer: Json = parse(_content(completion).encode(), max_depth=_DEPTH, max_values=_VALUES)
    except MaterialRefused as error:
        raise failed("returned an unusable answer: its message is not a JSON text") from error
    if shape.errors(answer):
        raise failed(
            f"returned an unusable answer: its message does not match the answer schema of mode {question.mode}"
        )
    fitting = cast("JsonObject", answer)
    scored = cast("Sequence[JsonObject]", fitting.get("scores") or fitting.get("scorecard") or ())
    _require_options(fitting, scored, question)
    if any(is_blank(str(part["reason"])) for part in (fitting, *scored) if "reason" in part):
        raise failed("returned an unusable answer: one of its reasons is blank")
    return fitting


_NO_ANSWERS: Final = {
    "tool_calls": "returned an unusable answer: it calls a tool",
    "function_call": "returned an unusable answer: it calls a tool",
    "refusal": "gave no answer: it refused",
}


def _content(completion: Json) -> str:
    """The text of the one message in a chat completion."""
    choices = completion.get("choices") if isinstance(completion, dict) else None
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    message = choice.get("message") if isinstance(choice, dict) else None
    for name, did in _NO_ANSWERS.items():
        if isinstance(message, dict) and message.get(name):
            raise failed(did)
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict) or not isinstance(content, str):
        raise failed("returned an unusable answer: its body is not a chat completion with one message")
    if choice.get("finish_reason") not in (None, "stop"):
        raise failed("returned an unusable answer: its message is not finished")
    if message.get("role", "assistant") != "assistant":
        raise failed("returned an unusable answer: its message does not have the role assistant")
    return content


def _require_options(answer: JsonObject, scored: Sequence[JsonObject], question: Question) -> None:
    """Requires that an answer scores each option once, and recommends one of them."""
    if not question.options:
        return
    if sorted(str(item["option"]) for item in scored) != sorted(question.options):
        raise failed("returned an unusable answer: it does not score each option exactly once")
    if question.mode == "runtime" and answer["recommended"] not in question.options:
        raise failed("returned an unusable answer: it recommends an option that was not offered")
