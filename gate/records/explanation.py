"""Explains a decision from its record, in sentences and as data.

    explanation(record)["sentences"]
        # ["The verdict is yes: the rule small_discount matched.", "discount_percent lte 10 holds: the fact is 8.", ...]

It reads the evaluation that is stored with the decision, and evaluates nothing again. For an advisory decision, the
sentences contain the model's answer, but not its reasons, because these are the model's own text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, cast

from gate.encoding.canonical import canonical
from gate.records.advisory import is_advisory
from gate.records.documents import AdvisoryEvaluation, DecisionContract, Record
from gate.rulebooks.documents import InvalidField, RulebookReference, TriedRule
from gate.rulebooks.explanation import shown, tried_words

_MEANINGS: Final = {
    "yes": "After verifying the record, the caller may perform this action on the bound target, and no other action.",
    "no": "It blocks the action: do not perform it.",
    "review": "It holds the action for its owner: do not perform it.",
}
WAITS: Final = "The proposed action waits until somebody grants it."
"""The meaning of the verdict review for the owner of a held action."""

_ADVICE: Final = "Do not act on it: an action needs a decision in mode rulebook."
_MOST: Final = 20
"""How many tests of a rule the sentences contain at most. The data has all of them."""


class Reasons(NamedTuple):
    """The reasons for a decision, in sentences for its caller and its owner.

    Attributes:
        because: The verdict, the faults of the facts, and the tests of the rule that matched.
        unmatched: One sentence for each rule that did not match.
        action: The action and the reason code. For a held case, it says that the action is the outcome's.
    """

    because: list[str]
    unmatched: list[str]
    action: str


class ExplainedTest(TypedDict):
    """An evaluated test."""

    path: str
    test: str
    holds: bool
    reason: str


class TriedAndExplained(TypedDict):
    """An evaluated rule."""

    rule_id: str
    priority: int
    matched: bool
    tests: list[ExplainedTest]


class Explanation(TypedDict):
    """The explanation of a decision. That of an advisory decision has a `decision_contract` and no `rulebook`."""

    decision_id: str
    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    rulebook: NotRequired[RulebookReference]
    decision_contract: NotRequired[DecisionContract]
    record_hash: str
    sentences: list[str]
    missing_fields: list[str]
    invalid_fields: list[InvalidField]
    rules: list[TriedAndExplained]


def explanation(record: Record) -> Explanation:
    """Explains a decision.

    Args:
        record: Its full record.
    """
    evaluation = None if is_advisory(record) else record["evaluation"]
    why = reasons(record)
    meaning = _ADVICE if is_advisory(record) else _MEANINGS[record["verdict"]]
    found: Explanation = {
        "decision_id": record["decision_id"],
        "verdict": record["verdict"],
        "application_verdict": record["application_verdict"],
        "action": record["action"],
        "reason_code": record["reason_code"],
        "matched_rule_id": record["matched_rule_id"],
        "record_hash": record["record_hash"],
        "sentences": [*why.because, *why.unmatched, f"{why.action} {meaning}"],
        "missing_fields": [] if evaluation is None else evaluation["missing_fields"],
        "invalid_fields": [] if evaluation is None else evaluation["invalid_fields"],
        "rules": _rules(record),
    }
    if "rulebook" in record:
        found["rulebook"] = record["rulebook"]
    if "decision_contract" in record:
        found["decision_contract"] = record["decision_contract"]
    return found


def reasons(record: Record) -> Reasons:
    """The reasons for a decision, without their meaning for its caller.

    Args:
        record: Its full record.
    """
    rules = _rules(record)
    because = _advisory_sentences(record) if is_advisory(record) else _sentences(record, rules)
    return Reasons(
        list(because),
        [_unmatched(rule) for rule in rules if not rule["matched"]],
        _sent_to(record),
    )


def _sent_to(record: Record) -> str:
    action, code = record["action"], record["reason_code"]
    if record["verdict"] == "review" and not is_advisory(record):
        # A held case has two actions: the proposed one, and what the rulebook does with the case.
        return f"The rulebook sends the case to {action}, the action of its outcome; the reason code is {code}."
    return f"The action is {action}, and the reason code is {code}."


def _rules(record: Record) -> list[TriedAndExplained]:
    evaluation = None if is_advisory(record) else record["evaluation"]
    return [] if evaluation is None else [_explained(rule) for rule in evaluation["rules"]]


def _explained(rule: TriedRule) -> TriedAndExplained:
    tests: list[ExplainedTest] = []
    for test in rule["tests"]:
        words, reason = tried_words(test)
        tests.append({"path": test["path"], "test": words, "holds": test["passed"], "reason": reason})
    return {"rule_id": rule["rule_id"], "priority": int(rule["priority"]), "matched": rule["passed"], "tests": tests}


def _sentences(record: Record, rules: Sequence[TriedAndExplained]) -> Iterator[str]:
    evaluation: Any = record["evaluation"]
    rule_id = record["matched_rule_id"]
    if evaluation is None:
        because = (
            "the evaluation was erased" if rule_id is None else f"the rule {rule_id} matched; its tests were erased"
        )
    elif rule_id is not None:
        because = f"the rule {rule_id} matched"
    elif evaluation["missing_fields"] or evaluation["invalid_fields"]:
        because = "facts that the rulebook requires are missing or of the wrong type"
    else:
        because = "no rule matched, and the default outcome of the rulebook applies"
    yield f"The verdict is {record['verdict']}: {because}."
    if evaluation is not None:
        yield from (f"The fact {name} is missing." for name in evaluation["missing_fields"])
        yield from (f"The fact {fault['field']} is of the wrong type." for fault in evaluation["invalid_fields"])
    for rule in rules:
        if rule["matched"]:
            yield from _tests(rule)


def _unmatched(rule: TriedAndExplained) -> str:
    failed = [f"{test['test']} ({test['reason']})" for test in rule["tests"] if not test["holds"]]
    return f"The rule {rule['rule_id']} did not match{_among(failed)}."


def _advisory_sentences(record: Record) -> Iterator[str]:
    yield "The decision is advisory and authorizes nothing."
    evaluation = cast("AdvisoryEvaluation | None", record["evaluation"])
    if evaluation is None:
        yield f"The verdict is {record['verdict']}; the model's answer was erased."
    else:
        yield from _answered(evaluation, record["verdict"])
        yield "The upstream's reasons are in the record's evaluation."


def _answered(evaluation: AdvisoryEvaluation, verdict: str) -> Iterator[str]:
    model, answer = f"The model {evaluation['model']}", cast("Any", evaluation["answer"])
    scores = answer.get("scores", answer.get("scorecard"))
    if scores is None:
        yield f"{model} answered {answer['answer']}; the verdict is {verdict}."
        return
    # In quotes, because an option is free text, too, though the caller's own.
    scored = ", ".join(f"{shown(each['option'])} {canonical(each['score']).decode()}" for each in scores)
    if "recommended" in answer:
        yield f"{model} recommended {shown(answer['recommended'])}; the verdict is {verdict}."
        yield f"It scored {scored}."
    else:
        yield f"{model} scored {scored}; the verdict is {verdict}."


def _tests(rule: TriedAndExplained) -> Iterator[str]:
    for test in rule["tests"][:_MOST]:
        yield f"{test['test']} {'holds' if test['holds'] else 'does not hold'}: {test['reason']}."
    if (more := len(rule["tests"]) - _MOST) > 0:
        yield f"{more} more tests of the rule {rule['rule_id']} are in the data."


def _among(failed: Sequence[str]) -> str:
    if not failed:
        return ""
    more = len(failed) - _MOST
    return f"; these tests do not hold: {', '.join(failed[:_MOST])}{f', and {more} more' if more > 0 else ''}"
