"""Counts of decisions and outcomes, by chance."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st

from gate.policy.anomalies.counted import TERMINAL
from gate.policy.anomalies.statistics import Share
from gate.policy.confidence import Counts
from gate.policy.effectiveness import (
    Counted,
    Group,
    Metric,
    Standing,
)
from gate.policy.versions import Compared, compare_versions
from tests.support.tiers import examples
from tests.support.torture import size

tried = settings(max_examples=examples(size(50, 100)))
"""How often the properties of formulas are tried: half as often as usual, but in the long form."""

counts = st.builds(Counts, *[st.integers(0, 3000)] * 6)

verdicts = st.sampled_from(["yes", "no", "review", None])

MONDAY = "2026-06-08"

AT = "2026-06-08T00:00:00.000Z"

STATUSES = Standing._fields

standings = st.builds(Standing, *[st.integers(0, 400)] * 7)


@st.composite
def decisions(draw: st.DrawFn) -> list[tuple[str, str, str, str, bool]]:
    """Decisions: version, verdict, rule, status of the latest outcome, and whether the action was let through."""
    some = st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["yes", "no", "review"]),
        st.sampled_from(["rule:default", "rule:x", "schema:failed"]),
        st.sampled_from(STATUSES),
        st.booleans(),
    )
    return draw(st.lists(some, max_size=60))


def counted(made: list[tuple[str, str, str, str, bool]]) -> Counted:
    """What an engine would count of decisions."""

    def by(place: int) -> Mapping[str, Standing]:
        names = {decision[place] for decision in made}
        return {str(name): standing([each for each in made if each[place] == name]) for name in names}

    return Counted(
        by_version={version: Group(of, AT, AT) for version, of in by(0).items()},
        by_verdict=by(1),
        by_rule=by(2),
        by_week={MONDAY: standing(made)} if made else {},
        by_disposition={"let_through": standing([decision for decision in made if decision[4]])},
        compared=_compared(made),
        metrics=[Metric("m", 1, -1e308, 0.0, 1e308)],
        first=AT if made else None,
        last=AT if made else None,
        chain_position=len(made),
        merkle_root=None,
        truncated=False,
    )


def _compared(made: list[tuple[str, str, str, str, bool]]) -> Mapping[str, Compared]:
    """The versions beside each other, their rules being the facts that tell cases apart."""
    cells: dict[str, dict[str, Share]] = {}
    for version, _, rule, status, acted in made:
        if acted and status in TERMINAL:
            part, whole = cells.setdefault(version, {}).get(rule, Share(0, 0))
            cells[version][rule] = Share(part + (status == "succeeded"), whole + 1)
    return compare_versions(cells, 1.0, min_sample=20)


def standing(made: list[tuple[str, str, str, str, bool]]) -> Standing:
    return Standing(**{status: sum(decision[3] == status for decision in made) for status in STATUSES})
