"""The evaluation alone, compared with that of zen-engine on an equal decision table, both called from Python.

zen-engine is timed with each of its interfaces. `zen`, the engine with a static loader, is the fastest. `zen_trace`
also returns the matched row, and so compares with explain. `zen_decision` evaluates a decision object that is made
once, and sets up an engine in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Final

import orjson
import zen

from bench.decision_table import OUTPUTS, decision_graph
from bench.measure import Mismatch, Spread, alternate, ratio, spread, stopwatch
from bench.samples import rulebook_body
from bench.tables import table
from gate.rulebooks.evaluation import Evaluator
from gate.rulebooks.rulebook import load

_ROUNDS: Final = 11
_SECONDS: Final = 0.1
_QUICK_ROUNDS: Final = 9
_QUICK_SECONDS: Final = 0.01

FACTS: Final[Mapping[str, dict[str, Any]]] = {
    "approve": {"discount_percent": 10, "margin_percent": 22},
    "block": {"discount_percent": 10, "margin_percent": 5},
    "review": {"discount_percent": 25, "margin_percent": 22},
    "fractions": {"discount_percent": 12.5, "margin_percent": 15.25},
    "wide": {"discount_percent": 10, "margin_percent": 22} | {f"member_{number}": number for number in range(20)},
}

_STATEMENTS: Final = {
    "decide": "evaluator.decide(facts)",
    "explain": "evaluator.explain(facts)",
    "zen": "engine.evaluate('table', facts)",
    "zen_trace": "engine.evaluate('table', facts, {'trace': True})",
    "zen_decision": "decision.evaluate(facts)",
}
_RATIOS: Final = (
    ("zen", "decide"),
    ("zen", "explain"),
    ("zen_trace", "explain"),
    ("zen_decision", "decide"),
    ("zen_decision", "explain"),
)


def run(*, quick: bool) -> dict[str, Any]:
    """Times every subject on all `FACTS`.

    Raises:
        Mismatch: The table and the rulebook give different answers.
    """
    body = rulebook_body()
    graph = decision_graph(body)
    evaluator = load(body).evaluator
    engine = zen.ZenEngine({"loader": {"type": "static", "content": {"table": graph}}})
    decision = zen.ZenEngine().create_decision(orjson.dumps(graph).decode())
    compared = _compare(
        evaluator,
        lambda facts: engine.evaluate("table", facts)["result"],
        lambda facts: decision.evaluate(facts)["result"],
    )
    subjects = {"evaluator": evaluator, "engine": engine, "decision": decision}
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    return {
        "rounds": rounds,
        "equal_outcomes_checked": compared,
        "facts": {name: _time({**subjects, "facts": facts}, rounds, seconds) for name, facts in FACTS.items()},
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    times: list[list[str]] = []
    ratios: list[list[str]] = []
    for name, taken in result["facts"].items():
        for subject, figures in taken["times"].items():
            times.append([f"{name}: {subject}", *Spread.from_dict(figures, "us").cells()])
        for pair, figures in taken["ratios"].items():
            ratios.append([f"{name}: {pair}", *Spread.from_dict(figures).cells()])
    return "\n\n".join(
        [
            f"Evaluation, {result['rounds']} alternating rounds; "
            f"equal outcomes on {result['equal_outcomes_checked']} facts",
            table(["microseconds a call", "median", "min..max"], times),
            table(["ratio", "median", "min..max"], ratios),
        ]
    )


def _compare(evaluator: Evaluator, *others: Callable[[dict[str, Any]], Mapping[str, Any]]) -> int:
    grid = list(_grid())
    for facts in grid:
        outcome = evaluator.decide(facts)
        expected = {name: getattr(outcome, name) for name in OUTPUTS}
        if evaluator.explain(facts).outcome != outcome:
            raise Mismatch(f"explain and decide differ on {facts}.")
        for answer in others:
            given = answer(facts)
            # zen-engine leaves out what is null.
            if (found := {name: given.get(name) for name in OUTPUTS}) != expected:
                raise Mismatch(f"On {facts} the rulebook says {expected}, the table {found}.")
    return len(grid)


def _grid() -> Iterator[dict[str, Any]]:
    yield from FACTS.values()
    values = (-5, 0, 0.1, 5, 10, 14, 14.9, 14.999999, 15, 15.0, 15.000001, 15.5, 16, 22, 99.9, 100, 1e6)
    for discount, margin in product(values, values):
        yield {"discount_percent": discount, "margin_percent": margin}


def _time(names: Mapping[str, Any], rounds: int, seconds: float) -> dict[str, Any]:
    taken = alternate(
        {subject: stopwatch(statement, names, seconds) for subject, statement in _STATEMENTS.items()}, rounds
    )
    return {
        "times": {subject: spread(figures).to_dict("us") for subject, figures in taken.items()},
        "ratios": {f"{over}/{under}": ratio(taken[over], taken[under]).to_dict() for over, under in _RATIOS},
    }
