"""The parameters of the demo in `data/demo/scenario.json`, which `data/demo/README.md` explains.

A `JsonObject` describes values to be drawn: `drawing` reads it.
"""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import Condition

Weights: TypeAlias = dict[str, float]
"""How often each of several things is drawn."""


class Calendar(TypedDict):
    """The times and policies of a scope's decisions. Lists have weights from Monday, from January, or from midnight."""

    policies: Weights
    weekdays: list[float]
    months: list[float]
    hours: list[float]
    from_day: NotRequired[int]


class Company(Calendar):
    """The parameters of a scope."""

    domain: str


class ScopeParameters(Company):
    """One of the large companies; `share` is of all decisions, `adapters` are by policy, `people` by team."""

    company: str
    share: float
    people: dict[str, list[str]]
    adapters: NotRequired[dict[str, str]]


class PeersParameters(Calendar):
    """The small companies. They differ only in their names, and in the values drawn for these."""

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

    Without `within_hours` there is no time limit. A note of null means an answer without a note.
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
    """A version of a policy; without `conditions` it is a version of the product."""

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
    """The outcomes of a policy. A metric is described by status, or by `any` for all other statuses."""

    metrics: dict[str, JsonObject]


class KindParts(TypedDict):
    """The values of a kind of request that replace those of its policy."""

    values: NotRequired[JsonObject]
    facts: NotRequired[JsonObject]
    missing_fact: NotRequired[float]
    outcome: NotRequired[OutcomeTimes]
    ends: Weights


class KindParameters(KindParts):
    """A kind of request."""

    weight: float


class ExecutionParameters(TypedDict):
    """The executor of an action, and how soon it executes."""

    executor: JsonObject
    after_minutes: JsonObject


class PolicyParameters(TypedDict):
    """A policy: its versions, the values of its requests, and its reports.

    `crm_sync` has the probability of a report under `reported`, and describes the fields of the report.
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
    """A few days of requests of one kind in one scope; `share` is a share of all decisions."""

    scope: str
    policy: str
    from_day: int
    days: int
    share: float
    hours: list[float]
    kind: KindParts


class HastyWorker(TypedDict):
    """A few actions of one scope that are executed although a policy holds them: the first ones from a day on."""

    scope: str
    policy: str
    from_day: int
    actions: int
    why: str


class Incidents(TypedDict):
    """The planted incidents."""

    bad_rollout: BadRollout
    hasty_worker: HastyWorker
    fraud_burst: FraudBurst


class Parameters(TypedDict):
    """All of `scenario.json`."""

    days: int
    day_noise: float
    scopes: dict[str, ScopeParameters]
    peers: PeersParameters
    owners: list[OwnerParameters]
    reports: ReportRates
    policies: dict[str, PolicyParameters]
    incidents: Incidents
