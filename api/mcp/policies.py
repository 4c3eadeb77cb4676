"""The policy services as servers: one for each question, and one with all four.

Their answers are public and unsigned. Every call returns a verdict, which is UNKNOWN if the arguments give none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, TypeAlias

from api.http.state import state
from api.mcp.servers import READS, Result, Server, Tool
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.strict_json import JsonObject, parse_with_any_number
from gate.labels import INTERFACE_VERSION
from gate.services.policies.answers import MAX_TEXT, answer, read_arguments
from gate.services.policies.facts import MAX_DAYS
from gate.services.policies.questions import BY_SERVICE, QUESTIONS, Question

ALL: Final = "policy"
"""The name of the server with all four questions."""

Call: TypeAlias = Callable[[JsonObject], Result]

_INSTRUCTIONS: Final = (
    "Answers questions about vendors' published policies, from a table that the operator of this service keeps. The "
    "answer is unsigned and authorizes nothing: it never replaces a binding decision. Act on a verdict only as the "
    "owner of the action allows. UNKNOWN means that a person must read the source; it is not a permission. State the "
    "vendor, and the region as a country code and the plan if you know them; leave out what you do not know."
)


@cache
def policy_server(name: str) -> Server:
    """The server of a service: `refund`, `cancel`, `return` or `trial`, or `ALL` for all of them."""
    questions = QUESTIONS if name == ALL else (BY_SERVICE[name],)
    title = "Policy questions" if name == ALL else questions[0].title
    return Server(
        name=f"decision-gate-{name}",
        title=title,
        version=INTERFACE_VERSION,
        instructions=_INSTRUCTIONS,
        tools=[_tool(question) for question in questions],
        cache_scope="public",
        parse=parse_with_any_number,
    )


def _tool(question: Question) -> Tool:
    return Tool(
        name=question.tool,
        title=question.title,
        description=_description(question),
        input_schema=_input_schema(question),
        output_schema=_output_schema(question.verdicts),
        annotations=READS,
        call=_call(question),
    )


def _description(question: Question) -> str:
    verdicts = " ".join(f"{verdict}: {meaning}" for verdict, meaning in question.verdicts.items())
    return f"{question.description} {verdicts} The answer is information and authorizes nothing."


def _input_schema(question: Question) -> JsonObject:
    text: JsonObject = {"type": "string", "maxLength": MAX_TEXT}
    members: JsonObject = {
        "vendor": {**text, "description": "The vendor, for example adobe."},
        "region": {
            **text,
            "description": (
                "The customer's country as ISO 3166-1 alpha-2, such as US, or with a subdivision, such as US-CA."
            ),
        },
        "plan": {**text, "description": "The plan or the product category."},
        "conditions_met": {
            "type": "array",
            "items": {"type": "string", "maxLength": MAX_TEXT},
            "description": "The names of the vendor's conditions that are met, from the list in an earlier answer.",
        },
    }
    if question.days is not None:
        name, since = question.days
        members[name] = {
            "type": "number",
            "minimum": 0,
            "maximum": MAX_DAYS,
            "description": f"The number of days since {since}; fractions are allowed.",
        }
    return {"type": "object", "properties": members, "required": ["vendor"], "additionalProperties": False}


def _output_schema(verdicts: Iterable[str]) -> JsonObject:
    published = resources.schema("policy-answer")
    schema: JsonObject = {name: value for name, value in published.items() if name not in ("$schema", "title")}
    members = published["properties"]
    return {**schema, "properties": {**members, "verdict": {**members["verdict"], "enum": [*verdicts]}}}


def _call(question: Question) -> Call:
    def call(arguments: JsonObject) -> Result:
        instance = state().instance
        answered = answer(
            question,
            instance.policy_tables.table(question.service),
            read_arguments(question, arguments),
            utc_now(),
            max_age_days=instance.settings.policy_max_age_days,
        )
        return Result(answered, notes=(answered["message"], answered["notice"]))

    return call
