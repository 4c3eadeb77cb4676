"""gate rulebook analyse: what it prints for people and machines, what it compares with, and its exit codes."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import jsonschema
import pytest

from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import DEFAULT_BASE_URL, load_settings
from tests.support.command_line import run_gate
from tests.support.rulebooks import compare, outcome, rule, rulebook, stricter_rulebook
from tests.support.samples import sample_rulebook

SHIPPED: Final = sorted(resources.path("data", "rulebooks").rglob("*.json"))
ORDERS: Final = str(resources.path("data", "rulebooks", "refund_order_policy.json"))


def written(folder: Path, body: Any, name: str = "rulebook.json") -> str:
    (folder / name).write_text(json.dumps(body, indent=1))
    return str(folder / name)


def reported(done: CompletedProcess[str], code: int) -> Any:
    """The report, which follows its schema."""
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(resources.schema("rulebook-analysis")).validate(report)
    return report


def test_findings_name_file_and_line_and_facts(tmp_path: Path) -> None:
    file = written(tmp_path, sample_rulebook())
    done = run_gate("rulebook", "analyse", file)
    line = 1 + Path(file).read_text().splitlines().index(' "default_outcome": {')
    assert done.returncode == 0
    told = f"{file}:{line}: note: No rule matches for discount_percent > 15 and margin_percent >= 15; the default "
    assert told + "outcome decides: review.\n" in done.stdout
    assert '    for example {"discount_percent":16,"margin_percent":15}\n' in done.stdout
    assert done.stdout.endswith(f"{file}: 0 dangers, 0 warnings, 2 notes; all questions decided.\n")


def test_a_version_that_approves_less_is_no_danger_and_one_that_approves_more_is(tmp_path: Path) -> None:
    loose, strict = written(tmp_path, sample_rulebook()), written(tmp_path, stricter_rulebook(), "strict.json")
    done = run_gate("rulebook", "analyse", strict, "--against", loose)
    assert done.returncode == 0
    assert "the result changes in 2 regions of facts:\n" in done.stdout
    assert "  warning: yes (APPROVE, approve_discount, STANDARD_EXCEPTION_ALLOWED; approve_standard_exc" in done.stdout
    assert "    where discount_percent <= 15 and 15 <= margin_percent < 25\n" in done.stdout
    done = run_gate("rulebook", "analyse", loose, "--against", strict)
    assert done.returncode == 1
    assert (
        "  danger: no (BLOCK, reject_discount, MARGIN_FLOOR_BREACH; block_below_margin_floor) becomes " in done.stdout
    )


def test_equal_rulebooks_are_said_to_be_equal(tmp_path: Path) -> None:
    body = sample_rulebook()
    other = written(tmp_path, {**body, "version": "2", "rules": body["rules"][::-1]}, "other.json")
    done = run_gate("rulebook", "analyse", other, "--against", written(tmp_path, body))
    assert done.returncode == 0
    assert "Equal to pricing_exception 2026-06-11: both have the same result for all facts.\n" in done.stdout


def test_machines_get_the_findings_and_the_regions(tmp_path: Path) -> None:
    loose, strict = written(tmp_path, sample_rulebook()), written(tmp_path, stricter_rulebook(), "strict.json")
    report = reported(run_gate("rulebook", "analyse", loose, "--against", strict, "--json"), 1)
    assert (report["decided"], report["undecided"], report["difference"]["equal"]) == (True, [], False)
    assert [finding["kind"] for finding in report["findings"]] == ["test_always_true", "falls_to_default"]
    region = report["difference"]["regions"][0]
    assert (region["from"]["rule_id"], region["to"]["rule_id"], region["severity"]) == (
        "block_below_margin_floor", "approve_standard_exception", "danger",
    )  # fmt: skip
    assert "difference" not in reported(run_gate("rulebook", "analyse", loose, "--json"), 0)


def test_a_registered_version_is_compared_with(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create_instance(home, base_url=DEFAULT_BASE_URL)
    with closing(open_instance(load_settings(home))) as instance:
        instance.ledger.directory.create_scope("shop", "team", utc_now())
    file, at = written(tmp_path, sample_rulebook()), ("--home", str(home))
    assert run_gate("rulebook", "register", file, "--scope", "shop", *at).returncode == 0
    strict = written(tmp_path, stricter_rulebook(), "strict.json")
    version = sample_rulebook()["version"]
    done = run_gate("rulebook", "analyse", strict, "--against", version, "--scope", "shop", *at)
    assert f"Compared with pricing_exception {version}, the result changes in 2 regions" in done.stdout
    done = run_gate("rulebook", "analyse", strict, "--against", "2020", "--scope", "shop", *at)
    assert done.returncode == 2
    assert f"pricing_exception 2020 is not registered in this scope. Registered versions, newest first: {version}" in (
        done.stderr
    )


def test_what_cannot_be_compared_with_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, sample_rulebook())
    done = run_gate("rulebook", "analyse", file, "--against", "2026-01-01")
    assert done.returncode == 2
    assert "There is no file 2026-01-01. To compare with a registered version, give its scope with --scope." in (
        done.stderr
    )
    broken = written(tmp_path, {**sample_rulebook(), "rules": []}, "broken.json")
    done = run_gate("rulebook", "analyse", file, "--against", broken)
    assert (done.returncode, f"{broken}:" in done.stdout) == (1, True)


def test_facts_of_an_adapter_are_there_with_their_types(tmp_path: Path) -> None:
    hold = {"outcome": outcome("hold", "no"), "priority": 1}
    body = rulebook(
        rule("r1", compare("chargeback_open", "neq", True)),
        rule("r0", compare("chargeback_open", "eq", True), **hold),
    )
    file = written(tmp_path, body)
    without = reported(run_gate("rulebook", "analyse", file, "--json"), 1)
    assert "approves_wrong_type" in [finding["kind"] for finding in without["findings"]]
    made = reported(run_gate("rulebook", "analyse", file, "--adapter", "refund_facts", "--json"), 0)
    assert not [finding for finding in made["findings"] if finding["severity"] == "danger"]


@pytest.mark.parametrize("every", [False, True])
def test_only_some_regions_that_fall_to_the_default_are_shown(every: bool) -> None:
    done = run_gate("rulebook", "analyse", ORDERS, "--adapter", "refund_facts", *(["--all"] if every else []))
    assert done.stdout.count("No rule matches for ") == (4 if every else 3)
    assert ("1 more region of facts without a matching rule; --all lists them." in done.stdout) is not every


def test_a_known_danger_is_accepted_by_its_name_and_for_as_long_as_it_is_there() -> None:
    at, name = ("rulebook", "analyse", ORDERS, "--adapter", "refund_facts"), "approves_without_fact:some_item_returned"
    done = run_gate(*at)
    assert (done.returncode, f"    name: {name}\n" in done.stdout) == (1, True)
    done = run_gate(*at, "--accept", name)
    assert (done.returncode, "accepted: Facts without some_item_returned are approved" in done.stdout) == (0, True)
    report = reported(run_gate(*at, "--accept", name, "--json"), 0)
    assert [finding["name"] for finding in report["findings"] if finding["accepted"]] == [name]
    done = run_gate(*at, "--accept", "approves_without_fact:amount")
    assert (done.returncode, "There is no finding approves_without_fact:amount;" in done.stderr) == (2, True)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_rulebooks_of_the_product_have_no_danger_but_the_one_that_is_known(file: Path) -> None:
    known = ["approves_without_fact:some_item_returned"] if file.name == "refund_order_policy.json" else []
    adapter = ["--adapter", "refund_facts"] if known else []
    done = run_gate(
        "rulebook", "analyse", str(file), *adapter, *(part for name in known for part in ("--accept", name))
    )
    assert (done.returncode, "0 dangers, 0 warnings" in done.stdout) == (0, True)
