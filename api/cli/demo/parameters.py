"""The parameters of the demo, as data/demo/scenario.json holds them and data/demo/README.md explains them.

A `JsonObject` describes values to be drawn: `drawing` reads it.
"""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import Condition

Weights: TypeAlias = dict[str, float]
"""How often each of several things is drawn."""


class Calendar(TypedDict):
    """When a scope decides, and what about; lists hold weights, from Monday, January and midnight."""

    policies: Weights
    weekdays: list[float]
    months: list[float]
    hours: list[float]
    from_day: NotRequired[int]


class Company(Calendar):
    """A scope, as its decisions are drawn."""

    domain: str


class ScopeParameters(Company):
    """One of the large companies; `share` is of all decisions, `adapters` are by policy, `people` by team."""

    company: str
    share: float
    people: dict[str, list[str]]
    adapters: NotRequired[dict[str, str]]


class PeersParameters(Calendar):
    """The small companies, which differ in their names alone, and in what is drawn for these."""

    decisions: int
    kinds_vary: float
    success_varies: float
    companies: dict[str, str]


class ReportRates(TypedDict):
    """How often something is reported, and when."""

    executed: float
    executions: Weights
    granted_executed: float
    retried: float
    retry_hours: JsonObject
    revised: float
    revised_after_hours: JsonObject
    review_executed: float
    review_care: float
    review_hours: JsonObject
    review_open: float
    no_reported: float
    no_ends: Weights


class OwnerParameters(TypedDict):
    """The team that owns the reviews of a policy, or of one of its actions, and how it answers.

    Without `within_hours` there is no time limit. A note that is null is left out.
    """

    policy: str
    action: NotRequired[str]
    owner: str
    within_hours: NotRequired[float]
    grant_hours: float
    unanswered: float
    answer_hours: JsonObject
    answers: Weights
    notes: dict[str, list[str | None]]


class VersionParameters(TypedDict):
    """A version of a policy; without `conditions` it travels with the product."""

    version: str
    from_day: int
    why: str
    conditions: NotRequired[dict[str, Condition]]


class OutcomeTimes(TypedDict):
    """How often an outcome is reported, how often pending before it, and after how many hours."""

    reported: float
    pending: float
    after_hours: JsonObject


class OutcomeParameters(OutcomeTimes):
    """The outcomes of a policy; a metric is described by status, and else by `any`."""

    metrics: dict[str, JsonObject]


class KindParts(TypedDict):
    """What a kind of request says instead of its policy."""

    values: NotRequired[JsonObject]
    facts: NotRequired[JsonObject]
    missing_fact: NotRequired[float]
    outcome: NotRequired[OutcomeTimes]
    ends: Weights


class KindParameters(KindParts):
    """A kind of request."""

    weight: float


class ExecutionParameters(TypedDict):
    """Who executes, and how soon."""

    executor: JsonObject
    after_minutes: JsonObject


class PolicyParameters(TypedDict):
    """A policy: its versions, what its requests are drawn from, and what is reported of them.

    `crm_sync` says under `reported` how often, and describes the members of the report.
    """

    workflow: str
    question: str
    versions: list[VersionParameters]
    values: JsonObject
    facts: JsonObject
    missing_fact: float
    kinds: dict[str, KindParameters]
    context: JsonObject
    execution: ExecutionParameters
    outcome: OutcomeParameters
    crm_sync: NotRequired[JsonObject]


class BadRollout(VersionParameters):
    """A version that one scope has for some weeks; it ends before `until_day`."""

    scope: str
    policy: str
    until_day: int


class FraudBurst(TypedDict):
    """A few days of requests of one kind in one scope; `share` is of all decisions."""

    scope: str
    policy: str
    from_day: int
    days: int
    share: float
    hours: list[float]
    kind: KindParts


class HastyWorker(TypedDict):
    """A few actions of one scope that are executed though a policy holds them: the next ones from a day on."""

    scope: str
    policy: str
    from_day: int
    actions: int
    why: str


class Incidents(TypedDict):
    """What is planted."""

    bad_rollout: BadRollout
    hasty_worker: HastyWorker
    fraud_burst: FraudBurst


class Parameters(TypedDict):
    """All of scenario.json."""

    days: int
    day_noise: float
    scopes: dict[str, ScopeParameters]
    peers: PeersParameters
    owners: list[OwnerParameters]
    reports: ReportRates
    policies: dict[str, PolicyParameters]
    incidents: Incidents
