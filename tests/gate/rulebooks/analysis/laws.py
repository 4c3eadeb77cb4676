"""Laws of the analysis: it agrees with brute force on everything, and each of its witnesses is real.

Each law takes rulebooks and raises AssertionError where it is broken, so that tests can plant bugs and see it break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from gate.rulebooks.advice import find_warnings
from gate.rulebooks.analysis import analyse
from gate.rulebooks.analysis.finding import Finding
from gate.rulebooks.analysis.wording import condition_words
from gate.rulebooks.evaluation import ABSENT as NOTHING
from gate.rulebooks.evaluation import compile_rulebook
from tests.reference import evaluator as reference
from tests.support.brute_force import (
    Said,
    Tried,
    approved_mistyped,
    approved_without,
    only,
    said,
    silences,
    tested_fields,
    transitions,
)
from tests.support.grids import ABSENT, Axes, TooLarge, look_up

_APPROVALS = "input_schema.properties."


def hold_the_findings(body: Any, *, most: int) -> None:
    """Holds the findings about a rulebook against brute force.

    Raises:
        TooLarge: It would take too long.
        AssertionError: They disagree.
    """
    axes = Axes([body], most=most)
    grid = axes.grid(most=most)
    found = analyse(body)
    by_kind: dict[str, list[Finding]] = defaultdict(list)
    for finding in found.findings:
        by_kind[finding.kind].append(finding)
    tried = Tried(body, grid)
    _rules(tried, by_kind)
    _tests(tried, by_kind)
    _default(tried, by_kind)
    warned = [
        warning.field.removesuffix(".field") for warning in find_warnings(body) if warning.code == "undeclared_field"
    ]
    assert sorted(finding.path for finding in by_kind.pop("undeclared_field", [])) == sorted(warned)
    silent = _silences(body, grid, by_kind)
    _approvals(body, axes, silent, by_kind, most)
    assert set(by_kind) == set(), "a kind that nothing judges"
    compared_whole = {path for path in tested_fields(body) if _inside_a_constant(body, path)}
    assert found.decided or compared_whole, found.undecided


def _rules(tried: Tried, by_kind: dict[str, list[Finding]]) -> None:
    never = by_kind.pop("rule_never_matches", [])
    assert sorted(finding.rule_ids[0] for finding in never) == sorted(tried.never_holding())
    shadowed = by_kind.pop("rule_shadowed", [])
    assert sorted(finding.rule_ids[0] for finding in shadowed) == sorted(tried.shadowed())
    for finding in shadowed:
        assert tried.is_least_cover(tried.holds[finding.rule_ids[0]], finding.rule_ids[0], finding.rule_ids[1:]), (
            finding
        )
        if finding.witness is not None:
            rule_id = finding.rule_ids[0]
            assert _holds(tried.body, rule_id, finding.witness), finding
            assert _outcome(tried.body, finding.witness)[-1] in finding.rule_ids[1:], finding
    overlapping = by_kind.pop("equal_priorities_overlap", [])
    assert sorted(finding.rule_ids for finding in overlapping) == sorted(tried.overlaps())
    for finding in overlapping:
        assert _outcome(tried.body, finding.witness)[-1] == finding.rule_ids[0], finding
        assert _holds(tried.body, finding.rule_ids[1], finding.witness), finding


def _tests(tried: Tried, by_kind: dict[str, list[Finding]]) -> None:
    constant = tried.constant_tests()
    for kind, always in (("test_always_true", True), ("test_always_false", False)):
        findings = by_kind.pop(kind, [])
        assert sorted(finding.path for finding in findings) == sorted(
            path for path, result in constant.items() if result is always
        )
        for finding in findings:
            assert finding.path.startswith(f"rules[{_place(tried.body, finding.rule_ids[0])}]."), finding
            # The other rules match all facts for which the test would have another result.
            passes = tried.passes[finding.path]
            others = tried.valid & (~passes if always else passes)
            assert tried.is_least_cover(others, finding.rule_ids[0], finding.rule_ids[1:]), finding


def _default(tried: Tried, by_kind: dict[str, list[Finding]]) -> None:
    findings = by_kind.pop("falls_to_default", [])
    assert bool(findings) == bool(tried.unmatched)
    for finding in findings:
        evaluated = reference.evaluate(tried.body, _witness(finding))
        assert (evaluated["status"], evaluated["matched_rule_id"]) == ("ok", None), finding


def _silences(body: Any, grid: Sequence[dict[str, Any]], by_kind: dict[str, list[Finding]]) -> set[str]:
    findings = by_kind.pop("silent_when_absent", [])
    expected = silences(body, grid)
    assert sorted((finding.path, finding.severity) for finding in findings) == sorted(
        (path, "danger" if silence.danger else "warning") for path, silence in expected.items()
    )
    for finding in findings:
        witness = _witness(finding)
        outcome = _outcome(body, witness)
        assert look_up(witness, expected[finding.path].field) is ABSENT, finding
        assert finding.rule_ids[1:] == ((outcome[-1],) if outcome[-1] is not None else ()), finding
        assert not _holds(body, finding.rule_ids[0], witness), finding
        assert (outcome[0] == "yes") is (finding.severity == "danger"), finding
    return {expected[finding.path].field for finding in findings if finding.severity == "danger"}


def _approvals(body: Any, axes: Axes, silent: set[str], by_kind: dict[str, list[Finding]], most: int) -> None:
    for kind, judge in (("approves_without_fact", approved_without), ("approves_wrong_type", approved_mistyped)):
        findings = by_kind.pop(kind, [])
        named = [finding.path.removeprefix(_APPROVALS) for finding in findings]
        assert len(named) == len(set(named)), findings
        for finding in findings:
            assert _outcome(body, _witness(finding))[0] == "yes", finding
        for path in tested_fields(body) - (silent if kind == "approves_without_fact" else set()):
            try:
                expected = judge(body, axes, path, most=10 * most)
            except TooLarge:
                continue
            # Where a rule compares an object around the field as a whole, the question is left undecided.
            assert (path in named) is (expected and not _inside_a_constant(body, path)), (kind, path)


def _inside_a_constant(body: Any, path: str) -> bool:
    """Whether a test compares an object around a field with a whole object."""
    for test in (test for rule in body["rules"] for test in _tests_of(rule["condition"])):
        value = test.get("value")
        constants = value if test["operator"] in ("in", "not_in") else [value]
        compares = test["operator"] in ("eq", "neq", "in", "not_in")
        if compares and path.startswith(f"{test['field']}.") and any(isinstance(each, dict) for each in constants):
            return True
    return False


def _tests_of(condition: Any) -> Iterable[Any]:
    if "operator" in condition:
        yield condition
    children = [
        *condition.get("all", ()),
        *condition.get("any", ()),
        *([condition["not"]] if "not" in condition else []),
    ]
    for child in children:
        yield from _tests_of(child)


def hold_the_difference(before: Any, after: Any, others: Sequence[dict[str, Any]], *, most: int) -> None:
    """Holds the difference of two rulebooks against brute force.

    Args:
        before: The one.
        after: The other.
        others: More facts to try.
        most: The most facts to try.

    Raises:
        TooLarge: It would take too long.
        AssertionError: They disagree.
    """
    grid = Axes([before, after], most=most).grid(most=most)
    difference = analyse(after, against=before).difference
    assert difference is not None
    assert difference.decided, difference
    expected = list(transitions(before, after, grid))
    assert difference.equal is all(first == second for first, second in expected)
    assert difference.equal is not bool(difference.regions)
    for region in difference.regions:
        assert _outcome(before, region.witness) == _of(region.before), region
        assert _outcome(after, region.witness) == _of(region.after), region
        assert region.holds(region.witness), region
        assert region.condition
        for limit in region.region.limits:
            words = condition_words([limit])
            assert "is absent" not in words or limit.holds(NOTHING), words
    tried = [*zip(grid, expected, strict=True), *zip(others, transitions(before, after, others), strict=True)]
    for facts, (first, second) in tried:
        here = {(_of(region.before), _of(region.after)) for region in difference.regions if region.holds(facts)}
        assert here == ({(first, second)} if first != second else set()), facts


def _of(result: Any) -> Said:
    return result.decision, result.verdict, result.action, result.reason_code, result.rule_id


def _outcome(body: Any, facts: Any) -> Said:
    """The outcome for facts, on which both evaluators agree."""
    outcome = compile_rulebook(body).decide(facts)
    evaluated = reference.evaluate(body, facts)
    assert evaluated["matched_rule_id"] == outcome.matched_rule_id
    assert evaluated["status"] == outcome.status
    return said(outcome)


def _holds(body: Any, rule_id: str, facts: Any) -> bool:
    rule = body["rules"][_place(body, rule_id)]
    return only(body, rule).decide(facts).matched_rule_id is not None


def _place(body: Any, rule_id: str) -> int:
    return next(place for place, rule in enumerate(body["rules"]) if rule["rule_id"] == rule_id)


def _witness(finding: Finding) -> dict[str, Any]:
    assert finding.witness is not None, finding
    return finding.witness
