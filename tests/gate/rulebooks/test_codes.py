"""Every code about rulebooks is explained, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from gate.encoding import resources
from gate.rulebooks.codes import CASE_WARNINGS, ERRORS, FINDINGS, WARNINGS


def constants(of: str, argument: int, *files: str) -> set[str]:
    """The strings that calls of a class in some files have as an argument, those of a conditional included."""
    paths = [path for file in files for path in _paths(file)]
    calls = [
        node.args[argument]
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == of
    ]
    return {node.value for node in calls if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _paths(file: str) -> Iterable[Path]:
    path = resources.path("gate", *file.split("/"))
    return path.rglob("*.py") if path.is_dir() else [path]


def test_every_warning_is_explained() -> None:
    # Which of these two it is depends on the operator.
    assert constants("FieldError", 1, "rulebooks/advice.py") | {"never_holds", "always_holds"} == set(WARNINGS)


def test_every_warning_about_cases_is_explained() -> None:
    assert constants("FieldError", 1, "rulebooks/testing/advice.py") == set(CASE_WARNINGS)


def test_every_finding_is_explained() -> None:
    found = constants("Finding", 0, "rulebooks/analysis")
    assert found | {"test_always_true", "test_always_false"} == set(FINDINGS)


def test_every_code_of_the_checks_of_a_rulebook_is_explained() -> None:
    assert constants("FieldError", 1, "rulebooks/rulebook.py", "rulebooks/authoring.py") <= set(ERRORS)


@pytest.mark.parametrize("code", [*ERRORS.values(), *WARNINGS.values(), *CASE_WARNINGS.values(), *FINDINGS.values()])
def test_explanations_are_sentences(code: tuple[str, str, str]) -> None:
    assert code[0].endswith(".")
    assert all(part == "" or part.endswith(".") for part in code)
