"""Writes the types of a document as a module of TypedDicts."""

from __future__ import annotations

import keyword
import re
from itertools import groupby
from typing import Final

from api.description.client.schemas import Member, Shape, Types
from api.description.client.text import comment, docstring, imports, sentence

_HEAD: Final = '''\
"""The types of requests and responses, for editors and type checkers. Nothing is checked at runtime.

Responses may have new fields, and enums may have new words in later releases. Programs must ignore unknown fields, and
handle unknown words. Hashes are SHA-256 in lower-case hex. Times are UTC timestamps such as `2026-01-31T12:00:00.000Z`.
Cursors and ids are opaque.
"""

# Annotations are evaluated here, as they are written: as texts, TypedDict would not see which members are NotRequired.

'''
_IMPORTED: Final = {
    "collections.abc": ("Mapping",),
    "typing": ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict"),
}
_JSON: Final = '''\
Json: TypeAlias = Any
"""Any JSON value, as from `json.loads`. The document does not describe it further, so check it before use."""

'''


def typed_dicts(types: Types) -> str:
    """The module of types."""
    body = _JSON + "".join(f"{name} = {annotation}\n" for name, annotation in types.words.items())
    # A type stands below those that it contains; only a reference to itself comes before its definition.
    coming = {shape.name for shape in types.shapes}
    for heading, group in groupby(types.shapes, key=lambda shape: shape.heading):
        body += f"\n\n# {heading}.\n"
        for shape in group:
            body += f"\n\n{_typed_dict(shape, coming)}"
            coming.discard(shape.name)
    return _HEAD + imports(body, _IMPORTED) + body


def _typed_dict(shape: Shape, coming: set[str]) -> str:
    told = sentence(shape.description)
    if all(each.name.isidentifier() and not keyword.iskeyword(each.name) for each in shape.members):
        members = "".join(f"    {each.name}: {_annotation(each, coming)}\n{_described(each)}" for each in shape.members)
        return f"class {shape.name}(TypedDict):\n{docstring(told)}\n{members}"
    # A class statement has no members that are words of the language.
    members = "".join(
        f"{comment(sentence(each.description), indent=8)}        {each.name!r}: {_annotation(each, coming)},\n"
        for each in shape.members
    )
    return f"{shape.name} = TypedDict({shape.name!r}, {{\n{members}}})\n{docstring(told, indent=0)}"


def _described(member: Member) -> str:
    return docstring(sentence(member.description)) if member.description else ""


def _annotation(member: Member, coming: set[str]) -> str:
    is_ahead = not coming.isdisjoint(re.findall(r"\w+", member.annotation))
    annotation = f'"{member.annotation}"' if is_ahead else member.annotation
    return annotation if member.is_required else f"NotRequired[{annotation}]"
