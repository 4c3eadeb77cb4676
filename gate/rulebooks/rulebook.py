"""Rulebook v1: validation with every limit and code, its hash, and a cache of compiled ones.

    rulebook = load(parse(path.read_bytes()))
    rulebook.hash          # c986eb64... for data/rulebooks/pricing_exception.json

The shape stands in `schemas/rulebook-v1.schema.json`; what a schema cannot say (unique rule ids, the count of condition
nodes, how deep a condition nests) is added here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Final, cast

from cachetools import LRUCache

from gate.encoding.canonical import canonical, content_hash, is_plain
from gate.encoding.shapes import MAX_ERRORS, shape
from gate.errors import FieldError, RulebookRefused, member
from gate.labels import CANONICALIZATION, HASH_ALGORITHM, RULEBOOK_SCHEMA
from gate.rulebooks.conditions import walk
from gate.rulebooks.documents import PolicyBundle, RulebookBody, RulebookReference
from gate.rulebooks.evaluation import Evaluator, compile_rulebook

MAX_CONDITION_NODES: Final = 256
MAX_CONDITION_DEPTH: Final = 8


@dataclass(frozen=True)
class Rulebook:
    """A valid rulebook, compiled.

    Attributes:
        body: The rulebook as it was sent.
        hash: H(body).
        evaluator: Its compiled evaluation.
        plain: Whether the body is plain, as `canonical.is_plain` says.
    """

    body: RulebookBody
    hash: str
    evaluator: Evaluator
    plain: bool

    @cached_property
    def rulebook_id(self) -> str:
        """Its identifier; the policy_id of the records it decides."""
        return self.body["rulebook_id"]

    @cached_property
    def version(self) -> str:
        """Its version label; the policy_version of the records it decides."""
        return self.body["version"]

    @cached_property
    def policy_bundle_hash(self) -> str:
        """H(policy_bundle)."""
        return content_hash(self.policy_bundle, plain=self.plain)

    @property
    def reference(self) -> RulebookReference:
        """{schema_version, id, version, hash}, as records name it."""
        return {
            "schema_version": RULEBOOK_SCHEMA,
            "id": self.rulebook_id,
            "version": self.version,
            "hash": self.hash,
        }

    @property
    def policy_bundle(self) -> PolicyBundle:
        """The rulebook as a policy, `{id, version, hash, hash_algorithm, canonicalization}`."""
        return {
            "id": self.rulebook_id,
            "version": self.version,
            "hash": self.hash,
            "hash_algorithm": HASH_ALGORITHM,
            "canonicalization": CANONICALIZATION,
        }


def load(body: object, *, root: str = "") -> Rulebook:
    """Validates and compiles a rulebook.

    Args:
        body: The parsed JSON value.
        root: What to call the rulebook in the paths of errors, for example `rulebook`.

    Raises:
        RulebookRefused: `RULEBOOK_INVALID`, with an error for each member at fault.
    """
    if errors := find_errors(body, root=root):
        raise RulebookRefused(
            "RULEBOOK_INVALID",
            f"The rulebook breaks Rulebook v1 in {_count(len(errors), 'place')}. Correct each field listed.",
            errors,
        )
    plain = is_plain(body)
    valid = cast("RulebookBody", body)
    return Rulebook(valid, content_hash(body, plain=plain), compile_rulebook(valid), plain)


class RulebookCache:
    """Compiled rulebooks by their hash, validated once each; bounded by the bytes of the rulebooks it holds."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        """Holds rulebooks of at most `max_bytes` canonical bytes together."""
        self._by_hash: LRUCache[str, Rulebook] = LRUCache(max_bytes, getsizeof=_size)
        self._lock = Lock()

    def load(self, body: object, *, root: str = "", plain: bool = False) -> Rulebook:
        """As the function `load`, which runs only for a rulebook not seen lately; `plain` as `canonical` takes it."""
        hash_ = content_hash(body, plain=plain)
        found = self.get(hash_)
        if found is None:
            found = load(body, root=root)
            with self._lock:
                if _size(found) <= self._by_hash.maxsize:
                    self._by_hash[hash_] = found
        return found

    def get(self, hash_: str) -> Rulebook | None:
        """The rulebook of that hash, if it is here."""
        with self._lock:
            return self._by_hash.get(hash_)


def _size(rulebook: Rulebook) -> int:
    return len(canonical(rulebook.body))


def find_errors(body: object, *, root: str = "") -> list[FieldError]:
    """What makes a value no valid Rulebook v1: one error a member, empty where it is valid."""
    errors = [_about_comments(error, root) for error in shape("rulebook-v1").errors(body, root=root)]
    # Counting needs the shape, so it runs only over what has one.
    if errors:
        return errors
    shaped = cast("RulebookBody", body)
    return [*_duplicate_rule_ids(shaped, root), *_condition_limits(shaped, root)][:MAX_ERRORS]


# The places of the authoring form that Rulebook v1 does not have; `authoring` takes them out.
_COMMENT: Final = re.compile(r"\$schema|(rules\[[0-9]+\]\.(outcome\.)?|default_outcome\.)?description")


def _about_comments(error: FieldError, root: str) -> FieldError:
    place = error.field.removeprefix(f"{root}." if root else "")
    if error.code != "unknown_field" or not _COMMENT.fullmatch(place):
        return error
    message = "Only files may have this field. Remove it, or send the output of `gate rulebook convert`."
    return replace(error, message=message)


def _duplicate_rule_ids(body: RulebookBody, root: str) -> Iterator[FieldError]:
    counts = Counter(rule["rule_id"] for rule in body["rules"])
    for index, rule in enumerate(body["rules"]):
        if counts[rule["rule_id"]] > 1:
            yield FieldError(
                member(root, f"rules[{index}].rule_id"),
                "duplicate",
                f"Several rules have the id {rule['rule_id']!r}. Give each rule its own id.",
            )


def _condition_limits(body: RulebookBody, root: str) -> Iterator[FieldError]:
    nodes = 0
    for index, rule in enumerate(body["rules"]):
        depths = [node.depth for node in walk(rule["condition"])]
        nodes += len(depths)
        if max(depths) > MAX_CONDITION_DEPTH:
            yield FieldError(
                member(root, f"rules[{index}].condition"),
                "too_deep",
                f"It nests {max(depths)} deep; at most {MAX_CONDITION_DEPTH} are allowed.",
            )
    if nodes > MAX_CONDITION_NODES:
        yield FieldError(
            member(root, "rules"),
            "too_many",
            f"Their conditions hold {nodes} nodes; at most {MAX_CONDITION_NODES} are allowed.",
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
