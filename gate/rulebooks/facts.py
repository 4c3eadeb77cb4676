"""What a rulebook decides over: the facts, and where they came from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import NamedTuple, cast

from gate.encoding.strict_json import Json, JsonObject
from gate.labels import BINDING_ADAPTER, BINDING_DIRECT
from gate.rulebooks.documents import AdapterDependency, TrustedAdapter
from gate.rulebooks.evaluation import ABSENT, value_at


class Facts(NamedTuple):
    """The facts of a decision.

    Attributes:
        values: The facts, by name.
        plain: Whether they are plain, as `canonical.is_plain` says.
        trusted_adapter: The adapter's invocation, as records tell it; None where the caller sent the facts.
    """

    values: Mapping[str, object]
    plain: bool
    trusted_adapter: TrustedAdapter | None = None

    @property
    def binding_mode(self) -> str:
        """Where they came from."""
        return BINDING_DIRECT if self.trusted_adapter is None else BINDING_ADAPTER


DEPENDENCY: tuple[str, ...] = ("adapter_id", "version", "manifest_hash", "implementation_hash")
"""The members of a trusted_adapter, and of a manifest, that a rulebook is bound to."""


def dependency_of(trusted_adapter: Mapping[str, object]) -> AdapterDependency:
    """The adapter_dependency of a registration whose facts come from an adapter: a trusted_adapter or a manifest."""
    # Members of a record under verification can be missing; it then equals no registration's.
    return cast("AdapterDependency", {name: trusted_adapter.get(name) for name in DEPENDENCY})


def set_value(facts: JsonObject, field: str, value: Json) -> None:
    """Gives a field of facts a value, and creates absent objects above it."""
    *above, last = field.split(".")
    for segment in above:
        facts = cast("JsonObject", facts.setdefault(segment, {}))
    facts[last] = value


def with_value(facts: JsonObject, field: str, value: object) -> JsonObject:
    """A copy of facts in which a field has another value; without the field for `ABSENT`.

    Args:
        facts: The facts, in which what is above the field is an object, or absent.
        field: The field, a dotted path.
        value: A JSON value, or `ABSENT`.
    """
    changed = copy.deepcopy(facts)
    if value is not ABSENT:
        set_value(changed, field, cast("Json", value))
        return changed
    above, _, last = field.rpartition(".")
    holder = value_at(changed, above) if above else changed
    if isinstance(holder, dict):
        holder.pop(last, None)
    return changed
