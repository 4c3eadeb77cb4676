"""An advisory decision: the question, the answer of the model, and the notice that it authorizes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gate.verify.members import at
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.views.decided.checks import value
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, phrase

_CONTRACT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "authority": "Authority",
        "production_verdict": "May be acted on",
        "production_binding_required": "Needs a binding decision",
    }
)
_SCORES: Final[Mapping[object, str]] = MappingProxyType({"multi": "scores", "runtime": "scorecard"})


def advice(story: Story) -> dict[str, Any]:
    """What the page shows of an advisory decision in the place of facts and rules.

    Args:
        story: The decision.
    """
    record = story.record
    evaluation = record["evaluation"]
    mode, answer = at(evaluation, "mode"), at(evaluation, "answer")
    recommended = at(answer, "recommended")
    options = _options(at(answer, _SCORES.get(mode, "")))
    return {
        "mode": cut(str(record["policy_id"]).removeprefix("advisory.")),
        "model": at(evaluation, "model"),
        "answer": _answer(story),
        "reason": at(answer, "reason"),
        "options": [
            {"name": value(name), "score": score, "reason": value(reason), "recommended": name == recommended}
            for name, score, reason in sorted(options, key=lambda option: -option[1])
        ],
        "erased": evaluation is None,
        "contract": [
            (_CONTRACT.get(name, phrase(name)), value(told))
            for name, told in (record.get("decision_contract") or {}).items()
        ],
    }


def title(story: Story) -> str:
    """The heading of the page."""
    target = at(story.record, "action_binding", "resource")
    answer = _answer(story, cut(target) if isinstance(target, str) and target else None)
    return f"Advisory, authorizes nothing: {answer[0].lower()}{answer[1:]}"


def _answer(story: Story, target: str | None = None) -> str:
    """What the model answered, in a few words, and about what where that is given."""
    evaluation = story.record["evaluation"]
    answer = at(evaluation, "answer")
    about, for_ = ("", "") if target is None else (f" about {target}", f" for {target}")
    match at(evaluation, "mode"):
        case "single":
            return f"The model answered {cut(str(at(answer, 'answer')))}{about}"
        case "multi":
            return f"The model scored {counted(len(_options(at(answer, 'scores'))), 'option')}{for_}"
        case "runtime":
            return f"The model recommended {cut(str(at(answer, 'recommended')))}{for_}"
    return f"The model's answer{about} was erased"


def _options(scores: object) -> list[tuple[object, float, object]]:
    """The options with their scores and the model's reasons; none where what is stored is no list of them."""
    listed = scores if isinstance(scores, list) else []
    return [
        (at(each, "option"), float(score), at(each, "reason"))
        for each in listed
        if isinstance(score := at(each, "score"), int | float)
    ]
