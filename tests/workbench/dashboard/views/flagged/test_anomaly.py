"""Addresses and names of an anomaly's page as values: what leads where, and names of any length are text."""

from __future__ import annotations

import json
from typing import Any, Final

import polars as pl
import pytest
from markupsafe import Markup

from tests.workbench.dashboard.showing import NOW, require_harmless
from tests.workbench.hostile import NAMES
from workbench.dashboard.views.figure import Figure
from workbench.dashboard.views.flagged import anomalies, anomaly
from workbench.dashboard.views.flagged.anomalies import Flagged, Looked
from workbench.dashboard.views.flagged.anomaly import Found, page_of
from workbench.dashboard.views.location import Location
from workbench.engines.anomalies.going_back import GoingBack
from workbench.engines.counterfactuals import CounterfactualReport
from workbench.engines.listing import Names

HERE: Final = Location("anomaly", scope="acme", policy="refunds", id="ano_1")
LONG: Final = "x" * 10_000
CHART: Final = Figure(Markup("<svg></svg>"), ())


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/api/decision/dec_1/packet", "/decision?scope=acme&id=dec_1"),
        ("/api/decision/policies/a%2Fb/effectiveness", "/policy?scope=acme&policy=a%2Fb"),
        ("/api/decision/policies/refunds/anomalies?threshold=0.8", "/anomalies?scope=acme&policy=refunds"),
        ("/api/decision/policies/refunds/benchmarks", "/benchmarks?scope=acme&policy=refunds"),
        (
            "/api/decisions?policy_id=refunds&from=2026-10-12T00%3A00%3A00.000Z&to=2026-10-19T00%3A00%3A00.000Z&verdict=yes",
            "/decisions?scope=acme&policy=refunds&verdict=yes&since=2026-10-12T00%3A00%3A00.000Z"
            "&until=2026-10-19T00%3A00%3A00.000Z",
        ),
        ("/api/decisions?policy_id=refunds&reason_code=A%26B", "/decisions?scope=acme&policy=refunds&reason=A%26B"),
        # What no page can show leads nowhere, rather than to a page that shows something else.
        ("/api/decisions?policy_id=refunds&page=2", None),
        (f"/api/decisions?policy_id=refunds&reason_code={LONG}", None),
        ("/api/decision/policies/refunds/moon", None),
        ("/api/decision/dec_1", None),
        ("https://elsewhere.example/api/decision/dec_1/packet?", "/decision?scope=acme&id=dec_1"),
        (None, None),
    ],
)
def test_a_path_of_the_api_becomes_a_page(href: str | None, url: str | None) -> None:
    assert page_of(HERE, href) == url


def flagged(name: str) -> Flagged:
    """An anomaly in which callers named whatever they can."""
    change: dict[str, Any] = {
        "of": "reason",
        "value": name,
        "before": {"count": 1, "of": 2, "rate": 0.5},
        "within": {"count": 2, "of": 2, "rate": 1.0},
        "difference": {"rate": 0.5, "low": 0.1, "high": 0.6},
        "cohens_h": 1.2,
        "p_value": 1e-9,
        "required_p": 1e-6,
    }
    document: Any = {
        "anomaly_id": "ano_1",
        "kind": "verdict_shift",
        "subject": None,
        "severity": "high",
        "anomaly_score": 0.9,
        "reasons": [f"reason_rose:{name}"],
        "summary": f"The share of reason {name} rose from 50.0% to 100.0% with version {name}.",
        "window": {"from": "2026-10-12T00:00:00.000Z", "to": "2026-10-19T00:00:00.000Z"},
        "decisions": 2,
        "decision_ids": ["dec_1"],
        "effect": {"cases": 1, "value": None, "lasting": True, "harm": None},
        "numbers": {"changes": [change], "new_versions": [name]},
        "look_at_next": [
            {"what": f"Read what version {name} changed.", "href": None},
            {"what": "Read the decisions of that time.", "href": f"/api/decisions?{json.dumps(name)}"},
        ],
    }
    return Flagged(name, 0, document, open=True, dismissal=None)


def going_back(name: str) -> GoingBack:
    """What the version before would have decided, where both versions are named so."""
    body = {"redecided": 2, "verdict_changed": 1, "unknown": 0, "policy_id": name}
    rows = pl.DataFrame([{"verdict": "yes", "then_verdict": "no", "failed": 1, "reverted": 0}])
    return GoingBack((name, name), name, CounterfactualReport(body, rows, pl.LazyFrame(), name))


@pytest.mark.parametrize("name", [*NAMES, LONG, "\u202ea\nb\r\n\x00c", "javascript:alert(1)", "//evil.example"])
def test_names_are_text_whatever_they_are(name: str) -> None:
    columns = ("decision_id", "policy_version", "verdict", "reason_code", "execution_status", "outcome_status")
    decisions = pl.DataFrame([{**dict.fromkeys(columns, name), "created_at": NOW}])
    found = Found(flagged(name), decisions, 1, pl.DataFrame(), CHART, going_back(name))
    page = anomaly.view(
        Location("anomaly", scope=name, policy=name, id="ano_1"),
        found,
        [],
        [flagged(name)],
        may_dismiss=True,
        as_of=NOW,
    )
    told = require_harmless(page)
    assert "would have changed the verdict of 1 of 2 decisions (50%)." in told.text
    assert "\n" not in page.title
    assert not any(character in told.text for character in "\u202e\x00\u2028")
    listed = anomalies.view(
        Location("anomalies", scope=name, policy=name, value=name),
        [flagged(name)],
        Looked([name], 2, 0, {"policy_id": name, "notes": []}),
        Names([name], {name: [name]}, [name], [name], [name]),
        [name],
        CHART,
        as_of=NOW,
        now=NOW,
    )
    assert not any(character in require_harmless(listed).text for character in "\u202e\x00\u2028")
    assert "\n" not in listed.title
