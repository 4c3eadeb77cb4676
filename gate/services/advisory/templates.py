"""The prompt templates that travel with the product: `data/advisory/<mode>.json`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, TypedDict

from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.shapes import Shape
from gate.encoding.strict_json import JsonObject, parse


class _Document(TypedDict):
    """A template as its file holds it."""

    id: str
    version: str
    system: str
    answer_schema: JsonObject


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt template: the policy of an advisory record.

    Attributes:
        policy_id: advisory.<mode>.
        version: Its version.
        hash: H of the whole template.
        system: The system message, with the schema of the answer.
        shape: The compiled schema of the answer.
    """

    policy_id: str
    version: str
    hash: str
    system: str
    shape: Shape


@cache
def template(mode: str) -> Template:
    """The template of an advisory mode."""
    document: _Document = parse(resources.path("data", "advisory", f"{mode}.json").read_bytes())
    schema = document["answer_schema"]
    return Template(
        document["id"],
        document["version"],
        content_hash(document),
        f"{document['system']}\n\n{canonical(schema).decode()}",
        Shape({"$schema": _DIALECT, **schema}),
    )


_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
