"""Runs files of cases: reads a file and its rulebook, and finds the line of each failing case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.cli.rulebook.documents import Finding, read_document
from api.cli.rulebook.files import read_rulebook
from gate.encoding.strict_json import MAX_VALUES
from gate.errors import FieldError, GateError, MaterialRefused, OperatorError
from gate.rulebooks.rulebook import Rulebook, load
from gate.rulebooks.testing.advice import find_case_warnings
from gate.rulebooks.testing.cases import MAX_FACTS_DEPTH, read_cases
from gate.rulebooks.testing.failures import Explainer, Reason
from gate.rulebooks.testing.runs import CaseResult, run

# Facts stand in a case, which stands in the list of cases of the document.
MAX_DEPTH: Final = MAX_FACTS_DEPTH + 3
"""The maximum depth of a file of cases."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A case that was run.

    Attributes:
        line: The line of its name.
        result: Its result.
        reasons: Why it does not hold; empty if it holds.
    """

    line: int
    result: CaseResult
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class FileRun:
    """A file of cases that was run.

    Attributes:
        name: The file of cases.
        rulebook_name: The file of the rulebook.
        rulebook: The rulebook.
        cases: The cases, in the order of the file.
        warnings: The warnings about the cases, in the order of their lines.
    """

    name: str
    rulebook_name: str
    rulebook: Rulebook
    cases: Sequence[CaseRun]
    warnings: Sequence[Finding]

    @property
    def failures(self) -> list[CaseRun]:
        """The cases that do not hold."""
        return [case for case in self.cases if not case.result.held]


@dataclass(frozen=True, slots=True)
class UnusableFile:
    """A file of cases that cannot be run.

    Attributes:
        name: The file of cases.
        error: Why.
        faulty_name: The file with the fault: the file of the cases, or of their rulebook.
        findings: The fields with faults, if single fields are at fault.
    """

    name: str
    error: GateError
    faulty_name: str
    findings: Sequence[Finding] = ()


def run_file(path: Path) -> FileRun | UnusableFile:
    """Runs the cases in a file, or from stdin for `-`, where paths of rulebooks are relative to the current folder."""
    name = "stdin" if str(path) == "-" else str(path)
    try:
        document = read_document(path, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except GateError as error:
        return UnusableFile(name, error, name)
    try:
        file = read_cases(document.value)
    except MaterialRefused as error:
        return UnusableFile(name, error, name, document.findings(error.errors))
    at = Path(os.path.normpath(path.parent / file.rulebook))
    # A rulebook named `-` is a file, not stdin.
    at = at.absolute() if str(at) == "-" else at
    try:
        authored = read_rulebook(at)
    except OperatorError as error:
        # What is at fault is the name that the file of cases gives.
        fault = FieldError("rulebook", error.code, error.message)
        return UnusableFile(name, error, name, document.findings([fault]))
    except GateError as error:
        return UnusableFile(name, error, str(at))
    if errors := authored.authored.errors:
        message = f"The rulebook {authored.name} is not valid; `gate rulebook check` shows why."
        return UnusableFile(
            name, GateError("RULEBOOK_INVALID", message, errors), authored.name, authored.document.findings(errors)
        )
    rulebook = load(authored.authored.body)
    results = run(rulebook, file.cases)
    explainer = Explainer(rulebook)
    lines = document.lines([f"cases[{index}].name" for index in range(len(results))])
    cases = [
        CaseRun(line, result, explainer.reasons(result)) for line, result in zip(lines.values(), results, strict=True)
    ]
    warnings = document.findings(find_case_warnings(rulebook.body, file.cases))
    return FileRun(name, authored.name, rulebook, cases, warnings)
