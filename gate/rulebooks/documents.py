"""The documents of rulebooks: their bodies, what records cite of them, and the evaluation that explains an outcome.

The types describe valid documents. A body is one once `rulebook.load` has let it pass.
"""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict, final

from gate.encoding.strict_json import Json, JsonObject


class DeclaredField(TypedDict):
    """A field of an input schema."""

    type: str


class InputSchema(TypedDict):
    """The facts that a rulebook asks for."""

    required: list[str]
    properties: dict[str, DeclaredField]


class DeclaredOutcome(TypedDict):
    """The outcome of a rule, or of no rule."""

    decision: str
    verdict: str
    action: str
    reason_code: str


# Written as a call because a member is named `not`.
Condition = TypedDict(
    "Condition",
    {
        "all": list["Condition"],
        "any": list["Condition"],
        "not": "Condition",
        "field": str,
        "operator": str,
        "value": Json,
    },
    total=False,
)
"""A node of a condition: a combinator, or a test. `value` is absent from the tests of presence."""


class DeclaredRule(TypedDict):
    """A rule as its author wrote it."""

    rule_id: str
    priority: NotRequired[int]
    condition: Condition
    outcome: DeclaredOutcome


class RulebookBody(TypedDict):
    """A rulebook as it was sent; `schemas/rulebook-v1.schema.json`."""

    schema_version: str
    rulebook_id: str
    version: str
    input_schema: InputSchema
    rules: list[DeclaredRule]
    default_outcome: DeclaredOutcome


class RuleAnnotations(TypedDict, total=False):
    """The author's comments on a rule and on its outcome."""

    description: str
    outcome: str


class Annotations(TypedDict, total=False):
    """The author's comments on a rulebook, those on rules by rule_id. No hash or signature covers them."""

    schema: str
    description: str
    rules: dict[str, RuleAnnotations]
    default_outcome: str


class RulebookReference(TypedDict):
    """A rulebook as records name it."""

    schema_version: str
    id: str
    version: str
    hash: str


class PolicyBundle(TypedDict):
    """A rulebook as a policy."""

    id: str
    version: str
    hash: str
    hash_algorithm: str
    canonicalization: str


class BundleEntry(TypedDict):
    """One of the product's rulebooks in the policy bundle registry."""

    policy_id: str
    policy_version: str
    policy_hash: str
    policy_bundle: PolicyBundle
    policy_bundle_hash: str
    status: str
    source: str


class NamedTest(TypedDict):
    """A test as an evaluation names it; `expected` is absent from the tests of presence."""

    path: str
    field: str
    operator: str
    expected: NotRequired[Json]


@final
class AbsentTest(NamedTest):
    """A test of a field that was absent."""

    passed: bool


@final
class ObservedTest(NamedTest):
    """A test of a field that was present. A long value is observed as `{sha256, bytes}`."""

    observed: object
    passed: bool


TriedTest: TypeAlias = AbsentTest | ObservedTest
"""A test that was tried."""


class TriedRule(TypedDict):
    """A rule that was tried, with all of its tests."""

    rule_id: str
    priority: int
    passed: bool
    tests: list[TriedTest]


class InvalidField(TypedDict):
    """A fact of another type than the input schema declares."""

    field: str
    expected: str
    observed_type: str


class Evaluation(TypedDict):
    """How an outcome came about; `rules` are those that were tried, up to and including the match."""

    matched: bool
    missing_fields: list[str]
    invalid_fields: list[InvalidField]
    rules: list[TriedRule]


class AdapterDependency(TypedDict):
    """The adapter that makes a rulebook's facts, as its registration is bound to it."""

    adapter_id: str
    version: str
    manifest_hash: str
    implementation_hash: str


class TrustedAdapter(AdapterDependency):
    """An adapter's invocation, as records and attestations tell it."""

    manifest_version: str
    implementation_revision: str
    input_hash: str
    output_hash: str
    execution_isolation: str
    capability_enforcement: str
    execution_timeout_ms: int


class AdapterInvocation(TypedDict):
    """The adapter that a request asks to make its facts, with its input."""

    adapter_id: str
    version: str
    manifest_hash: str
    input: JsonObject


class UnhashedPattern(TypedDict):
    """What a pattern's hash covers."""

    pattern_id: str
    policy_id: str
    title: str
    description: str
    tags: list[str]
    recommended_policy_version: str
    policy_hash: str
    decision_request_template: dict[str, object]
    outcome_template: dict[str, object]
    crm_sync_template: dict[str, object]
    sdk_examples: dict[str, str]


class Pattern(UnhashedPattern):
    """A policy pattern as it is served; the templates are bodies of requests."""

    pattern_hash: str
