"""docs/reference/metrics.md, from the definitions of what is counted and measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.http.figures import FAMILIES, GAUGES, INFO, Family
from docs.tools.markdown import table

SOURCE: Final = "api/http/figures.py"

_INTRO: Final = """\
# Metrics

This page lists the metrics that a service reports for Prometheus at `GET /metrics`.

The endpoint needs the metrics token of the instance in the header `x-metrics-token`. `gate serve` creates the token in
`metrics.token` in the home directory, unless the setting [`metrics_token_file`](settings.md#metrics_token_file) states
another file. Without the right token, the answer is 401.

"""
_NOTES: Final = """
- A histogram has the series `_bucket` (label `le`), `_sum` and `_count`.
- Counters and histograms cover all workers of one `gate serve`, including workers that were replaced. They start at 0
  when the server starts. Scrape each server as its own target.
- The workers share their figures once a second. A worker that is killed with SIGKILL loses its last second of counts.
- The gauges of the ledger are absent while the ledger cannot be read. `gate_trusted_adapters_ready` is absent in a
  worker that could not open the instance yet.
- Callers cannot create new series: unknown paths have the route `unmatched`.

`deploy/prometheus/scrape.yaml` is a scrape configuration that sends the token from a file. It needs Prometheus 2.55 or
newer.

## Queries

"""
_QUERIES: Final = (
    ("Decisions per second, by verdict", "sum by (verdict) (rate(gate_decisions_total[5m]))"),
    (
        "Failed executions per second",
        'sum(rate(gate_reports_total{kind="execution",reported="failed"}[5m]))',
    ),
    (
        "The 99th percentile of a decision's latency",
        "histogram_quantile(0.99, sum by (le) (rate("
        'gate_http_request_seconds_bucket{route="/api/decide",code="200"}[5m])))',
    ),
    (
        "Entries per commit, on average",
        "rate(gate_commit_batch_entries_sum[5m]) / rate(gate_commit_batch_entries_count[5m])",
    ),
    ("Errors per second, by code", "sum by (error) (rate(gate_http_errors_total[5m]))"),
)


def pages() -> dict[str, str]:
    """The one page."""
    metrics = table(("Metric", "Type", "Labels", "Meaning"), _rows())
    queries = table(("Question", "Expression"), ((question, f"`{query}`") for question, query in _QUERIES))
    return {"metrics.md": f"{_INTRO}{metrics}{_NOTES}{queries}"}


def _rows() -> Iterator[tuple[str, str, str, str]]:
    for family in FAMILIES:
        name, kind = (family.name, "histogram") if family.buckets else (f"{family.name}_total", "counter")
        yield f"`{name}`", kind, _labels(family), family.meaning
    for name, meaning in GAUGES.items():
        yield f"`{name}`", "counter" if name.endswith("_total") else "gauge", "", meaning
    name, meaning = INFO
    yield f"`{name}_info`", "gauge", "`version`, `interface_version`, `evaluator`, `python`", meaning


def _labels(family: Family) -> str:
    return ", ".join(f"`{label}`" for label in family.labels)
