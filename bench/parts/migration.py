"""The dry run of a migration over past decisions: its time and memory over a large lake, compared with zen-engine.

`bench.lakes` draws the lake: decisions of a year with outcomes and metrics. A candidate of ten rules is compared with
the version before it. Each round runs in a new process, once cold and once warm, and its peak memory is measured. For
comparison, deciding alone is measured too: the candidate decides the facts from the lake, without base, outcomes, or
counts.

zen-engine decides the equal table with `zen_decision`, a decision object that is made once, and facts in
memory. A dry run decides each row twice, by base and candidate, and so does the zen-engine in the comparison.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
import zen

from bench.decision_table import OUTPUTS, decision_graph
from bench.disk import scratch
from bench.lakes import Policy, entries_of, goal_lines, judged, write_cases
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.tables import table
from gate.ledger.reads.tail import FollowedScope
from gate.proof.chain import Head
from gate.rulebooks.rulebook import load
from workbench.evaluator import compile_frame_evaluator
from workbench.lake.reader import open_lake
from workbench.migration.history import LakeHistory, dry_run

_DECISIONS: Final = 1_000_000
_QUICK_DECISIONS: Final = 100_000
_ROUNDS: Final = 7
_QUICK_ROUNDS: Final = 2
_ZEN_ROWS: Final = 2_000

_SECONDS: Final = 3
_MEMORY_MB: Final = 1024
_ZEN_RATIO: Final = 500

_SCOPE: Final = "acme"
_POLICY: Final = "pricing"
_METRIC: Final = "revenue_eur"
_FIRST: Final = 100
_FIELDS: Final = ("deal_size_eur", "discount_percent", "margin_percent")


def run(*, quick: bool) -> dict[str, Any]:
    """Measures the figures.

    Raises:
        Mismatch: The dry run, the evaluator, and the decision table give different answers.
    """
    decisions, rounds = (_QUICK_DECISIONS, _QUICK_ROUNDS) if quick else (_DECISIONS, _ROUNDS)
    with scratch() as directory:
        lake = directory / "lake"
        lake.mkdir()
        size = _build(lake, decisions)
        facts = _compare(lake, decisions)
        candidate, base = (_table(rulebook(version)) for version in ("2", "1"))
        subjects: dict[str, Callable[[], dict[str, float]]] = {
            "dry run": partial(_fresh, _dry_run, str(lake)),
            "dry run with money": partial(_fresh, _dry_run_with_money, str(lake)),
            "deciding alone": partial(_fresh, _deciding, str(lake)),
            "zen_decision": partial(_zen, [candidate], facts),
            "zen_decision of both": partial(_zen, [base, candidate], facts),
        }
        taken = alternate(subjects, rounds)
    zen_us = {name: [each["us"] for each in taken.pop(name)] for name in ("zen_decision", "zen_decision of both")}
    each_us = {name: [each["warm"] / decisions * 1e6 for each in of] for name, of in taken.items()}
    figures = {
        name: {
            "cold": spread([each["cold"] for each in of]).to_dict("s"),
            "warm": spread([each["warm"] for each in of]).to_dict("s"),
            "memory": spread([each["peak_mb"] for each in of]).to_dict("mb"),
            **{f"{peer}/it": ratio(times, each_us[name]).to_dict() for peer, times in zen_us.items()},
        }
        for name, of in taken.items()
    }
    return {
        "decisions": decisions,
        "rounds": rounds,
        "lake_bytes": size,
        "equal_outcomes_checked": len(facts),
        "subjects": figures,
        **{peer: spread(times).to_dict("us") for peer, times in zen_us.items()},
        "goals": _goals(figures),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [
            name,
            *Spread.from_dict(figures["cold"], "s").cells(),
            *Spread.from_dict(figures["warm"], "s").cells(),
            f"{figures['memory']['max_mb']:.0f}",
            *(f"{figures[f'{peer}/it']['median']:,.0f}" for peer in ("zen_decision", "zen_decision of both")),
        ]
        for name, figures in result["subjects"].items()
    ]
    zen_us = Spread.from_dict(result["zen_decision"], "us").cells(".0f")
    return "\n\n".join(
        [
            f"Dry run of a rulebook of 10 rules over {result['decisions']:,} past decisions, {result['rounds']} "
            f"alternating rounds; the lake has {result['lake_bytes'] / 1e6:,.0f} MB; equal outcomes on "
            f"{result['equal_outcomes_checked']:,} facts",
            table(["", "cold s", "min..max", "warm s", "min..max", "peak MB", "zen / it", "zen of both / it"], rows),
            f"zen_decision: {zen_us[0]} microseconds a row, {zen_us[1]}",
            goal_lines(result["goals"]),
        ]
    )


def _goals(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    whole = figures["dry run"]
    return [
        judged("dry run, cold", whole["cold"]["median_s"], _SECONDS, unit="s"),
        judged("peak memory", max(each["memory"]["max_mb"] for each in figures.values()), _MEMORY_MB, unit="MB"),
        *(
            judged(
                f"{peer} compared with {name}",
                figures[name][f"{peer}/it"]["median"],
                _ZEN_RATIO,
                unit="times",
                least=True,
            )
            for name, peer in (("dry run", "zen_decision of both"), ("deciding alone", "zen_decision"))
        ),
    ]


def rulebook(version: str) -> Any:
    """A rulebook of ten rules over numbers; the second version is stricter in four of them."""
    stricter = 0 if version == "1" else 2
    discount, margin, size = "discount_percent", "margin_percent", "deal_size_eur"
    rules: Sequence[tuple[str, Sequence[tuple[str, str, float]]]] = (
        ("no", [(margin, "lt", 12 + stricter)]),
        ("no", [(discount, "gt", 35 - stricter)]),
        ("review", [(size, "gt", 20_000), (discount, "gt", 10)]),
        ("yes", [(margin, "gte", 30), (discount, "lte", 30)]),
        ("review", [(margin, "lt", 16), (size, "gt", 8_000)]),
        ("yes", [(size, "lt", 2_000 - 100 * stricter), (discount, "lte", 25)]),
        ("yes", [(margin, "gte", 18), (discount, "lte", 15 - stricter)]),
        ("review", [(discount, "gt", 28)]),
        ("yes", [(margin, "gte", 24), (discount, "lte", 22), (size, "lt", 10_000)]),
        ("no", [(margin, "lt", 15)]),
    )
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": _POLICY,
        "version": version,
        "input_schema": {"required": list(_FIELDS), "properties": {name: {"type": "number"} for name in _FIELDS}},
        "rules": [
            {
                "rule_id": f"r{number}",
                "priority": 100 - number,
                "condition": {"all": [{"field": of, "operator": op, "value": value} for of, op, value in tests]},
                "outcome": _outcome(decision, number),
            }
            for number, (decision, tests) in enumerate(rules)
        ],
        "default_outcome": _outcome("review", 10),
    }


def _outcome(decision: str, number: int) -> dict[str, str]:
    return {
        "decision": decision,
        "verdict": f"{decision.upper()}_1",
        "action": f"do_{decision}",
        "reason_code": f"R{number}",
    }


def _build(lake: Path, decisions: int) -> int:
    """Draws a lake of so many decisions; the bytes of its files."""
    # Beside each twenty with an outcome there is one that has none.
    policies = [Policy(_POLICY, -(-decisions * 20 // 21))]
    head = Head("chain_1", _FIRST + entries_of(policies), "0" * 64, "0" * 64)
    scope = FollowedScope("s1", _SCOPE, head)
    return write_cases(lake, scope, policies, seed=1, watched=[_POLICY], first=_FIRST, searched=True).bytes


def _history(lake: str) -> LakeHistory:
    return LakeHistory(open_lake(lake).scope(_SCOPE), _POLICY)


def _compare(lake: Path, decisions: int) -> list[dict[str, Any]]:
    """Facts of the lake on which the dry run, the evaluator and the table say the same."""
    history, body = _history(str(lake)), rulebook("2")
    found = dry_run(history, load(body), load(rulebook("1")))
    if found.body["decisions"] != decisions or found.body["redecided"] != decisions:
        raise Mismatch(f"Of {decisions} decisions the dry run decides {found.body['redecided']} anew.")
    if not 0 < found.body["verdict_changed"]["decisions"] < decisions:
        raise Mismatch("The candidate changes nothing, or everything.")
    columns = [f"{name}:number" for name in _FIELDS]
    rows = found.decisions().select("position", "then_rule").head(_ZEN_ROWS)
    sample = rows.join(history.facts(_FIELDS).select("position", *columns), on="position", how="inner").collect()
    decision = _table(body)
    evaluator, facts = load(body).evaluator, []
    for row in sample.iter_rows(named=True):
        facts.append({name: row[f"{name}:number"] for name in _FIELDS})
        outcome, answer = evaluator.decide(facts[-1]), decision.evaluate(facts[-1])["result"]
        if {name: answer.get(name) for name in OUTPUTS} != {name: getattr(outcome, name) for name in OUTPUTS}:
            raise Mismatch(f"On {facts[-1]} the rulebook says {outcome}, the table {answer}.")
        rule = "rule:default" if outcome.matched_rule_id is None else f"rule:{outcome.matched_rule_id}"
        if row["then_rule"] != rule:
            raise Mismatch(f"On {facts[-1]} the dry run says {row['then_rule']}, the rulebook {rule}.")
    return facts


def _dry_run(lake: str) -> None:
    dry_run(_history(lake), load(rulebook("2")), load(rulebook("1")))


def _dry_run_with_money(lake: str) -> None:
    dry_run(_history(lake), load(rulebook("2")), load(rulebook("1")), metric=_METRIC)


def _deciding(lake: str) -> None:
    evaluator = compile_frame_evaluator(rulebook("2"))
    facts = _history(lake).facts(evaluator.fields)
    facts.select(evaluator.index).group_by("outcome").agg(pl.len()).collect(engine="streaming")


def _fresh(subject: Callable[[str], None], lake: str) -> dict[str, float]:
    """The seconds of a subject in a process of its own, at first and once more, and the peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (subject, lake))


def _measured(subject: Callable[[str], None], lake: str) -> dict[str, float]:
    found = {}
    for name in ("cold", "warm"):
        started = time.perf_counter()
        subject(lake)
        found[name] = time.perf_counter() - started
    # Unlike getrusage, it says nothing of the process that started this one.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return {**found, "peak_mb": int(peak.split()[1]) / 1024}


def _table(body: Any) -> Any:
    return zen.ZenEngine().create_decision(orjson.dumps(decision_graph(body)).decode())


def _zen(decisions: Sequence[Any], facts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    started = time.perf_counter()
    for row in facts:
        for decision in decisions:
            decision.evaluate(row)
    return {"us": (time.perf_counter() - started) / len(facts) * 1e6}
