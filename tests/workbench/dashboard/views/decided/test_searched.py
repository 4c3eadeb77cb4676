"""A search of decisions as a sentence: every criterion shows in it, and it stays English for none, one and many."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any

import pytest

from gate.policy.confidence import Counts
from workbench.dashboard.views.decided.searched import found, waiting
from workbench.engines.listing import STATES, Criteria


@pytest.mark.parametrize(
    ("total", "asked", "sentence"),
    [
        (20_000, {}, "20,000 decisions"),
        (0, {}, "No decision"),
        (
            1204,
            {"policy_id": "p", "state": "held", "since": date(2026, 7, 13), "until": date(2026, 7, 19)},
            "1,204 decisions of p in the week of 13 July 2026 are held",
        ),
        (1, {"verdict": "review", "target": "order-1"}, "1 decision about order-1 was sent to review"),
        (0, {"verdict": "yes", "outcome_status": "unreported"}, "No decision was answered yes and has no outcome"),
        (
            2,
            {"policy_id": "p", "policy_version": "2", "rule": "rule:default", "reason_code": "R"},
            "2 decisions of p version 2 were decided by the default outcome and have the reason R",
        ),
        (3, {"since": date(2026, 7, 13)}, "3 decisions since 13 July 2026"),
        (3, {"until": date(2026, 7, 19)}, "3 decisions until 19 July 2026"),
        (3, {"since": date(2026, 7, 14), "until": date(2026, 7, 14)}, "3 decisions on 14 July 2026"),
        (3, {"since": date(2026, 7, 14), "until": date(2026, 7, 20)}, "3 decisions from 14 July 2026 to 20 July 2026"),
        (
            3,
            {"since": datetime(2026, 7, 14, 5, 20, tzinfo=UTC), "until": date(2026, 7, 15)},
            "3 decisions from 14 July 2026, 05:20 UTC to 15 July 2026",
        ),
        (1, {"ref": "dec_1"}, "1 decision with the ID dec_1"),
        (1, {"policy_id": "a\nb\u202e"}, "1 decision of a\ufffdb\ufffd"),
    ],
)
def test_a_search_is_said_in_a_sentence(total: int, asked: dict[str, Any], sentence: str) -> None:
    assert found(total, Criteria(**asked)) == sentence


def test_every_criterion_shows_in_the_sentence() -> None:
    values: dict[str, list[Any]] = {
        "verdict": ["yes", "no", "review"],
        "state": list(STATES),
        "outcome_status": [*Counts._fields, "unreported"],
        "since": [date(2026, 7, 13)],
        "until": [date(2026, 7, 13)],
        "erased": [True, False],
    }
    said = [
        found(number, Criteria(**{field.name: value}))
        for number in (1, 2)
        for field in fields(Criteria)
        for value in values.get(field.name, ["a name"])
    ]
    assert len({*said, "1 decision", "2 decisions"}) == len(said) + 2


def test_what_waits_is_said_with_the_oldest() -> None:
    asked = Criteria(state="held")
    assert waiting(2787, asked, "364 days") == "2,787 decisions are held, the oldest for 364 days"
    assert waiting(1, asked, "3 hours") == "1 decision is held, for 3 hours"
    assert waiting(0, asked, None) == "No decision is held"
