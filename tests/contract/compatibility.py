"""What a new OpenAPI document takes away from its callers, sentence by sentence.

Additions are allowed: paths, methods, optional parameters and members, statuses, headers, enum values. A caller breaks
where something it sends is no longer taken, or something it reads is no longer there or no longer the same.

    breaks(frozen, served)      [] where every caller of the frozen document can live with the served one
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = Mapping[str, Any]

_SENT, _READ = "sent", "read"

# Must be the same as ever: what a value is, and what its absence means.
_FIXED: Final = ("format", "const", "default", "pattern")
_CONDITIONS: Final = ("if", "then", "else", "not", "dependentRequired", "propertyNames")
_LOWEST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_HIGHEST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_BRANCHES: Final = ("anyOf", "oneOf", "allOf")


def breaks(old: Json, new: Json) -> list[str]:
    """What breaks for a caller of the old document.

    Args:
        old: An OpenAPI 3.1 document.
        new: The document that would take its place.

    Returns:
        A sentence for each break, in the old document's order.
    """
    return list(dict.fromkeys(_Comparison(old, new).found()))


class _Comparison:
    def __init__(self, old: Json, new: Json) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[str, str]] = set()

    def found(self) -> Iterator[str]:
        for path, item in self._old["paths"].items():
            if path not in self._new["paths"]:
                yield f"The path {path} is gone."
                continue
            for method, operation in item.items():
                where = f"{method.upper()} {path}"
                if method not in self._new["paths"][path]:
                    yield f"The method {where} is gone."
                else:
                    yield from self._operation(operation, self._new["paths"][path][method], where)
        for kind, entries in self._old["components"].items():
            for name in entries:
                if name not in self._new["components"].get(kind, {}):
                    yield f"The component {kind}/{name} is gone."
        for name, schema in self._old["components"]["schemas"].items():
            # Those that no operation reaches are still what generated clients are made of.
            if name in self._new["components"]["schemas"] and not {(name, _SENT), (name, _READ)} & self._seen:
                yield from self._named(name, schema, self._new["components"]["schemas"][name], _READ)

    def _operation(self, old: Json, new: Json, where: str) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"{where}: the operationId {old['operationId']} became {new['operationId']}."
        for requirement in new["security"]:
            if requirement not in old["security"]:
                yield f"{where}: it now needs {', '.join(requirement)}."
        yield from self._parameters(old, new, where)
        yield from self._request(old.get("requestBody"), new.get("requestBody"), where)
        for status, response in old["responses"].items():
            if status not in new["responses"]:
                yield f"{where}: the status {status} is gone."
                continue
            answer = new["responses"][status]
            for name, header in response.get("headers", {}).items():
                if name not in answer.get("headers", {}):
                    yield f"{where}: the header {name} of {status} is gone."
                else:
                    yield from self._holders(
                        header, answer["headers"][name], f"{where}: the header {name} of {status}", _READ
                    )
            yield from self._content(response, answer, f"{where}: {status}", _READ)

    def _parameters(self, old: Json, new: Json, where: str) -> Iterator[str]:
        before, after = self._by_name(self._old, old), self._by_name(self._new, new)
        for (place, name), parameter in before.items():
            told = f"{where}: the {place} parameter {name}"
            if (place, name) not in after:
                yield f"{told} is gone."
                continue
            if after[place, name].get("required") and not parameter.get("required"):
                yield f"{told} became required."
            yield from self._holders(parameter, after[place, name], told, _SENT)
        for (place, name), parameter in after.items():
            if (place, name) not in before and parameter.get("required"):
                yield f"{where}: the {place} parameter {name} is new and required."

    def _by_name(self, document: Json, operation: Json) -> dict[tuple[str, str], Json]:
        resolved = (_resolved(document, parameter) for parameter in operation["parameters"])
        return {(parameter["in"], parameter["name"]): parameter for parameter in resolved if parameter}

    def _request(self, old: Json | None, new: Json | None, where: str) -> Iterator[str]:
        if new and new.get("required") and not (old and old.get("required")):
            yield f"{where}: the request body became required."
        if old and not new:
            yield f"{where}: the request body is gone."
        if old and new:
            yield from self._content(old, new, f"{where}: the request body", _SENT)

    def _content(self, old: Json, new: Json, where: str, direction: str) -> Iterator[str]:
        for media_type, media in old.get("content", {}).items():
            if media_type not in new.get("content", {}):
                yield f"{where}: the media type {media_type} is gone."
            else:
                yield from self._schema(media["schema"], new["content"][media_type]["schema"], where, direction)

    def _holders(self, old: Json, new: Json, where: str, direction: str) -> Iterator[str]:
        before, after = _resolved(self._old, old), _resolved(self._new, new)
        if after:
            yield from self._schema(before["schema"], after["schema"], where, direction)

    def _schema(self, old: Any, new: Any, where: str, direction: str) -> Iterator[str]:
        if isinstance(old, bool) or isinstance(new, bool):
            if old != new and (new is False or direction == _READ):
                yield f"{where}: what it may be changed."
            return
        if direction == _READ and "anyOf" in new and "anyOf" not in old:
            # What was the only kind is one of several now: an addition, like another branch.
            new = _with_branch(new, old)
        if "$ref" in old:
            if old["$ref"] != new.get("$ref"):
                yield f"{where}: {_name(old)} became {_name(new) if '$ref' in new else 'a schema without that name'}."
                return
            yield from self._named(_name(old), _resolved(self._old, old), _resolved(self._new, new), direction)
        elif "$ref" in new:
            new = {**_resolved(self._new, new), **{name: value for name, value in new.items() if name != "$ref"}}
        yield from self._values(old, new, where, direction)
        yield from self._members(old, new, where, direction)
        for keyword in _BRANCHES:
            yield from self._branches(old, new, keyword, where, direction)
        for keyword in _CONDITIONS:
            before, after = _bare(old.get(keyword)), _bare(new.get(keyword))
            if before != after and not (direction == _SENT and keyword != "if" and _requires_less(before, after)):
                yield f"{where}: its condition under {keyword} changed."

    def _named(self, name: str, old: Json, new: Json, direction: str) -> Iterator[str]:
        if new and (name, direction) not in self._seen:
            self._seen.add((name, direction))
            yield from self._schema(old, new, name, direction)

    def _values(self, old: Json, new: Json, where: str, direction: str) -> Iterator[str]:
        before, after = _types(old), _types(new)
        wider = direction == _SENT and (not after or (before and before <= after))
        if before != after and not wider:
            yield f"{where}: the type {_words(before)} became {_words(after)}."
        for keyword in _FIXED:
            if old.get(keyword) != new.get(keyword) and (
                (keyword in old and (keyword in new or direction == _READ or keyword == "default"))
                or (keyword not in old and direction == _SENT and keyword != "default")
            ):
                yield f"{where}: {keyword} {old.get(keyword)!r} became {new.get(keyword)!r}."
        if "enum" in old:
            for value in old["enum"]:
                if "enum" in new and value not in new["enum"]:
                    yield f"{where}: the value {value!r} is gone."
            if "enum" not in new and direction == _READ:
                yield f"{where}: its values are no longer listed."
        elif "enum" in new and direction == _SENT:
            yield f"{where}: only listed values are taken now."
        if direction == _SENT:
            yield from _narrowed(old, new, where)

    def _members(self, old: Json, new: Json, where: str, direction: str) -> Iterator[str]:
        for name, member in old.get("properties", {}).items():
            if name not in new.get("properties", {}):
                yield f"{where}: the member {name} is gone."
            else:
                yield from self._schema(member, new["properties"][name], f"{where}.{name}", direction)
        before, after = set(old.get("required", [])), set(new.get("required", []))
        if direction == _SENT:
            yield from (f"{where}: the member {name} became required." for name in sorted(after - before))
        else:
            yield from (f"{where}: the member {name} is no longer always there." for name in sorted(before - after))
        for keyword, told in (("items", f"{where}[]"), ("additionalProperties", f"{where}.*")):
            if keyword in old and keyword in new:
                yield from self._schema(old[keyword], new[keyword], told, direction)
            elif keyword in new and direction == _SENT and new[keyword] is not True:
                yield f"{told}: what it may be is narrower."
            elif keyword in old and direction == _READ and old[keyword] not in (True, False):
                yield f"{told}: what it is is no longer told."

    def _branches(self, old: Json, new: Json, keyword: str, where: str, direction: str) -> Iterator[str]:
        before, after = old.get(keyword, []), new.get(keyword, [])
        if keyword == "allOf" and direction == _SENT and len(after) > len(before):
            yield f"{where}: more has to hold under allOf."
        if not before and after and keyword != "allOf" and direction == _SENT:
            yield f"{where}: only what stands under {keyword} is taken now."
        named = {_name(part): part for part in after if "$ref" in part}
        plain = [part for part in after if "$ref" not in part]
        for index, part in enumerate(before):
            told = f"{where}, {keyword} {index + 1}"
            if "$ref" in part and _name(part) not in named:
                yield f"{told}: {_name(part)} is gone."
            elif "$ref" in part:
                yield from self._schema(part, named[_name(part)], told, direction)
            elif not plain:
                yield f"{told} is gone."
            else:
                yield from self._schema(part, plain.pop(0), told, direction)


def _with_branch(new: Json, old: Json) -> Json:
    """A schema with that branch of its anyOf which an old schema became: the one of its name, or the first without."""
    branches = [part for part in new["anyOf"] if part.get("$ref") == old.get("$ref")]
    branch = branches[0] if branches else {}
    return {
        **{name: value for name, value in new.items() if name != "anyOf"},
        **branch,
        "properties": {**new.get("properties", {}), **branch.get("properties", {})},
        "required": [*new.get("required", []), *branch.get("required", [])],
    }


def _narrowed(old: Json, new: Json, where: str) -> Iterator[str]:
    for keywords, narrower in ((_LOWEST, operator.gt), (_HIGHEST, operator.lt)):
        for keyword in keywords:
            if keyword in new and (keyword not in old or narrower(new[keyword], old[keyword])):
                yield f"{where}: {keyword} {old.get(keyword, 'nothing')} became {new[keyword]}."
    if new.get("uniqueItems") and not old.get("uniqueItems"):
        yield f"{where}: its items have to differ now."


def _resolved(document: Json, node: Json) -> Json:
    """What a node refers to, or itself; {} where that is gone, which is told of the component."""
    if "$ref" not in node:
        return node
    found: Json = document
    for step in node["$ref"].split("/")[1:]:
        found = found.get(step, {})
    return found


def _bare(condition: Any) -> Any:
    """A condition without the words that are for readers."""
    if isinstance(condition, dict):
        return {name: _bare(value) for name, value in condition.items() if name != "description"}
    return [_bare(item) for item in condition] if isinstance(condition, list) else condition


def _requires_less(before: Any, after: Any) -> bool:
    """Whether all that changed is that fewer members are required, which every earlier request satisfies."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    others = [{name: value for name, value in of.items() if name != "required"} for of in (before, after)]
    return others[0] == others[1] and set(after.get("required", ())) < set(before.get("required", ()))


def _types(schema: Json) -> set[str]:
    named = schema.get("type", [])
    return {named} if isinstance(named, str) else set(named)


def _words(types: set[str]) -> str:
    return " or ".join(sorted(types)) or "any"


def _name(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
