"""The results of `gate rulebook test` as a JSON document, as in `schemas/rulebook-test-report.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from api.cli.rulebook.runs import CaseRun, FileRun, UnusableFile
from gate.drafting.measuring import Measured, coverage_report, mutation_report
from gate.rulebooks.testing.failures import Reason


def report(runs: Sequence[FileRun | UnusableFile], measured: Sequence[Measured]) -> dict[str, object]:
    """The report on files of cases, in their order, and on their coverage."""
    ok = all(isinstance(each, FileRun) and not each.failures for each in runs)
    files = [_unusable(each) if isinstance(each, UnusableFile) else _file(each) for each in runs]
    coverage = [coverage_report(each) for each in measured if each.coverage is not None]
    mutation = [mutation_report(each) for each in measured if each.mutation is not None]
    return {
        "ok": ok,
        "files": files,
        **({"coverage": coverage} if coverage else {}),
        **({"mutation": mutation} if mutation else {}),
    }


def _unusable(run: UnusableFile) -> dict[str, object]:
    faults = [{"file": run.faulty_name, **finding.to_dict()} for finding in run.findings]
    return {"file": run.name, "error": {"code": run.error.code, "message": run.error.message, "errors": faults}}


def _file(run: FileRun) -> dict[str, object]:
    return {
        "file": run.name,
        "rulebook": {
            "file": run.rulebook_name,
            "rulebook_id": run.rulebook.rulebook_id,
            "version": run.rulebook.version,
            "hash": run.rulebook.hash,
        },
        "cases": [_case(case) for case in run.cases],
        "warnings": [finding.to_dict() for finding in run.warnings],
    }


def _case(case: CaseRun) -> dict[str, object]:
    result = case.result
    return {
        "name": result.case.name,
        "line": case.line,
        "held": result.held,
        "expected": result.case.expect,
        "observed": result.observed,
        "differences": [asdict(difference) for difference in result.differences],
        "explanation": [_reason(reason) for reason in case.reasons],
    }


def _reason(reason: Reason) -> dict[str, object]:
    tree = {} if reason.tree is None else {"tree": asdict(reason.tree)}
    return {"text": reason.text, "rule_id": reason.rule_id, **tree}
