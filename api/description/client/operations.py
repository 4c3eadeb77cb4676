"""The operations of an OpenAPI document, as callers in Python see them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from api.description import spec
from api.description.client.components import Unsupported
from api.description.client.names import Names
from api.description.client.schemas import Types, Use

JSON: Final = "application/json"

_METHODS: Final = ("get", "post")
_MEDIA_TYPES: Final = (JSON, "application/atom+xml", "text/csv", "text/html", "text/markdown", "text/plain")
_CREDENTIALS: Final[Mapping[tuple[str, ...], str | None]] = {(): None, ("apiKey",): "key", ("metricsToken",): "metrics"}
_NEEDED: Final = frozenset(
    {"operationId", "tags", "summary", "description", "parameters", "responses", "security", "x-access"}
)
_KNOWN: Final = _NEEDED | {"requestBody", "x-error-codes", "x-rate-limited", "x-client"}
_HANDLE: Final = "x-idempotency-key"
# A POST with this access writes nothing, so that it may be sent again without an idempotency key.
_READING: Final = ("public", "read")
# The member that tells an answer with an error's status from an error.
_TELLTALE: Final = "status"
_SENT: Final = re.compile(r"str|int|float|bool|Literal\[.*\]|(?!Json)[A-Z]\w*")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an operation.

    Attributes:
        name: Its name in Python.
        sent_as: Its name in the document.
        place: Where it is sent: `path`, `body`, `query` or `header`.
        annotation: Its type.
        is_required: Whether a call needs it.
        description: As in the document, with the service's default and the vocabulary's advice.
        elsewhere: The words that lead to other endpoints in the place of this path parameter.
    """

    name: str
    sent_as: str
    place: str
    annotation: str
    is_required: bool
    description: str
    elsewhere: tuple[str, ...] = ()

    @property
    def is_by_name(self) -> bool:
        """Whether it is a keyword argument."""
        return self.place in ("query", "header")


@dataclass(frozen=True, slots=True)
class Answer:
    """An operation's answer.

    Attributes:
        annotation: The type of its body.
        alone: Its type if the argument `only` asks for one entry.
        only: The argument that asks for one entry.
        description: As in the document.
        media_type: The media type of its body.
        statuses: Its statuses.
    """

    annotation: str
    alone: str | None
    only: str | None
    description: str
    media_type: str
    statuses: tuple[int, ...]

    @property
    def may_be_an_error(self) -> bool:
        """Whether it may have a status that errors have too."""
        return max(self.statuses) >= 400


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation with one of its media types.

    Attributes:
        name: Its name in Python.
        operation_id: Its name in the document.
        method: GET or POST.
        path: Its path, with parameters in braces.
        summary: The description in a line.
        description: The description in paragraphs.
        arguments: The arguments: path parameters, the body, and keywords, each in the order of the document.
        answer: Its answer.
        credential: The credential that the client sends.
    """

    name: str
    operation_id: str
    method: str
    path: str
    summary: str
    description: str
    arguments: tuple[Argument, ...]
    answer: Answer
    credential: str | None

    def sent_in(self, place: str) -> list[Argument]:
        """The arguments for one place, such as the query."""
        return [argument for argument in self.arguments if argument.place == place]


def operations(document: spec.Document, types: Types, names: Names) -> dict[str, list[Operation]]:
    """Every operation of a document by the heading of its tag.

    Args:
        document: The OpenAPI document.
        types: Collects the types that the operations need: first those of requests, then those of responses.
        names: The vocabulary of the client.

    Raises:
        Unsupported: An operation has something that the generator does not know.
    """
    tags = [tag["name"] for tag in document["tags"]]
    told = [(path, method, each) for path, item in document["paths"].items() for method, each in item.items()]
    told = [one for one in told if one[1] not in _METHODS or one[2].get("x-client", True)]
    for one in told:
        _check(*one, tags)
    if gone := {*names.alone, *names.forms} - {each["operationId"] for _, _, each in told}:
        raise Unsupported(f"The document has no operation {', '.join(sorted(gone))}; correct names.py.")
    told.sort(key=lambda one: tags.index(one[2]["tags"][0]))
    reader = _Reader(document, types, names)
    bodies = [list(reader.body(each)) for _, _, each in told]
    made: dict[str, list[Operation]] = {}
    for one, body in zip(told, bodies, strict=True):
        tag = document["tags"][tags.index(one[2]["tags"][0])]
        made.setdefault(f"{tag['name']}: {tag['description']}", []).extend(reader.operation(*one, body))
    return made


class _Reader:
    """Reads operations."""

    def __init__(self, document: spec.Document, types: Types, names: Names) -> None:
        self._paths = document["paths"]
        self._shared = document["components"].get("parameters", {})
        self._types = types
        self._names = names

    def operation(self, path: str, method: str, told: spec.Operation, body: list[Argument]) -> Iterator[Operation]:
        """The operation, once for each media type that it answers in."""
        name = told["operationId"]
        given = list(self._parameters(path, told))
        by_name = [argument for argument in given if argument.is_by_name]
        in_path = {argument.name: argument for argument in given if not argument.is_by_name}
        members = re.findall(r"{(\w+)}", path)
        if in_path.keys() != set(members):
            raise Unsupported(f"{name}: its parameters of the path are not those of {path}.")
        for function, media_type, media in self._forms(told):
            yield Operation(
                name=function,
                operation_id=name,
                method=method.upper(),
                path=path,
                summary=told["summary"],
                description=told["description"],
                arguments=(*(in_path[member] for member in members), *body, *by_name),
                answer=self._answer(told, media_type, media),
                credential=_CREDENTIALS[_schemes(told)],
            )

    def body(self, told: spec.Operation) -> Iterator[Argument]:
        """The argument that is the body of an operation, where it has one."""
        if (body := told.get("requestBody")) is None:
            return
        schema = _media(told, body)[1]["schema"]
        use = Use(f"Requests: {told['tags'][0]}", is_sent=True)
        typed = self._types.annotation(f"{told['operationId']}.body", schema, use)
        # To a type checker, a body that comes from a file or is made of parts is a mapping.
        annotation = f"{typed.removesuffix(' | Mapping[str, Json]')} | Mapping[str, object]"
        name = self._names.bodies.get(schema.get("$ref", "").rpartition("/")[2], "request")
        yield Argument(name, name, "body", annotation, body.get("required", False), body["description"])

    def _parameters(self, path: str, told: spec.Operation) -> Iterator[Argument]:
        for given in told.get("parameters", ()):
            parameter = self._shared[given["$ref"].rpartition("/")[2]] if "$ref" in given else given
            if parameter["name"] not in self._names.left_out:
                yield self._parameter(told["operationId"], path, parameter)

    def _parameter(self, operation: str, path: str, told: spec.Parameter) -> Argument:
        sent_as, place, schema = told["name"], told["in"], told["schema"]
        if place not in ("path", "query", "header") or told.get("required", False) != (place == "path"):
            raise Unsupported(f"{operation}: {sent_as} is a parameter of a kind that the generator does not know.")
        if place == "header" and sent_as not in self._names.headers:
            raise Unsupported(f"{operation}: give the header {sent_as} a name in names.py, or leave it out there.")
        name = self._names.headers[sent_as] if place == "header" else sent_as
        name = f"{name}_" if keyword.iskeyword(name) else name
        annotation = self._types.annotation(f"{operation}.{sent_as}", schema, Use(is_sent=True))
        if not _SENT.fullmatch(annotation):
            raise Unsupported(f"{operation}: {sent_as} is {annotation}, which is not sent in a {place}.")
        if schema.get("format") == "date-time":
            annotation += " | datetime"
        default = f"None means {str(schema['default']).lower()}." if "default" in schema else ""
        description = " ".join(filter(None, (told["description"], default, self._names.advice.get(name))))
        elsewhere = self._elsewhere(path, sent_as) if place == "path" else ()
        return Argument(name, sent_as, place, annotation, place == "path", description, elsewhere)

    def _elsewhere(self, path: str, parameter: str) -> tuple[str, ...]:
        before = path.partition(f"{{{parameter}}}")[0]
        # Where no path ends with the parameter, a word in its place leads nowhere.
        if f"{before}{{{parameter}}}" not in self._paths:
            return ()
        words = {other.removeprefix(before).partition("/")[0] for other in self._paths if other.startswith(before)}
        return tuple(sorted(word for word in words if word and "{" not in word))

    def _forms(self, told: spec.Operation) -> Iterator[tuple[str, str, spec.MediaType]]:
        """The functions of an operation, each with its media type and what the document says of that."""
        name, answer = told["operationId"], told["responses"][_good(told)]
        function = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        others = self._names.forms.get(name, {})
        content = answer.get("content", {})
        if missing := others.keys() - content.keys():
            raise Unsupported(f"{name} does not answer {', '.join(sorted(missing))}; correct names.py.")
        first: spec.Response = {
            **answer,
            "content": {media_type: media for media_type, media in content.items() if media_type not in others},
        }
        yield function, *_media(told, first)
        for media_type, other in others.items():
            yield other, *_media(told, {**answer, "content": {media_type: content[media_type]}})

    def _answer(self, told: spec.Operation, media_type: str, media: spec.MediaType) -> Answer:
        name, answer = told["operationId"], told["responses"][_good(told)]
        schema, only = media["schema"], self._names.alone.get(name)
        use = Use(f"Responses: {told['tags'][0]}")
        found = [
            self._types.annotation(f"{name}.answer", one, use)
            for one in ([schema] if only is None else schema["anyOf"])
        ]
        if len(found) != (1 if only is None else 2) or any(" | " in each for each in found):
            raise Unsupported(f"{name} answers {' | '.join(found)}; add the condition of each to names.py.")
        # What is said of one form is said of its schema.
        description = schema.get("description") if name in self._names.forms else None
        made = Answer(
            found[0],
            found[-1] if only else None,
            only,
            description or answer["description"],
            media_type,
            _statuses(told, schema),
        )
        if made.may_be_an_error and not self._types.always_has(schema, _TELLTALE):
            raise Unsupported(f"{name} has an answer with an error's status, and without the field {_TELLTALE}.")
        return made


def _check(path: str, method: str, told: spec.Operation, tags: list[str]) -> None:
    """Refuses an operation of which something would be lost."""
    if method not in _METHODS:
        raise Unsupported(f"{path} has {method}, which the client does not send.")
    name = told.get("operationId", f"{method.upper()} {path}")
    if missing := _NEEDED - told.keys():
        raise Unsupported(f"{name} lacks {', '.join(sorted(missing))}.")
    if unknown := told.keys() - _KNOWN:
        raise Unsupported(f"{name} has {', '.join(sorted(unknown))}, which the generator does not know.")
    if len(told["tags"]) != 1 or told["tags"][0] not in tags:
        raise Unsupported(f"{name} does not have exactly one tag of the document's list.")
    if _schemes(told) not in _CREDENTIALS:
        raise Unsupported(f"{name} needs {', '.join(_schemes(told))}, which the client does not have.")
    has_handle = any(
        _HANDLE in (each.get("name"), each.get("$ref", "").rpartition("/")[2]) for each in told["parameters"]
    )
    if method == "post" and told["x-access"] not in _READING and not has_handle:
        raise Unsupported(f"{name} writes without an idempotency key, so it could not be retried.")
    if _good(told) not in told["responses"]:
        raise Unsupported(f"{name} has no answer with the status 200 or 202.")


def _good(told: spec.Operation) -> str:
    """The status of an answer as it is hoped for: 200, or 202 where something is still to come."""
    return "200" if "200" in told["responses"] else "202"


def _schemes(told: spec.Operation) -> tuple[str, ...]:
    return tuple(scheme for way in told["security"] for scheme in way)


def _media(told: spec.Operation, holder: spec.RequestBody | spec.Response) -> tuple[str, spec.MediaType]:
    """The one media type of a body, with its description."""
    found = dict(holder.get("content", {}))
    if len(found) != 1 or not found.keys() <= set(_MEDIA_TYPES):
        listed = ", ".join(found) or "nothing"
        raise Unsupported(f"{told['operationId']} sends or answers {listed}, which the client does not know.")
    return found.popitem()


def _statuses(told: spec.Operation, schema: spec.Schema) -> tuple[int, ...]:
    """The statuses with the body of the answer, among them those where it may be an error as well."""
    found = []
    for status, answer in told["responses"].items():
        schemas = [media["schema"] for media in answer.get("content", {}).values()]
        if schema in schemas or any(schema in each.get("anyOf", ()) for each in schemas):
            found.append(int(status))
        elif status.startswith("2"):
            raise Unsupported(f"{told['operationId']} answers {status} with another body than {_good(told)}.")
    return tuple(sorted(found))
