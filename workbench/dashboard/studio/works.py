"""The work of a workshop's processes: the exact analysis of a draft, its difference from another rulebook, and how well
its cases test it. Each function takes and returns a JSON object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from gate.drafting.measuring import coverage_report, measured, mutation_report
from gate.encoding.strict_json import JsonObject
from gate.errors import GateError, ServiceUnavailable
from gate.instance.fixtures import fixture_facts
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.rulebooks.analysis import NotDecided, analyse, compare, nearest_flips
from gate.rulebooks.rulebook import Rulebook, load
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.proposals import boundary_cases
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.migration.drafted import Drafted, prove_draft
from workbench.migration.history import LakeHistory, dry_run

Tell: TypeAlias = Callable[[JsonObject], None]


def do(name: str, arguments: JsonObject, tell: Tell) -> JsonObject:
    """Does a work: `{"done": ...}`, or `{"fault": {code, message}}` where it cannot be done.

    Args:
        name: One of `WORKS`.
        arguments: What it takes.
        tell: Told of its progress.
    """
    try:
        return {"done": WORKS[name](arguments, tell)}
    except NotDecided as error:
        return {"fault": {"code": "NOT_DECIDED", "message": f"This could not be decided: {error}."}}
    except GateError as error:
        return {"fault": {"code": error.code, "message": error.message}}


def _examine(arguments: JsonObject, tell: Tell) -> JsonObject:
    """The findings of a rulebook: {body, against?, adapter_facts?} becomes an analysis as JSON."""
    body, against = cast("Any", arguments["body"]), cast("Any", arguments.get("against"))
    found = analyse(body, against, cast("JsonObject | None", arguments.get("adapter_facts")))
    return cast("JsonObject", found.to_dict())


def _measure(arguments: JsonObject, tell: Tell) -> JsonObject:
    """Coverage and mutation score: {body, cases} becomes {coverage, mutation, missing}."""
    rulebook, cases = _rulebook(arguments), _cases(arguments["cases"])
    tell({"doing": "coverage"})
    covered = measured("draft", rulebook, cases, coverage=True, mutation=False)
    tell({"doing": "mutation", "coverage": cast("JsonObject", coverage_report(covered))})
    found = measured("draft", rulebook, cases, coverage=False, mutation=True)
    missing = [*covered.missing(), *found.missing()]
    return cast(
        "JsonObject",
        {
            "coverage": coverage_report(covered),
            "mutation": mutation_report(found),
            "missing": [_case(case) for case in missing],
        },
    )


def _boundaries(arguments: JsonObject, tell: Tell) -> JsonObject:
    """Cases at the edges of a rulebook: {body} becomes {cases}."""
    return {"cases": [_case(case) for case in boundary_cases(_rulebook(arguments))]}


def _prove(arguments: JsonObject, tell: Tell) -> JsonObject:
    """The dry run of a draft: {home, database_url, scope, migration_id, summary, body, annotations, cases, metric,
    since, history} becomes {manifest, evidence, dependency}.
    """
    wanted = cast("Any", arguments)
    rulebook = _rulebook(arguments)
    drafted = Drafted(
        wanted["migration_id"],
        wanted["summary"],
        rulebook,
        wanted["annotations"],
        _cases(wanted["cases"]),
        wanted["metric"],
        None if wanted["since"] is None else datetime.strptime(wanted["since"], "%Y-%m-%d").replace(tzinfo=UTC),
    )
    tell({"done": 0, "of": 0})
    with _opened(arguments) as instance, fixture_facts() as make_facts:
        scope = instance.ledger.directory.scope(wanted["scope"])
        proof = prove_draft(
            instance,
            scope,
            drafted,
            make_facts,
            history=wanted["history"],
            told=lambda done, of: tell({"done": done, "of": of}),
        )
    (proposed,) = proof.proposal.rulebooks
    return cast(
        "JsonObject",
        {
            "manifest": proof.proposal.manifest,
            "evidence": proof.proposal.evidence,
            "dependency": proposed.dependency,
        },
    )


def _compare(arguments: JsonObject, tell: Tell) -> JsonObject:
    """How a rulebook differs from another for all facts, and how many past decisions that concerns: {home,
    database_url, scope, body, against} becomes {difference, traffic, redecided}; traffic is null without past ones.
    """
    candidate, base = _rulebook(arguments), load(arguments["against"])
    difference = compare(base.body, candidate.body)
    found: dict[str, Any] = {"difference": difference.to_dict(), "traffic": None, "redecided": 0}
    if base.rulebook_id != candidate.rulebook_id or not difference.regions:
        return cast("JsonObject", found)
    with _opened(arguments) as instance:
        scope = instance.ledger.directory.scope(str(arguments["scope"]))
        settings = instance.settings
        personal = Personal.of(settings.personal_fields)
        try:
            snapshot = fresh(instance.ledger, settings.lake_directory, scope.scope_id, personal)
        except ServiceUnavailable:
            return cast("JsonObject", found)
        history = dry_run(LakeHistory(snapshot, base.rulebook_id), candidate, base, by=[], difference=difference).body
    found |= {"traffic": history["regions"] if history["redecided"] else None, "redecided": history["redecided"]}
    return cast("JsonObject", found)


def _opened(arguments: JsonObject) -> AbstractContextManager[Instance]:
    settings = load_settings(Path(str(arguments["home"])), database_url=str(arguments["database_url"]) or None)
    return closing(open_instance(settings))


def _flips(arguments: JsonObject, tell: Tell) -> JsonObject:
    """The smallest changes of facts that give another verdict: {body, facts, to} becomes {flips}."""
    to = arguments.get("to")
    found = nearest_flips(
        _rulebook(arguments).body, cast("JsonObject", arguments["facts"]), to=None if to is None else str(to)
    )
    return cast("JsonObject", {"flips": [flip.to_dict() for flip in found]})


WORKS: Final[Mapping[str, Callable[[JsonObject, Tell], JsonObject]]] = MappingProxyType(
    {
        "examine": _examine,
        "measure": _measure,
        "boundaries": _boundaries,
        "prove": _prove,
        "compare": _compare,
        "flips": _flips,
    }
)
"""What can be done, by name."""


def _rulebook(arguments: JsonObject) -> Rulebook:
    return load(arguments["body"])


def _cases(documents: object) -> list[Case]:
    found = cast("list[dict[str, Any]]", documents)
    return [Case(case["name"], case["facts"], case["expect"]) for case in found]


def _case(case: Case) -> JsonObject:
    return cast("JsonObject", {"name": case.name, "facts": case.facts, "expect": case.expect})
