"""The counts of the documentation's worked examples, and reports about fixed counts for applications under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gate.errors import ServiceUnavailable
from gate.policy.anomalies.alerts import alerts_report, open_alerts
from gate.policy.anomalies.breaks import Broken
from gate.policy.anomalies.counted import MAX_AGE, Weeks
from gate.policy.anomalies.counted import Counted as CountedAnomalies
from gate.policy.anomalies.report import anomaly_report, find, strongest
from gate.policy.anomalies.statistics import Share
from gate.policy.confidence import Counts, Coverage, add
from gate.policy.effectiveness import Counted, Footing, Group, Metric, Middle, Standing, together
from gate.policy.effectiveness_report import effectiveness_report
from gate.policy.peers import Coded, Cohort, MonthCounts, Own, benchmark_report
from gate.policy.questions import (
    AlertsQuestion,
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    EffectivenessQuestion,
    LakeQuestion,
    MigrationReportQuestion,
    Reports,
)
from gate.policy.reports import confidence_report
from gate.policy.versions import compare_versions

if TYPE_CHECKING:
    from flask import Flask

    from api.http.state import State

VERSIONS: Final = {
    "2026-06-11": Counts(succeeded=392, partial=3, failed=4, reverted=1, pending=6),
    "2026-09-01": Counts(succeeded=54, failed=24, reverted=2, pending=15, review=5),
}
FIRST, LAST = "2026-06-12T08:04:11.120Z", "2026-11-02T16:31:09.004Z"

OLD: Final = Standing(succeeded=404, partial=3, failed=6, reverted=1, pending=6, unreported=160)
NEW: Final = Standing(succeeded=54, failed=24, reverted=2, pending=15, review=5, unreported=50)
APPROVED: Final = Standing(succeeded=446, partial=3, failed=28, reverted=3, pending=21, review=5, unreported=24)
BLOCKED: Final = Standing(unreported=150)
HELD: Final = Standing(succeeded=12, failed=2, unreported=36)

# The let-through actions with a terminal outcome, by how high the discount is.
LIKE: Final = {
    "2026-06-11": {"low": Share(300, 304), "middle": Share(84, 88), "high": Share(20, 22)},
    "2026-09-01": {"low": Share(20, 22), "middle": Share(22, 34), "high": Share(12, 24)},
}

COUNTED: Final = Counted(
    by_version={
        "2026-06-11": Group(OLD, "2026-06-12T08:04:11.120Z", "2026-09-03T15:20:08.411Z"),
        "2026-09-01": Group(NEW, "2026-09-02T09:11:40.007Z", "2026-11-01T16:31:09.004Z"),
    },
    by_verdict={"yes": APPROVED, "no": BLOCKED, "review": HELD},
    by_rule={
        "rule:approve_standard_exception": APPROVED,
        "rule:block_below_margin_floor": BLOCKED,
        "rule:default": HELD._replace(unreported=33),
        "schema:failed": Standing(unreported=3),
    },
    by_week={
        "2026-06-08": Standing(succeeded=204, partial=3, failed=3, unreported=70),
        "2026-07-06": Standing(succeeded=190, failed=3, reverted=1, pending=2, unreported=84),
        "2026-08-31": Standing(succeeded=34, failed=8, reverted=1, pending=4, unreported=16),
        "2026-10-26": Standing(succeeded=30, failed=16, reverted=1, pending=15, review=5, unreported=40),
    },
    by_disposition={
        "let_through": together([APPROVED, HELD._replace(unreported=0)]),
        "blocked": BLOCKED,
        "held": Standing(unreported=36),
    },
    by_version_and_verdict={
        ("2026-06-11", "yes"): Standing(succeeded=392, partial=3, failed=4, reverted=1, pending=6, unreported=14),
        ("2026-06-11", "no"): Standing(unreported=118),
        ("2026-06-11", "review"): HELD._replace(unreported=28),
        ("2026-09-01", "yes"): NEW._replace(unreported=10),
        ("2026-09-01", "no"): Standing(unreported=32),
        ("2026-09-01", "review"): Standing(unreported=8),
    },
    let_through={"2026-06-11": OLD._replace(unreported=14), "2026-09-01": NEW._replace(unreported=10)},
    compared=compare_versions(LIKE, 1.0, min_sample=20),
    footing=Footing(("discount_percent",), decisions=494, strata=3),
    metrics_by_version=[
        Middle("margin_percent", "2026-06-11", 392, 22.0, 21.5, 22.5),
        Middle("margin_percent", "2026-09-01", 66, 18.25, 17.0, 19.5),
        Middle("days_to_close", "2026-06-11", 57, 12.0, 10.0, 15.5),
        Middle("days_to_close", "2026-09-01", 4, 11.0, None, None),
    ],
    metrics_by_week=[
        Middle("margin_percent", "2026-08-31", 52, 20.0, 18.5, 21.0),
        Middle("margin_percent", "2026-10-26", 50, 18.0, 16.5, 19.5),
    ],
    metrics=[Metric("days_to_close", 61, 0.5, 12.0, 91.0), Metric("margin_percent", 458, 15.0, 21.5, 48.25)],
    first="2026-06-12T08:04:11.120Z",
    last="2026-11-01T16:31:09.004Z",
    chain_position=1933,
    merkle_root="5f2c1a7d90be43c8a1f06d5b7e2938ac41d7f60b9c835e1224ba7f90d3c6e815",
    truncated=False,
)
"""A policy whose second version fell behind: of its decisions, those of the documentation's worked example."""

EMPTY: Final = Counted({}, {}, {}, {}, {}, (), None, None, 0, None, truncated=False)
"""A policy that nobody has decided by."""


OWN: Final = Own(
    MonthCounts(decisions=148, approved=97, terminal=90, succeeded=66),
    MonthCounts(decisions=402, approved=261, terminal=214, succeeded=171),
    "2026-09-01T06:12:44.310Z",
    "2026-09-30T19:02:51.874Z",
    chain_position=1933,
    merkle_root=COUNTED.merkle_root,
    truncated=False,
)
"""What came of a scope's decisions of September 2026 until November began."""

OTHERS: Final = (
    Coded(50, 0.6, 0.75, 0.9),
    Coded(50, 0.95, 0.5, 0.7),
    Coded(100, 0.8, 0.7, 0.6),
    Coded(100, 0.85, 0.65, 0.65),
    Coded(200, 0.9, 0.6, 0.5),
    Coded(500, 0.85, 0.8, 0.8),
    Coded(1000, 0.95, 0.7, 0.55),
)
"""What is frozen of seven others."""


_COVERAGE: Final = Coverage(VERSIONS, add(VERSIONS.values()), FIRST, LAST, truncated=False)


def benchmark_example(*, member: bool = True) -> dict[str, Any]:
    """The benchmark report of the documentation's worked example, of a scope that took part, or of one that did not."""
    cohort = Cohort("2026-11", member, OTHERS if member else ())
    return benchmark_report(OWN, cohort, BenchmarksQuestion("pricing_exception"), month="2026-11")


def confidence_example() -> dict[str, Any]:
    """The confidence report of the documentation's worked example."""
    question = ConfidenceQuestion("pricing_exception", verdict="yes", action="approve_discount")
    return confidence_report(_COVERAGE, question)


def effectiveness_example() -> dict[str, Any]:
    """The effectiveness report of the documentation's worked example."""
    return effectiveness_report(COUNTED, EffectivenessQuestion("pricing_exception"))


def report_of_versions(parts: Mapping[str, Standing]) -> dict[str, Any]:
    """The effectiveness report of let-through decisions of some versions of policy p, all of which met like cases."""
    shares = {name: {"": Share(of.succeeded, of.terminal)} for name, of in parts.items()}
    whole = together([Standing(), *parts.values()])
    counted = replace(
        EMPTY,
        by_version={name: Group(of, FIRST, LAST) for name, of in parts.items()},
        by_verdict={"yes": whole},
        by_disposition={"let_through": whole} if parts else {},
        let_through=parts,
        compared=compare_versions(shares, 1.0, min_sample=20),
    )
    return effectiveness_report(counted, EffectivenessQuestion("p"))


MONDAY: Final = date(2026, 6, 15)


def _two_versions(old: int, new: int) -> list[int]:
    """A number a week: 12 weeks under one version, 2 under the next, and 2 without decisions."""
    return [old] * 12 + [new] * 2 + [0] * 2


def _known(first: int, last: int) -> list[list[int]]:
    """Outcomes that were all reported within a day, by horizon and week."""
    return [_two_versions(first, last)] * (MAX_AGE + 1)


ANOMALOUS: Final = CountedAnomalies(
    decisions=14 * 40,
    first="2026-06-15T08:04:11.120Z",
    last="2026-09-20T16:31:09.004Z",
    as_of="2026-09-30T09:00:00.000Z",
    weeks=Weeks(
        first=MONDAY,
        decisions=_two_versions(40, 40),
        versions={"2026-06-11": _two_versions(40, 0), "2026-09-07": _two_versions(0, 40)},
        verdicts={"yes": _two_versions(24, 36), "no": _two_versions(12, 4), "review": _two_versions(4, 0)},
        reasons={
            "STANDARD_EXCEPTION_ALLOWED": _two_versions(24, 36),
            "MARGIN_FLOOR_BREACH": _two_versions(12, 4),
            "NO_RULE_MATCHED": _two_versions(4, 0),
        },
        outcomes={
            "succeeded": _known(22, 20),
            "partial": _known(0, 0),
            "failed": _known(1, 12),
            "reverted": _known(0, 2),
        },
        horizons=[MAX_AGE] * 7 + [50, 43, 36, 29, 22, 15, 8, 1, -1],
    ),
    cells=(),
    histograms=(),
    outliers=(),
    broken=[
        Broken("duplicate_execution", 1, 398, "2026-09-15T10:00:00.000Z", "2026-09-15T10:00:00.000Z", positions=(1711,))
    ],
    sampled_one_of=1,
    metrics=2,
    chain_position=1933,
    merkle_root=COUNTED.merkle_root,
    truncated=False,
)
"""A policy whose second version let pass what then failed, and of which one decision was executed twice."""

_NO_ANOMALIES: Final = CountedAnomalies(0, None, None, None, None, (), (), (), (), 1, 0, 0, None)


def anomaly_example() -> dict[str, Any]:
    """The anomaly report of the documentation's worked example."""
    return _anomalies(ANOMALOUS, AnomaliesQuestion("pricing_exception"))


def alerts_example() -> dict[str, Any]:
    """The alerts of the same example."""
    return alerts_report(
        open_alerts(anomaly_example(), AlertsQuestion()),
        AlertsQuestion(),
        policies=1,
        more_policies=0,
        as_of=ANOMALOUS.as_of,
        chain_position=ANOMALOUS.chain_position,
        merkle_root=ANOMALOUS.merkle_root,
    )


def _anomalies(counted: CountedAnomalies, question: AnomaliesQuestion) -> dict[str, Any]:
    found = find(counted, question)
    ids = [[f"dec_019a0a4c7e{number:022x}"] for number, _ in enumerate(strongest(found, question), 1)]
    return anomaly_report(counted, found, ids, question)


@dataclass(frozen=True, slots=True)
class FixedReports:
    """Reports about the same counts, whatever they are asked for.

    Attributes:
        counted: The counts of effectiveness.
        anomalous: Those of the anomaly report.
        own: The caller's counts of benchmarks.
        cohort: What is frozen of others.
    """

    counted: Counted = EMPTY
    anomalous: CountedAnomalies = _NO_ANOMALIES
    own: Own = OWN
    cohort: Cohort | None = None

    def answer(self, scope_id: str, question: LakeQuestion) -> dict[str, Any]:
        """The report."""
        match question:
            case EffectivenessQuestion():
                return effectiveness_report(self.counted, question)
            case ConfidenceQuestion():
                return confidence_report(_COVERAGE, question)
            case AnomaliesQuestion():
                return _anomalies(self.anomalous, question)
            case BenchmarksQuestion():
                return benchmark_report(self.own, self.cohort, question, month="2026-11")
            case AlertsQuestion():
                return alerts_report(
                    (), question, policies=0, more_policies=0, as_of=None, chain_position=0, merkle_root=None
                )
            case MigrationReportQuestion():
                return {"text": f"The report of {question.migration_id} as {question.format}."}


@dataclass(frozen=True, slots=True)
class AskedReports(FixedReports):
    """Keeps what it was asked: the scope, and the question.

    Attributes:
        questions: All of it.
    """

    questions: list[tuple[str, LakeQuestion]] = field(default_factory=list)

    def answer(self, scope_id: str, question: LakeQuestion) -> dict[str, Any]:
        """The report."""
        self.questions.append((scope_id, question))
        return FixedReports.answer(self, scope_id, question)


@dataclass(frozen=True, slots=True)
class LateReports:
    """Has no report ready.

    Attributes:
        message: That of its refusal.
        details: Likewise.
    """

    message: str = "It is catching up; ask again."
    details: dict[str, Any] = field(default_factory=lambda: {"retry_after": 5})

    def answer(self, scope_id: str, question: LakeQuestion) -> NoReturn:
        """Refuses."""
        raise ServiceUnavailable("SVC_REPORT_UNAVAILABLE", self.message, details=self.details)


def give_reports(app: Flask, reports: Reports) -> None:
    """Lets an application ask others for its reports than those it was composed with."""
    state: State = app.extensions["gate"]
    app.extensions["gate"] = replace(state, reports=reports)
