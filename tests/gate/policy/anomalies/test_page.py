"""The formulas of anomalies in docs/reference, and the kinds in their guide, state what the code does."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from gate.encoding import resources
from gate.policy.anomalies import scores, shifts, statistics
from gate.policy.anomalies.anomaly import KINDS
from gate.policy.anomalies.breaks import OUTCOME_DUE, RECEIPT_DUE, RULES
from gate.policy.anomalies.counted import MAX_REASONS, MAX_WEEKS
from gate.policy.anomalies.outliers import SEASONAL
from gate.policy.anomalies.scores import BELOW_HIGH, HIGH, MEDIUM, THRESHOLD
from gate.policy.anomalies.statistics import LEAST_P, NORMAL_MAD, required_z
from gate.policy.anomalies.telling.base import LASTING
from gate.policy.anomalies.volume import LIKE
from gate.policy.anomalies.weekly import windows
from gate.policy.questions import MAX_ITEMS
from gate.policy.reports import MAX_METRICS
from tests.end_to_end.support import ROOT
from tests.support.documentation import rows, section
from tests.support.reports import alerts_example, anomaly_example

DOCS: Final = ROOT / "docs"
GUIDE: Final = (DOCS / "guides" / "investigate-an-anomaly.md").read_text()
PAGE: Final = "".join(
    (DOCS / "reference" / "formulas" / f"{name}.md").read_text()
    for name in ("anomalies", "anomaly-shifts", "anomaly-metrics")
)
TOLD: Final = " ".join(PAGE.split())


def example(name: str) -> Any:
    return json.loads(resources.path("schemas", "examples", f"{name}.json").read_bytes())


def test_the_published_examples_are_what_their_counts_give() -> None:
    assert anomaly_example() == example("anomaly-report")
    assert alerts_example() == example("policy-alerts")


class TestWorkedExample:
    TEXT: Final = " ".join(section(PAGE, "## A worked example").split())
    OUTCOMES, VERDICTS = (
        next(of for of in anomaly_example()["anomalies"] if of["kind"] == kind)
        for kind in ("outcome_shift", "verdict_shift")
    )

    def test_it_states_the_counts(self) -> None:
        report, change = anomaly_example(), self.OUTCOMES["numbers"]["changes"][0]
        assert f"is of {report['coverage']['decisions']} decisions in {report['coverage']['weeks']} weeks" in self.TEXT
        assert f"version `{self.OUTCOMES['numbers']['new_versions'][0]}` decides the last two" in self.TEXT
        before, within = change["before"], change["within"]
        assert f"Of {before['of']} terminal outcomes in the 8 weeks before, {before['count']} succeeded" in self.TEXT
        assert f"of {within['of']} in the window {within['count']} did" in self.TEXT
        assert f"within {change['age_days']} days" in self.TEXT

    def test_it_states_what_follows_from_them(self) -> None:
        change = self.OUTCOMES["numbers"]["changes"][0]
        h = change["cohens_h"]
        assert f"= {h}`; Fisher's p is {change['p_value']}, " in self.TEXT
        assert f"certain: {change['required_p']} is enough." in self.TEXT
        assert (
            f"`1 - 0.2 * 0.5 / {change['least_h']} = {self.OUTCOMES['anomaly_score']}`, {self.OUTCOMES['severity']}"
            in self.TEXT
        )
        of = change["difference"]
        assert (
            f"The difference is {of['rate']}, between {of['low']} and {of['high']} by the Newcombe interval"
            in self.TEXT
        )

    def test_it_states_the_verdicts_and_the_break(self) -> None:
        change, score = self.VERDICTS["numbers"]["changes"][0], self.VERDICTS["anomaly_score"]
        rates = (f"{change[name]['rate'] * 100:.0f}" for name in ("before", "within"))
        h = change["cohens_h"]
        assert f"`{change['value']}` rose from {' to '.join(rates)} percent, h {h}" in self.TEXT
        assert f"h {h}, near end {change['least_h']}: " in self.TEXT
        assert f"`0.35 + 0.25 * ({change['least_h']} - 0.2) / 0.3 = {score}`" in self.TEXT
        assert f"the cap would be {BELOW_HIGH}" in self.TEXT
        (broken,) = (of for of in anomaly_example()["anomalies"] if of["kind"] == "lifecycle_break")
        assert f"One decision was executed twice: {broken['anomaly_score']}." in self.TEXT


class TestTables:
    def test_every_kind_is_listed(self) -> None:
        listed = [cells[0].strip("`") for cells in rows(section(GUIDE, "## Read one"))]
        assert sorted(listed) == sorted(KINDS)

    def test_the_marks_are_those_of_the_measures(self) -> None:
        table = [[float(cell) for cell in cells[1:4]] for cells in rows(section(PAGE, "## Scores and severities"))]
        measures = (
            scores.EFFECT,
            scores.HARM,
            scores.DELTA,
            scores.INDEX,
            scores.TIMES,
            scores.SURPLUS,
            scores.FAR,
            scores.SHARE,
        )
        assert table == [list(marks) for marks in measures]

    def test_every_break_is_listed_with_its_score(self) -> None:
        listed = {cells[0].strip("`"): cells[3] for cells in rows(section(PAGE, "## Breaks"))}
        assert listed == {
            kind: f"{rule.score:g}"
            if rule.score is not None
            else "by share" + ", below high" * (kind in ("approved_without_receipt", "outcome_overdue"))
            for kind, rule in RULES.items()
        }

    @pytest.mark.parametrize(
        "said",
        [
            f"From {HIGH} a score is `high`, from {MEDIUM} `medium`",
            f"The default `threshold` is {THRESHOLD}.",
            f"At most {BELOW_HIGH}: shifts, drift, and volume that are not certain",
            "At most 0.59: outcomes that improved",
            f"at most {MAX_WEEKS} weeks are looked at",
            f"(the {MAX_REASONS} most frequent)",
            f"two-sided, at least {LEAST_P:g}",
            f"a false discovery rate of {windows.FALSE_DISCOVERIES}",
            f"**reference**, the {windows.REFERENCE} weeks before it",
            f"of at least {shifts.LEAST_EFFECT} either way",
            f"median of up to {LIKE} cells before it",
            f"Mood's median test has p at most {SEASONAL}",
            f"The {MAX_METRICS} metrics with the most values",
            f"`max_items` ({MAX_ITEMS})",
            f"decided more than {RECEIPT_DUE.days * 24} hours before `as_of`",
            f"more than {OUTCOME_DUE.days} days before `as_of`",
        ],
    )
    def test_the_page_says_the_numbers_of_the_code(self, said: str) -> None:
        assert said in TOLD

    def test_the_formula_of_what_is_required_is_that_of_the_code(self) -> None:
        assert "`required_z(n) = max(3.5, sqrt(2 ln(n/0.01)))`" in TOLD
        assert round(required_z(1000), 9) == 4.798525912
        assert f"`c |distance| / M > required_z(cells)`, with `c` = {NORMAL_MAD}" in TOLD
        assert f"`{NORMAL_MAD} distance / MAD > required_z(values)`" in TOLD

    def test_the_near_ends_are_those_of_the_code(self) -> None:
        assert f"({statistics.Z}, divided counts)" in TOLD
        assert f"({statistics.ONE_SIDED})" in TOLD
        assert f"`|h|` at least {scores.HARM.considerable} and near end at least {scores.HARM.noticeable}" in TOLD

    def test_the_least_share_of_far_values_and_the_least_time_are_those_of_the_code(self) -> None:
        assert f"Wilson interval of their share is at least {scores.MANY_FAR}." in TOLD
        assert f"the window's start to `until` is {LASTING.days} days or more" in TOLD

    def test_what_a_shift_needs_to_be_certain_is_that_of_the_code(self) -> None:
        assert f"`{windows.ALARM_CHANCE * shifts.OUTCOMES_PART}/tests` of outcomes" in TOLD
        assert f"a false alarm of a rate with a chance of {windows.ALARM_CHANCE} at most" in TOLD
        assert f"`{windows.ALARM_CHANCE}/tests` of metrics, and of facts" in TOLD
        assert f"it is `{shifts.ROLLOUT_CHANCE}/rollout_tests`" in TOLD

    def test_the_lengths_of_windows_are_those_of_the_code(self) -> None:
        found = re.search(r"A \*\*window\*\* of (\d), (\d), (\d) or (\d) weeks", TOLD)
        assert found is not None
        assert tuple(map(int, found.groups())) == windows.LENGTHS
