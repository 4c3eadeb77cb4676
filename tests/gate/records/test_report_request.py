"""What a report's request may not hold: credentials, parts that its hash would not bind, and dates without a zone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gate.encoding import resources
from gate.errors import RequestRefused
from gate.records.reports.receipts import KINDS, Kind
from gate.records.reports.report_request import check_request
from tests.support.documentation import rows, section
from tests.support.samples import REPORTS, cases
from tests.support.torture import size

ROOT: Final = Path(__file__).parents[3]
KIND: Final = {kind.name: kind for kind in KINDS}


def refusal(kind: Kind, body: Any) -> list[tuple[str, str]]:
    with pytest.raises(RequestRefused) as refused:
        check_request(kind, body)
    assert refused.value.code == "SVC_API_REQUEST_INVALID"
    return [(error.field, error.code) for error in refused.value.errors]


@pytest.mark.parametrize(
    "sent", ["", "yesterday", "2026-06-11", "2026-06-11T12:30:46", "2026-13-11T12:30:46Z", "0001-01-01T00:00:00+14:00"]
)
@pytest.mark.parametrize("name", ["execution", "outcome"])
def test_a_date_without_a_zone_is_refused(name: str, sent: str) -> None:
    assert refusal(KIND[name], {**REPORTS[name], "executed_at": sent}) == [("executed_at", "format")]


@pytest.mark.parametrize("case", cases("credentials"), ids=lambda case: json.dumps(case["fields"]))
def test_what_looks_like_a_credential_is_refused_and_nothing_else(case: dict[str, Any]) -> None:
    for name, member in (("crm-sync", "mapped_fields"), ("execution", "action_binding")):
        body = {**REPORTS[name], member: case["fields"]}
        if case["refused"]:
            expected = [(f"{member}.{path}".rstrip("."), "credential") for path in case["refused"]]
            assert refusal(KIND[name], body) == expected
        else:
            check_request(KIND[name], body)


@pytest.mark.parametrize(
    "text",
    [
        *("dgk_0a_b", "DGK_0A_B", "-----BEGIN RSA PRIVATE KEY", "abcdefgh.eyJab.c", "Glpat-12345678"),
        *("gho_12345678", "ghp_12345678", "GHS_12345678", "ghu_12345678", "ghr_12345678", "GitHub_PAT_12345678"),
        *("sk_live_12345678", "rk_live_12345678", "SK_TEST_12345678", "rk_test_12345678", "xoxa-12345678"),
        *("xoxb-12345678", "XOXP-12345678", "sk-proj-12345678", "SK-ANT-12345678", "AKIA0123456789ABCDEF"),
        *("ASIA0123456789ABCDEF", "authorization: Basic aaa1", "BEARER abc1", "x://u:p@h", "HTTPS://u@h"),
        # The search takes a dotted or an undotted letter, or a long s, for the usual one.
        *("g\u0131thub_pat_12345678", "\u017fk-proj-12345678"),
    ],
)
def test_a_credential_of_every_kind_is_found(text: str) -> None:
    for sent in (text, f"{'x ' * 100}{text}", f"é {text}"):
        if not text.startswith("BEARER") or sent == text:
            body = {**REPORTS["execution"], "action_binding": {"note": sent}}
            assert refusal(KIND["execution"], body) == [("action_binding.note", "credential")]


@pytest.mark.parametrize("member", ["external_ref", "action_taken", "execution_result", "state_before_ref"])
def test_a_credential_is_found_in_any_text(member: str) -> None:
    body = {**REPORTS["execution"], member: "Bearer abc123"}
    assert refusal(KIND["execution"], body) == [(member, "credential")]


def test_a_name_that_is_a_credential_is_not_told_again() -> None:
    key = "dgk_026556c3d757748d69b0f1cb_Zm9v"
    with pytest.raises(RequestRefused) as refused:
        check_request(KIND["crm-sync"], {**REPORTS["crm-sync"], "mapped_fields": {"deal": {key: "x"}}})
    assert key not in f"{refused.value} {refused.value.errors}"
    assert "name" in refused.value.errors[0].message


def test_metrics_may_have_any_name() -> None:
    metrics = {"tokens": 5, "password": 0.5, "otp": 1, "pin": 2}
    check_request(KIND["outcome"], {**REPORTS["outcome"], "observed_metrics": metrics})


def test_nothing_is_no_credential() -> None:
    binding: dict[str, Any] = {"secret": True, "password": None, "token": "", "cookie": {}, "otp": False}
    check_request(KIND["execution"], {**REPORTS["execution"], "action_binding": binding})


def test_no_more_faults_are_told_than_anyone_reads() -> None:
    fields = {f"note_{number}": "Bearer abc123" for number in range(60)}
    assert len(refusal(KIND["crm-sync"], {**REPORTS["crm-sync"], "mapped_fields": fields})) == 50


def test_an_empty_part_of_what_was_mapped_is_refused_and_the_reason_told() -> None:
    fields = {"stage": "won", "deal": {"owner": "Ann", "notes": ["a", ""]}}
    with pytest.raises(RequestRefused) as refused:
        check_request(KIND["crm-sync"], {**REPORTS["crm-sync"], "mapped_fields": fields})
    (error,) = refused.value.errors
    assert (error.field, error.code) == ("mapped_fields.deal.notes[1]", "empty")
    assert "hash does not cover empty values" in error.message
    assert "leave it out" in error.message


_CHECK: Final = """
import json, resource, sys
from gate.encoding import resources
from gate.errors import RequestRefused
from gate.records.reports.receipts import EXECUTIONS
from gate.records.reports.report_request import check_request
from gate.encoding.shapes import FORMS
from gate.services.advisory.masking import mask

length, seconds = map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
for before, repeated, after in json.loads(sys.argv[1]):
    text = before + repeated * (length // len(repeated)) + after
    for binding in ({"x": text}, {"x": {text: "x"}}):
        try:
            check_request(EXECUTIONS, {"execution_status": "executed", "action_binding": binding})
        except RequestRefused:
            pass
    mask({text: text})
    print(json.dumps([before, repeated, after]), flush=True)
"""


@pytest.mark.heavy
def test_no_text_keeps_a_worker_busy(tmp_path: Path) -> None:
    """Of 128 KiB, in `make torture` of 1 MiB. A search that begins anew at each repetition would take minutes or hours
    of the processor, and what should be takes seconds: the bound is only to end it.
    """
    texts, (length, seconds) = cases("slow_texts"), size((1 << 17, 20), (1 << 20, 160))
    with (tmp_path / "checked").open("w+") as checked:
        command = [sys.executable, "-c", _CHECK, json.dumps(texts), str(length), str(seconds)]
        subprocess.run(command, cwd=ROOT, check=False, stdout=checked)
        checked.seek(0)
        assert [json.loads(line) for line in checked] == texts


def bounds_of(schema: dict[str, Any]) -> list[str]:
    """What a schema says of a member's values: those that it may have, and how many or how long."""
    named = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    found = [*schema.get("enum", ()), *(str(schema[name]) for name in named if schema.get(name, 1) != 1)]
    return found + (bounds_of(schema["items"]) if "items" in schema else [])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_reference_has_every_member_of_a_request_as_its_schema_does(kind: Kind) -> None:
    schema = resources.schema(kind.request)
    page = (ROOT / "docs" / "reference" / "formats" / f"{kind.request}.md").read_text()
    # Fields of fields have rows of their own.
    told = {cells[0].strip("`"): cells for cells in rows(section(page, "## Fields")) if "." not in cells[0]}
    assert list(told) == list(schema["properties"])
    for name, inner in schema["properties"].items():
        _, type_, required, meaning = told[name]
        assert required == ("yes" if name in schema["required"] else "no")
        assert type_.startswith("`" if "enum" in inner else inner["type"])
        assert set(bounds_of(inner)) <= set(re.findall(r"\w+", type_)), name
        assert meaning


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_guide_names_every_status_of_a_report(kind: Kind) -> None:
    guide = (ROOT / "docs" / "guides" / "report-results.md").read_text()
    heading = {"execution": "the execution", "outcome": "the outcome", "crm-sync": "a CRM sync"}[kind.name]
    told = re.findall(r"`(\w+)`", section(guide, f"## Report {heading}"))
    assert set(resources.schema(kind.request)["properties"][kind.status_member]["enum"]) <= set(told)
