"""Versions of an imported history among like cases: which facts are taken, which not, and that a report says so."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.independent.comparing import Case, compared_of
from tests.workbench.history.importing import imported, plan_of, small_map
from workbench import effectiveness

POLICY: Final = "refund_policy"
# A version, how long before arrival, how many bookings, and how many of them succeeded: B is better in either kind.
BOOKINGS: Final = (("A", 3, 420, 378), ("A", 200, 80, 46), ("B", 3, 200, 188), ("B", 200, 300, 213))

Row = Mapping[str, Any]


def bookings() -> list[dict[str, Any]]:
    """The bookings of a hotel, one a minute."""
    return [
        {"version": version, "lead": lead, "result": "kept" if at < kept else "lost"}
        for version, lead, number, kept in BOOKINGS
        for at in range(number)
    ]


def compared(tmp_path: Path, rows: Sequence[Row], **facts: str) -> dict[str, Any]:
    """The report over a history of these rows and facts, whose comparison is the recount."""
    names = ["id", "when", "version", "result", *facts]
    file = tmp_path / "cases.csv"
    made = [
        {"id": f"r{at}", "when": f"2024-01-{1 + at // 1440:02}T{at // 60 % 24:02}:{at % 60:02}:00Z", **row}
        for at, row in enumerate(rows)
    ]
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(made)
    map_ = small_map(
        occurred_at={"column": "when"},
        policy_version={"column": "version"},
        outcome={"column": "result", "values": {"kept": "succeeded", "lost": "failed"}},
        facts={name: {"column": name, "type": kind} for name, kind in facts.items()},
    )
    body = effectiveness(imported(plan_of(tmp_path / "lake", [file], map_)), POLICY).to_dict()
    cases = [
        Case(
            row["version"],
            {name: row[name] for name in facts if row[name] is not None},
            row["result"] == "kept",
            row["when"][:16],
        )
        for row in made
        # Without a verdict or an outcome, nobody knows what became of it.
        if row["result"]
    ]
    recount = compared_of(cases, None, 20, 1, is_judged=True)
    assert body["comparison"] == recount.comparison
    assert {of["policy_version"]: of["compared"] for of in body["versions"]} == recount.compared
    of_facts = (
        " with more facts, ",
        " without adjustment: ",
        " are not compared by ",
        " alone, fewer than ",
        " rarer texts of ",
    )
    assert [note for note in body["notes"] if any(of in note for of in of_facts)] == recount.notes
    return body


def worse(body: Mapping[str, Any]) -> list[str]:
    return [of["policy_version"] for of in body["versions"] if of["below_others"]]


def test_cases_of_which_nothing_is_known_are_not_taken_for_stopped_ones(tmp_path: Path) -> None:
    rows: list[Row] = [
        *({"version": "A", "lead": 3, "result": "kept" if at % 10 else "lost"} for at in range(60)),
        *({"version": "A", "lead": 200, "result": ""} for _ in range(60)),
        *({"version": "B", "lead": 3, "result": "kept" if at % 10 else "lost"} for at in range(60)),
        *({"version": "B", "lead": 200, "result": "lost"} for _ in range(8)),
    ]
    body = compared(tmp_path, rows, lead="number")
    assert [of["compared"]["admitted"] for of in body["versions"]] == [None, None]


@pytest.mark.parametrize("kind", ["number", "string"])
def test_a_fact_that_differs_in_every_case_does_not_take_the_others_with_it(kind: str, tmp_path: Path) -> None:
    rows = [{**row, "booking": at if kind == "number" else f"B-{at}"} for at, row in enumerate(bookings())]
    alone = compared(tmp_path, rows, lead="number")
    (tmp_path / "with").mkdir()
    body = compared(tmp_path / "with", rows, booking=kind, lead="number")
    assert worse(alone) == worse(body) == ["A"]
    if kind == "number":
        assert body["comparison"]["facts"] == ["lead"]
        assert any(
            "not compared by booking: cases of different versions hardly ever share an id or a date" in note
            for note in body["notes"]
        )


def test_facts_that_have_nothing_to_do_with_the_outcome_do_not_crowd_out_one_that_has(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - for tests to be the same each time
    flags = [f"a{at}" for at in range(6)]
    rows = [{**row, **{name: chance.choice("yn") for name in flags}} for row in bookings()]
    body = compared(tmp_path, rows, lead="number", **dict.fromkeys(flags, "string"))
    assert "lead" in body["comparison"]["facts"]
    assert worse(body) == ["A"]
    assert any(": the chosen facts have more to do with the outcome" in note for note in body["notes"])


def test_the_facts_that_tell_least_are_left_out_first(tmp_path: Path) -> None:
    chance = random.Random(4)  # noqa: S311 - for tests to be the same each time
    rows = [
        {**row, **{f"n{at}": chance.randrange(10**at) for at in range(1, 7)}, "paid": chance.choice("yn")}
        for row in bookings()
    ]
    facts = {**{f"n{at}": "number" for at in range(1, 7)}, "paid": "string", "lead": "number"}
    body = compared(tmp_path, rows, **facts)
    assert "lead" in body["comparison"]["facts"]
    like = {of["policy_version"]: of["compared"]["standardized"]["difference"]["value"] for of in body["versions"]}
    assert like["A"] < 0 < like["B"]
    assert any(" with more facts, too few let-through cases " in note for note in body["notes"])


def test_versions_that_share_no_case_are_not_judged_and_the_fact_that_parts_them_is_named(tmp_path: Path) -> None:
    rows = [{**row, "year": 2022 + (row["version"] == "B")} for row in bookings()]
    body = compared(tmp_path, rows, year="number")
    assert body["comparison"]["facts"] == ["year"]
    assert any(
        "By year alone, fewer than half of the let-through cases have a like one" in note for note in body["notes"]
    )
    assert worse(body) == []
    assert body["comparison"]["sentences"] == [
        f"Version {version} is not judged: 0% of its let-through cases have a like one among those of the other "
        "versions."
        for version in "AB"
    ]


def test_a_kind_of_cases_that_one_version_met_more_often_is_not_pooled_with_the_others(tmp_path: Path) -> None:
    # Of channel x, which both had, B keeps 60 of 100 and A 90; A alone had y, B alone z.
    met = (("A", "x", 100, 90), ("A", "y", 60, 30), ("B", "x", 100, 60), ("B", "z", 60, 57))
    rows = [
        {"version": version, "channel": channel, "result": "kept" if at < kept else "lost"}
        for version, channel, number, kept in met
        for at in range(number)
    ]
    body = compared(tmp_path, rows, channel="string")
    like = {of["policy_version"]: of["compared"]["standardized"] for of in body["versions"]}
    assert (like["B"]["success_rate"], like["B"]["others"]) == (0.6, 0.9)
    assert worse(body) == ["B"]


def test_a_version_that_is_bad_in_one_kind_of_cases_and_good_in_another_is_named_with_it(tmp_path: Path) -> None:
    met = (("A", "web", 100, 95), ("A", "phone", 100, 60), ("B", "web", 100, 20), ("B", "phone", 100, 99))
    rows = [
        {"version": version, "channel": channel, "amount": 5, "result": "kept" if at < kept else "lost"}
        for version, channel, number, kept in (*met, ("A", "mail", 300, 150), ("B", "mail", 300, 190))
        for at in range(number)
    ]
    body = compared(tmp_path, rows, channel="string", amount="number")
    assert body["versions_below_others"] == 0
    assert body["comparison"]["sentences"] == [
        'Version A does worse in one kind of case: with channel "phone", it succeeded in 60.0% of 100 cases and '
        "the others in 99.0% of 100.",
        'Version B does worse in one kind of case: with channel "web", it succeeded in 20.0% of 100 cases and the '
        "others in 95.0% of 100.",
    ]


def test_forty_texts_are_told_apart_and_of_more_it_is_said_which_are_not(tmp_path: Path) -> None:
    # In odd countries half as many come, and B gets most of these; it is better in each country.
    def of(countries: int) -> list[Row]:
        return [
            {"version": version, "country": f"c{at:02}", "result": "kept" if number % 20 < kept else "lost"}
            for at in range(countries)
            for version, cases, kept in ((("A", 10, 8), ("B", 30, 10)) if at % 2 else (("A", 30, 16), ("B", 10, 18)))
            for number in range(cases)
        ]

    body = compared(tmp_path, of(40), country="string")
    assert not any("rarer texts" in note for note in body["notes"])
    assert body["comparison"]["strata"] == 40
    (tmp_path / "more").mkdir()
    more = compared(tmp_path / "more", of(60), country="string")
    assert "The rarer texts of country count as alike." in more["notes"]


def test_a_fact_that_is_alike_in_all_cases_is_not_named_as_left_out(tmp_path: Path) -> None:
    body = compared(tmp_path, [{**row, "country": "pt"} for row in bookings()], country="string")
    assert any("without adjustment: no examined fact" in note for note in body["notes"])


@pytest.mark.parametrize("seed", range(6))
def test_odd_histories_are_the_recount(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    facts = {f"f{at}": chance.choice(["number", "string"]) for at in range(chance.choice([1, 4, 9, 45]))}
    most = {name: chance.choice([1, 2, 30, 1000]) for name in facts}

    def value(name: str) -> Any:
        drawn = chance.randrange(most[name])
        return None if chance.random() < 0.1 else drawn / 4 if facts[name] == "number" else f"t{drawn}"

    rows = [
        {
            "version": chance.choice("AAB" if at < 150 else "BBC"),
            "result": chance.choice(["kept", "kept", "lost"]),
            **{name: value(name) for name in facts},
        }
        for at in range(chance.choice([30, 300]))
    ]
    compared(tmp_path, rows, **facts)
