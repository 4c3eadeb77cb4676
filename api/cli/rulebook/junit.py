"""The results of `gate rulebook test` as JUnit XML, for CI: a suite for each file, a test for each case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from api.cli.output import visible
from api.cli.rulebook.lines import failure_lines
from api.cli.rulebook.runs import CaseRun, FileRun, UnusableFile
from gate.errors import OperatorError

_BEGINNING: Final = b"<?xml"


def write_junit(path: Path, runs: Sequence[FileRun | UnusableFile]) -> None:
    """Writes the results to a file, and replaces an earlier report.

    Raises:
        OperatorError: `FILE_UNWRITABLE`: also if the file exists and is not JUnit XML.
    """
    try:
        if path.is_file() and not path.read_bytes().startswith(_BEGINNING):
            message = f"{path} exists and is not JUnit XML; choose another file."
            raise OperatorError("FILE_UNWRITABLE", message)
        path.write_bytes(junit(runs))
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def junit(runs: Sequence[FileRun | UnusableFile]) -> bytes:
    """The results as an XML document."""
    suites = [_unusable(each) if isinstance(each, UnusableFile) else _suite(each) for each in runs]
    counts = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors")}
    root = ElementTree.Element("testsuites", {"name": "gate rulebook test", **counts})
    root.extend(suites)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(run: FileRun) -> ElementTree.Element:
    suite = _empty_suite(run.name, tests=len(run.cases), failures=len(run.failures))
    for case in run.cases:
        test = _test(suite, run.name, case.result.case.name, case.line)
        if not case.result.held:
            _fault(test, "failure", _differing(case), failure_lines(case))
    if run.warnings:
        lines = [f"line {each.line}: warning: {each.fault.field}: {each.fault.message}" for each in run.warnings]
        ElementTree.SubElement(suite, "system-out").text = _text(lines)
    return suite


def _unusable(run: UnusableFile) -> ElementTree.Element:
    suite = _empty_suite(run.name, tests=1, errors=1)
    lines = [f"{run.faulty_name}:{each.line}: {each.fault.field}: {each.fault.message}" for each in run.findings]
    _fault(_test(suite, run.name, "the file is usable", 1), "error", run.error.message, lines)
    return suite


def _empty_suite(name: str, *, tests: int, failures: int = 0, errors: int = 0) -> ElementTree.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors)}
    return ElementTree.Element("testsuite", {"name": visible(name), **counts})


def _test(suite: ElementTree.Element, file: str, name: str, line: int) -> ElementTree.Element:
    about = {"classname": visible(file), "name": visible(name), "file": visible(file), "line": str(line)}
    return ElementTree.SubElement(suite, "testcase", about)


def _fault(test: ElementTree.Element, kind: str, message: str, lines: Iterable[str]) -> None:
    ElementTree.SubElement(test, kind, {"message": visible(message)}).text = _text(lines)


def _differing(case: CaseRun) -> str:
    return f"not as expected: {', '.join(each.member for each in case.result.differences)}"


def _text(lines: Iterable[str]) -> str:
    """Lines with each character that does not print as an escape, for XML can hold few control characters."""
    return "\n".join(map(visible, lines))
