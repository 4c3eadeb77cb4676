"""The answer to a policy question: a verdict of the question's rulebook, its code, its source, and an attestation.

The attestation contains hashes and no signature, because anyone may ask the question. It binds nobody to act; a binding
verdict is a Decision Record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NotRequired, TypedDict

from gate.encoding.canonical import content_hash
from gate.ids import timestamp
from gate.labels import BINDING_DIRECT
from gate.records.attestation import rulebook_attestation
from gate.records.documents import RulebookAttestation
from gate.records.record import runtime_binding_of
from gate.rulebooks.documents import RulebookReference
from gate.rulebooks.evaluation import Outcome
from gate.services.policies.facts import facts_of, usable_days
from gate.services.policies.messages import Told, message
from gate.services.policies.questions import Question
from gate.services.policies.table import Entry, Offer, PolicyTable, Unfound, Windows, age_in_days

ANSWER: Final = "policy_answer_v1"

NOTICE: Final = (
    "This is a statement of a public policy. It is unsigned and authorizes nothing; a binding verdict is a "
    "Decision Record."
)

MAX_TEXT: Final = 200
"""The longest vendor, region or plan that is looked up."""

_SHOWN: Final = 80


class AskedCondition(TypedDict):
    """A condition of the entry, and whether the caller confirmed it."""

    name: str
    text: str
    confirmed: bool


class AnswerSource(TypedDict):
    """Where the entry comes from."""

    url: str
    last_verified: str | None
    age_days: int | None
    notes: NotRequired[str]


class Terms(TypedDict, total=False):
    """The terms of the entry, as the table has them."""

    windows: Windows
    penalties: list[str]
    offers: Offer | Literal["none"]


class TableReference(TypedDict):
    """The table that was asked."""

    service: str
    hash: str


class PolicyAnswer(TypedDict):
    """The answer; `docs/guides/answer-refund-questions.md` describes each member."""

    policy_answer_version: str
    verdict: str
    code: str
    message: str
    recommended_action: str
    binding: Literal[False]
    notice: str
    tool: str
    vendor: str
    region: str
    plan: str
    entry: str
    terms: Terms
    conditions: list[AskedCondition]
    source: AnswerSource | None
    facts: Mapping[str, object]
    matched_rule_id: str | None
    rulebook: RulebookReference
    policy_table: TableReference
    attestation: RulebookAttestation
    answered_at: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The usable part of a caller's arguments.

    Attributes:
        vendor: The vendor; empty where none was named.
        region: The region; None where none was named.
        plan: The plan; None where none was named.
        days: How many days have passed; None where that is not known.
        confirmed: The names of the conditions that the caller confirms.
        unusable: The first of vendor, region, and plan with a value that no table can have.
        unknown: The names of arguments that the question does not have.
    """

    vendor: str
    region: str | None
    plan: str | None
    days: float | None
    confirmed: frozenset[str]
    unusable: Literal["vendor", "region", "plan"] | None = None
    unknown: tuple[str, ...] = ()


def read_arguments(question: Question, arguments: Mapping[str, object]) -> Asked:
    """The usable part of arguments, which may be any JSON.

    Days that are not a number, and conditions that are not texts, are ignored.
    """
    vendor, region, plan = arguments.get("vendor"), arguments.get("region"), arguments.get("plan")
    met = arguments.get("conditions_met")
    return Asked(
        vendor=_text(vendor) or "",
        region=_text(region),
        plan=_text(plan),
        days=None if question.days is None else usable_days(arguments.get(question.days[0])),
        confirmed=frozenset(name for name in met if isinstance(name, str)) if isinstance(met, list) else frozenset(),
        unusable="vendor" if _is_odd(vendor) else "region" if _is_odd(region) else "plan" if _is_odd(plan) else None,
        unknown=tuple(name for name in arguments if name not in question.arguments),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= MAX_TEXT else None


def _is_odd(value: object) -> bool:
    return value is not None and _text(value) is None


def answer(question: Question, table: PolicyTable, asked: Asked, now: datetime, *, max_age_days: int) -> PolicyAnswer:
    """Answers a policy question from a table.

    Args:
        question: The question.
        table: The active table.
        asked: The arguments.
        now: The current moment, in UTC.
        max_age_days: How long after its last verification an entry answers.
    """
    found = find(question, table, asked)
    today = now.date()
    facts = facts_of(
        question, found, days=asked.days, confirmed=asked.confirmed, today=today, max_age_days=max_age_days
    )
    outcome = question.rulebook.evaluator.decide(facts)
    entry: Entry | None = None if isinstance(found, Unfound) else found
    age = None if entry is None else age_in_days(entry, today)
    conditions = _conditions(entry, asked.confirmed)
    vendor = asked.vendor[:_SHOWN] if entry is None else entry["name"]
    unconfirmed = [condition["name"] for condition in conditions if not condition["confirmed"]]
    told = Told(question, vendor or "the vendor", found, facts, age, unconfirmed, max_age_days)
    return {
        "policy_answer_version": ANSWER,
        "verdict": outcome.verdict,
        "code": outcome.reason_code,
        "message": message(outcome.reason_code, told),
        "recommended_action": outcome.action,
        "binding": False,
        "notice": NOTICE,
        "tool": question.tool,
        "vendor": vendor,
        "region": (asked.region or "")[:_SHOWN],
        "plan": (asked.plan or "")[:_SHOWN],
        "entry": str(facts["entry"]),
        "terms": {} if entry is None else _terms(entry),
        "conditions": conditions,
        "source": None if entry is None else _source(entry, age),
        "facts": facts,
        "matched_rule_id": outcome.matched_rule_id,
        "rulebook": question.rulebook.reference,
        "policy_table": {"service": table.service, "hash": table.hash},
        "attestation": _attestation(question, facts, outcome),
        "answered_at": timestamp(now),
    }


def find(question: Question, table: PolicyTable, asked: Asked) -> Entry | Unfound:
    """The entry that arguments name, or what the question or the table does not have of it."""
    if asked.unknown:
        return Unfound("argument", known=question.arguments, sent=asked.unknown)
    found = table.find(asked.vendor, asked.region, asked.plan)
    if asked.unusable is None or (asked.unusable != "vendor" and isinstance(found, Unfound) and found.what == "vendor"):
        return found
    return Unfound(asked.unusable, "no_text")


def _conditions(entry: Entry | None, confirmed: frozenset[str]) -> list[AskedCondition]:
    listed = [] if entry is None else entry.get("conditions", [])
    return [
        {"name": condition["name"], "text": condition["text"], "confirmed": condition["name"] in confirmed}
        for condition in listed
    ]


def _terms(entry: Entry) -> Terms:
    terms: Terms = {}
    if "windows" in entry:
        terms["windows"] = entry["windows"]
    if "penalties" in entry:
        terms["penalties"] = entry["penalties"]
    if "offers" in entry:
        terms["offers"] = entry["offers"]
    return terms


def _source(entry: Entry, age: int | None) -> AnswerSource:
    source: AnswerSource = {"url": entry["source"], "last_verified": entry["last_verified"], "age_days": age}
    if "notes" in entry:
        source["notes"] = entry["notes"]
    return source


def _attestation(question: Question, facts: Mapping[str, object], outcome: Outcome) -> RulebookAttestation:
    # The attested bundle has nothing but texts and nulls.
    return rulebook_attestation(
        question.rulebook.reference, content_hash(facts), outcome, runtime_binding_of(BINDING_DIRECT), None, plain=True
    )
