"""The analysis of a rulebook as one value, for people, for JSON and for CI."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import cast

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis.absence import Absences
from gate.rulebooks.analysis.difference import Comparer, Difference
from gate.rulebooks.analysis.examination import Examiner
from gate.rulebooks.analysis.finding import Finding
from gate.rulebooks.analysis.formulas.encoding import Encoder
from gate.rulebooks.analysis.formulas.solver import NotDecided, Solver
from gate.rulebooks.analysis.formulas.space import Space
from gate.rulebooks.documents import DeclaredField, RulebookBody


@dataclass(frozen=True, slots=True)
class Analysis:
    """What holds of a rulebook for all facts.

    Attributes:
        findings: The findings: undeclared fields, then the most dangerous first.
        difference: How it differs from the rulebook that it was compared against; None where it was compared with none.
        undecided: The undecided questions, as sentences.
    """

    findings: tuple[Finding, ...]
    difference: Difference | None
    undecided: tuple[str, ...]

    @property
    def decided(self) -> bool:
        """Whether every question was decided, those of the difference too."""
        return not self.undecided and (self.difference is None or self.difference.decided)

    @property
    def dangerous(self) -> bool:
        """Whether a finding that nobody accepted, or a region of the difference, is a danger."""
        severities = [finding.severity for finding in self.findings if not finding.accepted]
        if self.difference is not None:
            severities += [region.severity for region in self.difference.regions]
        return "danger" in severities

    def accepting(self, names: Collection[str]) -> Analysis:
        """The analysis with the findings of some names accepted."""
        findings = (replace(finding, accepted=finding.name in names) for finding in self.findings)
        return replace(self, findings=tuple(findings))

    def to_dict(self) -> dict[str, object]:
        """The analysis as a JSON object; `schemas/rulebook-analysis.schema.json`."""
        found: dict[str, object] = {
            "decided": self.decided,
            "findings": [finding.to_dict() for finding in self.findings],
            "undecided": list(self.undecided),
        }
        return found if self.difference is None else {**found, "difference": self.difference.to_dict()}


def analyse(
    body: RulebookBody, against: RulebookBody | None = None, adapter_facts: JsonObject | None = None
) -> Analysis:
    """Analyzes a valid rulebook over every possible fact, within the bounds of `solver`.

    Args:
        body: The rulebook.
        against: A rulebook to compare it against, such as the version before it.
        adapter_facts: The output schema of the adapter that makes the facts: those that it always makes are there, and
            have its types. None where callers send them.
    """
    if adapter_facts is not None:
        body = _made_by(adapter_facts, body)
        against = None if against is None else _made_by(adapter_facts, against)
    findings: list[Finding] = []
    undecided: list[str] = []
    try:
        findings, undecided = _examine(body)
    except NotDecided as error:
        undecided = [f"Nothing about the rulebook is decided: {error}."]
    findings.sort(key=_order)
    difference = None if against is None else compare(against, body)
    return Analysis(tuple(findings), difference, tuple(undecided))


def _order(finding: Finding) -> tuple[bool, int, bool]:
    """Causes before what comes of them: a misspelt field first, and tests that decide nothing before rules."""
    severity = ("danger", "warning", "note").index(finding.severity)
    return finding.kind != "undeclared_field", severity, not finding.kind.startswith("test_")


def compare(before: RulebookBody, after: RulebookBody) -> Difference:
    """How the results of a valid rulebook differ from those of another, for all facts.

    Args:
        before: The rulebook that it is compared against.
        after: The rulebook.
    """
    solver = Solver()
    try:
        encoder = Encoder(Space([before, after], solver))
        return Comparer(encoder, encoder.encode(before), encoder.encode(after)).difference()
    except NotDecided as error:
        return Difference(None, (), (f"Whether the rulebooks are equal is not decided: {error}.",))
    finally:
        solver.close()


def find_difference(before: RulebookBody, after: RulebookBody) -> JsonObject | None:
    """Facts for which two valid rulebooks have different results, run by the evaluator; None where they are equal.

    Raises:
        NotDecided: It cost too much.
    """
    solver = Solver()
    try:
        encoder = Encoder(Space([before, after], solver))
        return Comparer(encoder, encoder.encode(before), encoder.encode(after)).witness()
    finally:
        solver.close()


def _examine(body: RulebookBody) -> tuple[list[Finding], list[str]]:
    solver = Solver()
    try:
        encoder = Encoder(Space([body], solver))
        encoded = encoder.encode(body)
        parts = (Examiner(encoder, encoded), Absences(encoder, encoded))
        findings = [finding for part in parts for finding in part.findings()]
        return findings, [sentence for part in parts for sentence in part.undecided]
    finally:
        solver.close()


def _made_by(adapter_facts: JsonObject, body: RulebookBody) -> RulebookBody:
    """A rulebook that also requires the facts that an adapter always makes, in the types that it makes."""
    properties = cast("dict[str, JsonObject]", adapter_facts.get("properties", {}))
    types = {name: made.get("type") for name, made in properties.items()}
    declared: dict[str, DeclaredField] = {
        name: {"type": type_} for name, type_ in types.items() if isinstance(type_, str)
    }
    required = [name for name in cast("list[str]", adapter_facts.get("required", [])) if name in declared]
    schema = body["input_schema"]
    return {
        **body,
        "input_schema": {
            "required": list(dict.fromkeys([*schema["required"], *required])),
            "properties": {**declared, **schema["properties"]},
        },
    }
