"""The exact analysis of rulebooks: differences, findings, and the mutation score of the product's own rulebooks.

Each subject runs in a fresh process, whose peak memory is taken too. The floor is what trying facts one by one would
take: the evaluator's speed over points of the same rulebooks, and how many points there are.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, spread
from bench.policies import points, policy, size, with_another_test
from bench.tables import table
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.encoding.yaml_text import read_yaml
from gate.rulebooks.analysis import analyse, compare
from gate.rulebooks.evaluation import compile_rulebook
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.cases import read_cases
from gate.rulebooks.testing.exact import ExactJudge
from gate.rulebooks.testing.mutation import mutation_score

_ROUNDS: Final = 5
_QUICK_ROUNDS: Final = 1
_RULES: Final = 50
_QUICK_RULES: Final = 12
_FIELDS: Final = 8
_POINTS: Final = 20_000
_DIFFERENCE_SECONDS: Final = 2
_ANALYSIS_SECONDS: Final = 10
_MUTATION_SECONDS: Final = 30
_MEMORY_MB: Final = 1024


def run(*, quick: bool) -> dict[str, Any]:
    """Takes the figures.

    Raises:
        Mismatch: An answer is not that of the evaluator, or a score is not that of the cases.
    """
    rules, rounds = (_QUICK_RULES, _QUICK_ROUNDS) if quick else (_RULES, _ROUNDS)
    subjects: dict[str, Callable[[], dict[str, Any]]] = {
        "difference, one test changed": lambda: _fresh(_one_test_changed, rules),
        "difference, rules in another order": lambda: _fresh(_reordered, rules),
        "difference, unrelated rulebooks": lambda: _fresh(_unrelated, rules),
        "analysis, twice the rules, 20 fields": lambda: _fresh(_analysed, 2 * rules),
        "mutation score of the product's rulebooks": lambda: _fresh(_mutated, quick),
    }
    taken = alternate(subjects, rounds)
    body = policy(rules, _FIELDS, 0)
    figures = {
        name: {
            "time": spread([each["seconds"] for each in runs]).to_dict("s"),
            "memory": spread([each["peak_mb"] for each in runs]).to_dict("mb"),
            "answer": runs[0]["answer"],
        }
        for name, runs in taken.items()
    }
    per_second = _points_per_second(body)
    return {
        "rules": rules,
        "rounds": rounds,
        "subjects": figures,
        "points": size(body),
        "points_per_second": round(per_second),
        "one_by_one_days": round(size(body) / per_second / 86_400, 1),
        "goals": _goals(figures),
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [
            name,
            *Spread.from_dict(figures["time"], "s").cells(),
            *Spread.from_dict(figures["memory"], "mb").cells(".0f"),
            figures["answer"],
        ]
        for name, figures in result["subjects"].items()
    ]
    return "\n\n".join(
        [
            f"Analysis of rulebooks of {result['rules']} rules and {_FIELDS} fields, {result['rounds']} rounds",
            table(["", "s", "min..max", "peak MB", "min..max", "answer"], rows),
            f"One by one, {result['points']:,} points at {result['points_per_second']:,} a second would take "
            f"{result['one_by_one_days']:,} days.",
            goal_lines(result["goals"]),
        ]
    )


def _goals(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    limits = {"difference": _DIFFERENCE_SECONDS, "analysis": _ANALYSIS_SECONDS, "mutation": _MUTATION_SECONDS}
    goals = [
        judged(name, each["time"]["median_s"], limits[name.replace(",", "").split()[0]], unit="s")
        for name, each in figures.items()
    ]
    peak = max(each["memory"]["max_mb"] for each in figures.values())
    return [*goals, judged("peak memory", peak, _MEMORY_MB, unit="MB")]


def _fresh(subject: Callable[[Any], str], argument: Any) -> dict[str, Any]:
    """The seconds, the peak memory and the answer of a subject in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (subject, argument))


def _measured(subject: Callable[[Any], str], argument: Any) -> dict[str, Any]:
    started = time.perf_counter()
    answer = subject(argument)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "answer": answer,
    }


def _one_test_changed(rules: int) -> str:
    before = policy(rules, _FIELDS, 0)
    return _differing(before, with_another_test(before, 99))


def _unrelated(rules: int) -> str:
    return _differing(policy(rules, _FIELDS, 0), policy(rules, _FIELDS, 1000))


def _reordered(rules: int) -> str:
    body = policy(rules, _FIELDS, 0)
    other: Any = {**body, "rules": body["rules"][::-1]}
    found = compare(body, other)
    if not found.equal:
        raise Mismatch("The order of the rules in a file means nothing, and yet the rulebooks are not equal.")
    return "equal"


def _differing(before: Any, after: Any) -> str:
    found = compare(before, after)
    evaluators = [compile_rulebook(body) for body in (before, after)]
    for region in found.regions:
        matched = [evaluator.decide(region.witness).matched_rule_id for evaluator in evaluators]
        if matched != [region.before.rule_id, region.after.rule_id]:
            raise Mismatch(f"The evaluator does not find the change of {region.condition} for {region.witness}.")
    return f"{len(found.regions)} regions, {'all' if found.decided else 'and more'}"


def _analysed(rules: int) -> str:
    found = analyse(policy(rules, 20, 0))
    return f"{len(found.findings)} findings, {'decided' if found.decided else 'not decided'}"


def _mutated(quick: bool) -> str:
    killed = of = 0
    files = sorted(resources.path("data", "cases").glob("pricing_exception.yaml" if quick else "*.yaml"))
    for file in files:
        read = read_cases(read_yaml(file.read_bytes()).value)
        rulebook = load(parse(Path(file.parent, read.rulebook).read_bytes()))
        score = mutation_score(rulebook, read.cases, ExactJudge()).score
        killed, of = killed + score.part, of + score.whole
    if killed != of:
        raise Mismatch(f"The cases of the product's rulebooks kill {killed} of {of} mutants.")
    return f"{killed} of {of} mutants killed"


def _points_per_second(body: Any) -> float:
    evaluator, facts = compile_rulebook(body), points(body, _POINTS, 0)
    started = time.perf_counter()
    for each in facts:
        evaluator.decide(each)
    return len(facts) / (time.perf_counter() - started)
