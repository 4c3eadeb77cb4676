"""gate rulebook test: what it prints for people, for machines and for CI, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers import expat

import jsonschema
import pytest

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.rulebooks.bundles import own_rulebooks
from tests.support.command_line import run_gate
from tests.support.samples import sample_rulebook

HOLDS: Final[dict[str, Any]] = {
    "name": "a usual discount",
    "facts": {"discount_percent": 10, "margin_percent": 22},
    "expect": {"verdict": "yes"},
}
FAILS: Final[dict[str, Any]] = {
    "name": "margin below the floor",
    "facts": {"discount_percent": 10, "margin_percent": 14},
    "expect": {"verdict": "yes", "matched_rule_id": "approve_standard_exception"},
}
MISSPELT: Final[dict[str, Any]] = {**HOLDS, "name": "misspelt", "facts": {**HOLDS["facts"], "margn_percent": 1}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a rulebook, which cases name."""
    (tmp_path / "rulebooks").mkdir()
    write(tmp_path / "rulebooks" / "pricing.json", sample_rulebook())
    (tmp_path / "cases").mkdir()
    return tmp_path


def write(file: Path, value: object) -> str:
    file.write_text(json.dumps(value, indent=1))
    return str(file)


def cases(folder: Path, *listed: object, name: str = "pricing.json", rulebook: str = "pricing.json") -> str:
    return write(folder / "cases" / name, {"rulebook": f"../rulebooks/{rulebook}", "cases": listed})


def line_of(file: str, text: str) -> int:
    (line,) = [number for number, line in enumerate(Path(file).read_text().splitlines(), 1) if text in line]
    return line


def reported(done: CompletedProcess[str], code: int) -> Any:
    """The report, which follows its schema."""
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(resources.schema("rulebook-test-report")).validate(report)
    return report


def suites(file: Path) -> list[ElementTree.Element]:
    """The suites of a file in JUnit XML, which an XML parser reads."""
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(file.read_bytes(), True)
    return builder.close().findall("testsuite")


class TestPeople:
    """The lines for people."""

    def test_cases_that_hold(self, folder: Path) -> None:
        file = cases(folder, HOLDS, {**HOLDS, "name": "again"})
        done = run_gate("rulebook", "test", file)
        assert (done.returncode, done.stdout) == (0, f"{file}: 2 of 2 cases hold\n")

    def test_a_case_that_does_not_is_explained(self, folder: Path) -> None:
        file = cases(folder, HOLDS, FAILS)
        done = run_gate("rulebook", "test", file)
        assert done.returncode == 1
        assert done.stdout == (
            f"{file}: 1 of 2 cases holds\n"
            f"{file}:{line_of(file, FAILS['name'])}: margin below the floor\n"
            '  verdict: expected "yes", observed "no"\n'
            '  matched_rule_id: expected "approve_standard_exception", observed "block_below_margin_floor"\n'
            "  block_below_margin_floor matched (priority 100)\n"
            "    + margin_percent lt 15: true, the fact is 14\n"
            "  approve_standard_exception would not have matched (priority 50)\n"
            "    - all: false, 1 of 2 inside is false\n"
            "      - margin_percent gte 15: false, the fact is 14\n"
        )

    def test_the_signs_inside_a_not_are_explained(self, folder: Path) -> None:
        body = sample_rulebook()
        body["rules"][0]["condition"] = {"not": {"field": "margin_percent", "operator": "gte", "value": 15}}
        write(folder / "rulebooks" / "pricing.json", body)
        lines = run_gate("rulebook", "test", cases(folder, FAILS)).stdout.splitlines()
        assert "      + margin_percent gte 15: false, the fact is 14" in lines
        assert lines[-1] == "+ supports a match, - opposes it; inside `not`, false supports it"

    def test_warnings_fail_where_they_are_to(self, folder: Path) -> None:
        file = cases(folder, MISSPELT)
        done = run_gate("rulebook", "test", file)
        assert done.returncode == 0
        told = f"{file}:{line_of(file, 'margn_percent')}: warning: cases[0].facts.margn_percent: "
        assert told in done.stdout
        assert "Did you mean 'margin_percent'?" in done.stdout
        done = run_gate("rulebook", "test", file, "--strict")
        assert done.returncode == 1
        assert done.stdout.endswith("Warnings, gaps and surviving mutants count as failures, because of --strict.\n")
        assert run_gate("rulebook", "test", cases(folder, HOLDS), "--strict").returncode == 0

    def test_several_files_and_the_worst_of_their_exit_codes(self, folder: Path) -> None:
        good, bad = cases(folder, HOLDS), cases(folder, FAILS, name="bad.json")
        done = run_gate("rulebook", "test", good, bad)
        assert done.returncode == 1
        assert f"{good}: 1 of 1 case holds\n{bad}: 0 of 1 case holds\n" in done.stdout
        done = run_gate("rulebook", "test", str(folder / "none.json"), bad, good)
        assert done.returncode == 2
        assert "none.json cannot be read: No such file or directory. (FILE_UNREADABLE)" in done.stdout
        assert f"{good}: 1 of 1 case holds" in done.stdout

    def test_stdin_names_a_rulebook_from_the_working_folder(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        document = {"rulebook": "rulebooks/pricing.json", "cases": [HOLDS]}
        done = run_gate("rulebook", "test", "-", stdin=json.dumps(document))
        assert (done.returncode, done.stdout) == (0, "stdin: 1 of 1 case holds\n")
        # And never the rulebook from stdin, too.
        done = run_gate("rulebook", "test", "-", stdin=json.dumps({**document, "rulebook": "-"}))
        assert "/- cannot be read: No such file" in done.stdout

    def test_a_terminal_obeys_nothing_in_a_name(self, folder: Path) -> None:
        done = run_gate("rulebook", "test", cases(folder, {**FAILS, "name": "a\x1b[2Jb\nc"}))
        assert "a\\x1b[2Jb\\nc\n" in done.stdout


class TestYaml:
    """Cases and rulebooks in YAML."""

    CASES = """\
rulebook: ../rulebooks/pricing.json
cases:
  - name: no is text
    facts: {discount_percent: 10, margin_percent: 14}
    expect: {verdict: no}
  - name: fails
    facts:
      discount_percent: 10
      margn_percent: 14
    expect: {verdict: yes}
"""

    def test_verdicts_are_text_and_lines_are_named(self, folder: Path) -> None:
        file = folder / "cases" / "pricing.yaml"
        file.write_text(self.CASES)
        done = run_gate("rulebook", "test", str(file))
        assert done.returncode == 1
        assert done.stdout.startswith(
            f"{file}: 1 of 2 cases holds\n"
            f"{file}:6: fails\n"
            '  verdict: expected "yes", observed "review"\n'
            "  margin_percent is required but missing\n"
            "  so no rule was tried\n"
            f"{file}:9: warning: cases[1].facts.margn_percent: "
        )

    def test_what_is_unusable_is_named_by_its_line(self, folder: Path) -> None:
        file = folder / "cases" / "pricing.yaml"
        for old, new, told in (
            ("verdict: no", "verdict: maybe", ":5: error: cases[0].expect.verdict: It must be one of yes, no, review."),
            ("verdict: no", "verdict: &a no", ":5 is not valid YAML. "),
            ("name: fails", "name: no is text", ":6: error: cases[1].name: cases[0] has the same name"),
        ):
            file.write_text(self.CASES.replace(old, new))
            done = run_gate("rulebook", "test", str(file))
            assert done.returncode == 2
            assert f"{file}{told}" in done.stdout

    def test_a_rulebook_in_yaml(self, folder: Path) -> None:
        # JSON is YAML.
        (folder / "rulebooks" / "pricing.yaml").write_text(json.dumps(sample_rulebook(), indent=1))
        file = cases(folder, HOLDS, rulebook="pricing.yaml")
        assert run_gate("rulebook", "test", file).returncode == 0


class TestUnusable:
    """What cannot be run names the file and line at fault, and exits with 2."""

    def test_invalid_cases(self, folder: Path) -> None:
        file = cases(folder, HOLDS, {**FAILS, "expct": {}}, HOLDS)
        done = run_gate("rulebook", "test", file)
        line = line_of(file, "expct")
        assert (done.returncode, done.stdout) == (
            2,
            f"{file}:{line}: error: cases[1].expct: It is unknown here; check its spelling or remove it.\n",
        )
        report = reported(run_gate("rulebook", "test", file, "--json"), 2)
        assert (report["ok"], report["files"][0]["error"]["code"]) == (False, "CASES_INVALID")
        assert report["files"][0]["error"]["errors"][0]["line"] == line

    def test_a_name_that_is_there_twice(self, folder: Path) -> None:
        done = run_gate("rulebook", "test", cases(folder, HOLDS, HOLDS))
        assert done.returncode == 2
        assert "error: cases[1].name: cases[0] has the same name" in done.stdout

    def test_an_invalid_rulebook(self, folder: Path) -> None:
        body = sample_rulebook()
        body["rules"][0]["outcome"]["decision"] = "maybe"
        rulebook = write(folder / "rulebooks" / "pricing.json", body)
        file = cases(folder, HOLDS)
        at = str(folder / "rulebooks" / "pricing.json")
        done = run_gate("rulebook", "test", file)
        line = line_of(rulebook, "maybe")
        assert (done.returncode, done.stdout) == (
            2,
            f"{at}:{line}: error: rules[0].outcome.decision: It must be one of yes, no, review.\n",
        )
        (entry,) = reported(run_gate("rulebook", "test", file, "--json"), 2)["files"]
        assert (entry["file"], entry["error"]["code"]) == (file, "RULEBOOK_INVALID")
        assert (entry["error"]["errors"][0]["file"], entry["error"]["errors"][0]["line"]) == (at, line)

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ('{"rulebook": "x",\n "cases": [}', "is not valid JSON. It is not JSON: Expecting value at line 2"),
            ('{"rulebook": "x",\n "rulebook": "y"}', ":2 is not valid JSON. The field 'rulebook' appears twice"),
            ('{"a": 1,\n "b": 1e400}', ":2 is not valid JSON. The number 1e400 is too large"),
            (f"{'[' * 40}{']' * 40}", "nests deeper than 33 levels"),
            (f"[{'1,' * 1_000_001}1]", "more than 1000000 commas and brackets"),
        ],
    )
    def test_no_usable_json(self, folder: Path, content: str, told: str) -> None:
        file = folder / "cases" / "broken.json"
        file.write_text(content)
        done = run_gate("rulebook", "test", str(file))
        assert done.returncode == 2
        assert str(file) in done.stdout
        assert told in done.stdout

    def test_a_rulebook_that_is_not_there(self, folder: Path) -> None:
        file = cases(folder, HOLDS, rulebook="none.json")
        (entry,) = reported(run_gate("rulebook", "test", file, "--json"), 2)["files"]
        (fault,) = entry["error"]["errors"]
        assert (entry["error"]["code"], fault["line"], fault["field"]) == (
            "FILE_UNREADABLE",
            line_of(file, '"rulebook"'),
            "rulebook",
        )
        told = run_gate("rulebook", "test", file).stdout
        assert told.startswith(f"{file}:{fault['line']}: error: rulebook: ")
        assert told.endswith("none.json cannot be read: No such file or directory.\n")

    def test_files_that_are_too_large(self, folder: Path) -> None:
        file = folder / "cases" / "large.json"
        with file.open("wb") as opened:
            opened.truncate(16 * 1024 * 1024 + 1)
        done = run_gate("rulebook", "test", str(file))
        assert done.returncode == 2
        assert "larger than 16777216 bytes" in done.stdout


class TestMachines:
    """The report in JSON."""

    def test_it_has_every_case_with_what_was_expected_and_observed(self, folder: Path) -> None:
        file = cases(folder, HOLDS, FAILS)
        report = reported(run_gate("rulebook", "test", file, "--json"), 1)
        assert report["ok"] is False
        (entry,) = report["files"]
        assert entry["rulebook"] == {
            "file": str(folder / "rulebooks" / "pricing.json"),
            "rulebook_id": "pricing_exception",
            "version": "2026-06-11",
            "hash": content_hash(sample_rulebook()),
        }
        holds, fails = entry["cases"]
        assert (holds["held"], holds["differences"], holds["explanation"]) == (True, [], [])
        assert fails["line"] == line_of(file, FAILS["name"])
        assert fails["expected"] == FAILS["expect"]
        assert fails["observed"] == {
            "verdict": "no",
            "application_verdict": "BLOCK",
            "action": "reject_discount",
            "reason_code": "MARGIN_FLOOR_BREACH",
            "matched_rule_id": "block_below_margin_floor",
            "missing_fields": [],
            "invalid_fields": [],
        }
        assert fails["differences"][0] == {"member": "verdict", "expected": "yes", "observed": "no"}
        assert [reason["rule_id"] for reason in fails["explanation"]] == [
            "block_below_margin_floor",
            "approve_standard_exception",
        ]
        (opposing,) = fails["explanation"][1]["tree"]["children"]
        assert (opposing["text"], opposing["supports"]) == ("margin_percent gte 15", False)

    def test_warnings_have_lines_and_do_not_count(self, folder: Path) -> None:
        file = cases(folder, MISSPELT)
        report = reported(run_gate("rulebook", "test", file, "--json"), 0)
        (warning,) = report["files"][0]["warnings"]
        assert (report["ok"], warning["code"]) == (True, "unknown_fact")
        assert warning["line"] == line_of(file, "margn_percent")
        assert run_gate("rulebook", "test", file, "--json", "--strict").returncode == 1


class TestJunit:
    """The report in JUnit XML."""

    def test_a_suite_for_each_file_and_a_test_for_each_case(self, folder: Path) -> None:
        xml = folder / "junit.xml"
        bad, good = cases(folder, FAILS, HOLDS), cases(folder, MISSPELT, name="good.json")
        done = run_gate("rulebook", "test", bad, good, str(folder / "none.json"), "--junit", str(xml))
        assert done.returncode == 2
        first, second, third = suites(xml)
        assert (first.attrib["name"], first.attrib["tests"], first.attrib["failures"]) == (bad, "2", "1")
        failing, holding = first.findall("testcase")
        assert (failing.attrib["name"], failing.attrib["classname"]) == (FAILS["name"], bad)
        assert failing.attrib["line"] == str(line_of(bad, FAILS["name"]))
        failure = failing.find("failure")
        assert failure is not None
        assert failure.attrib["message"] == "not as expected: verdict, matched_rule_id"
        for line in (failure.text or "").splitlines():
            assert f"  {line}\n" in done.stdout
        assert "    - margin_percent gte 15: false, the fact is 14" in (failure.text or "")
        assert list(holding) == []
        assert (second.attrib["failures"], second.attrib["errors"]) == ("0", "0")
        assert "Did you mean 'margin_percent'?" in (second.findtext("system-out") or "")
        assert (third.attrib["tests"], third.attrib["errors"]) == ("1", "1")
        error = third.find("testcase/error")
        assert error is not None
        assert "cannot be read" in error.attrib["message"]

    def test_characters_that_xml_cannot_hold_are_escaped(self, folder: Path) -> None:
        xml = folder / "junit.xml"
        text = '\x00\x1b\ufffe<&"]]>\u20ac'
        case = {**FAILS, "name": text, "facts": {**FAILS["facts"], "discount_percent": text}}
        assert run_gate("rulebook", "test", cases(folder, case), "--junit", str(xml)).returncode == 1
        (suite,) = suites(xml)
        (found,) = suite.findall("testcase")
        assert found.attrib["name"] == '\\x00\\x1b\\ufffe<&"]]>\u20ac'

    def test_a_place_that_cannot_be_written(self, folder: Path) -> None:
        done = run_gate("rulebook", "test", cases(folder, HOLDS), "--junit", str(folder / "none" / "junit.xml"))
        assert done.returncode == 2
        assert "(FILE_UNWRITABLE)" in done.stderr


class TestMeasures:
    """Coverage, mutation score, and the cases that are missing."""

    @pytest.fixture
    def file(self, folder: Path) -> str:
        return cases(folder, HOLDS)

    def test_a_hole_is_shown_with_facts_that_close_it(self, folder: Path, file: str) -> None:
        done = run_gate("rulebook", "test", file, "--coverage")
        assert done.returncode == 0
        assert "rules matched 1 of 2" in done.stdout
        assert "  not tried: block_below_margin_floor matches\n    facts that close it: {" in done.stdout
        assert "  impossible, and not counted: margin_percent gte 15 is false in approve_standard_exc" in done.stdout

    def test_a_surviving_mutant_is_shown_with_facts_that_tell_it_apart(self, file: str) -> None:
        done = run_gate("rulebook", "test", file, "--mutation")
        assert done.returncode == 0
        assert "  survived: rules[1] approve_standard_exception: discount_percent lte 15 becomes lt 15" in done.stdout
        facts = '{"discount_percent":15,"margin_percent":15}'
        told = f"    yes (STANDARD_EXCEPTION_ALLOWED) becomes review (NO_RULE_MATCHED) for {facts}\n"
        assert told in done.stdout

    def test_what_is_left_out_fails_where_it_is_to(self, file: str) -> None:
        assert run_gate("rulebook", "test", file, "--coverage", "--strict").returncode == 1
        assert run_gate("rulebook", "test", file, "--mutation", "--strict").returncode == 1

    def test_the_missing_cases_complete_it(self, folder: Path, file: str) -> None:
        missing = str(folder / "cases" / "missing.yaml")
        done = run_gate("rulebook", "test", file, "--mutation", "--write-missing", missing)
        assert done.returncode == 0
        assert f"cases to {missing}.\n" in done.stderr
        report = reported(
            run_gate("rulebook", "test", file, missing, "--coverage", "--mutation", "--strict", "--json"), 0
        )
        (coverage,), (mutation,) = report["coverage"], report["mutation"]
        assert (coverage["percent"], coverage["holes"]) == ("100 %", [])
        assert (mutation["percent"], mutation["survived"]) == ("100 %", [])
        assert coverage["rulebook"] == mutation["rulebook"] == report["files"][0]["rulebook"]
        again = run_gate("rulebook", "test", file, "--write-missing", missing)
        assert (again.returncode, "already exists; choose a new file. (FILE_UNWRITABLE)" in again.stderr) == (2, True)
        done = run_gate("rulebook", "test", file, missing, "--write-missing", str(folder / "none.yaml"))
        assert "The cases leave no gap, so --write-missing wrote nothing.\n" in done.stderr
        assert not (folder / "none.yaml").exists()

    def test_missing_cases_are_those_of_one_rulebook(self, folder: Path, file: str) -> None:
        other = {**sample_rulebook(), "version": "2"}
        (folder / "rulebooks" / "other.json").write_text(json.dumps(other))
        second = cases(folder, HOLDS, rulebook="other.json", name="other.json")
        done = run_gate("rulebook", "test", file, second, "--write-missing", "-")
        assert (done.returncode, "needs cases of a single rulebook" in done.stderr) == (2, True)


class TestBoundaryCases:
    """gate rulebook cases."""

    def test_they_hold_as_they_are_written(self, folder: Path) -> None:
        for name in ("boundaries.yaml", "boundaries.json"):
            written = str(folder / "cases" / name)
            done = run_gate("rulebook", "cases", str(folder / "rulebooks" / "pricing.json"), "-o", written)
            assert (done.returncode, done.stdout) == (0, "")
            assert f"Wrote 15 cases to {written}.\n" in done.stderr
            done = run_gate("rulebook", "test", written, "--strict")
            assert (done.returncode, done.stdout) == (0, f"{written}: 15 of 15 cases hold\n")

    def test_each_threshold_is_tried_from_both_sides(self, folder: Path) -> None:
        done = run_gate("rulebook", "cases", str(folder / "rulebooks" / "pricing.json"), "--json")
        document = json.loads(done.stdout)
        found = {case["name"]: (case["facts"].get("margin_percent"), case["expect"]) for case in document["cases"]}
        rule = "block_below_margin_floor: margin_percent"
        assert {name: (value, expect["verdict"]) for name, (value, expect) in found.items() if rule in name} == {
            f"{rule} just below 15": (14.99, "no"),
            f"{rule} exactly 15": (15, "review"),
            f"{rule} just above 15": (15.01, "review"),
        }
        unusual = {name: expect for name, (_, expect) in found.items() if name.startswith("margin_percent ")}
        assert [expect["matched_rule_id"] for expect in unusual.values()] == [None] * 3
        assert unusual["margin_percent is absent"]["missing_fields"] == ["margin_percent"]
        assert unusual["margin_percent is null"]["invalid_fields"] == ["margin_percent"]


SHIPPED: Final = sorted(resources.path("data", "cases").iterdir())


def test_every_rulebook_of_the_product_has_cases() -> None:
    named = [re.search(r"^rulebook: \"?(.+?)\"?$", file.read_text(), re.MULTILINE) for file in SHIPPED]
    tested = {(file.parent / found[1]).resolve() for file, found in zip(SHIPPED, named, strict=True) if found}
    assert tested == {file.resolve() for file in resources.path("data", "rulebooks").rglob("*.json")}


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_the_cases_of_a_rulebook_of_the_product_hold_and_leave_nothing_out(file: Path) -> None:
    report = reported(run_gate("rulebook", "test", str(file), "--coverage", "--mutation", "--json", "--strict"), 0)
    assert report["files"][0]["warnings"] == []
    (coverage,), (mutation,) = report["coverage"], report["mutation"]
    assert (coverage["percent"], mutation["percent"], mutation["undecided"]) == ("100 %", "100 %", [])
    assert report["files"][0]["rulebook"]["hash"] in {own.rulebook.hash for own in own_rulebooks()}


class TestWhatIsKept:
    """Files that a slip of the author must not cost."""

    def test_results_are_not_written_over_anything_else(self, folder: Path) -> None:
        file = cases(folder, HOLDS)
        before = Path(file).read_text()
        done = run_gate("rulebook", "test", file, "--junit", file)
        assert (done.returncode, f"{file} exists and is not JUnit XML" in done.stderr) == (
            2,
            True,
        )
        assert Path(file).read_text() == before
        xml = str(folder / "junit.xml")
        assert [run_gate("rulebook", "test", file, "--junit", xml).returncode for _ in range(2)] == [0, 0]

    def test_the_error_of_a_file_is_shown_before_missing_cases_are_written(self, folder: Path) -> None:
        done = run_gate("rulebook", "test", str(folder / "none.yaml"), "--write-missing", str(folder / "new.yaml"))
        assert (done.returncode, "none.yaml cannot be read" in done.stdout, done.stderr) == (2, True, "")

    def test_a_rulebook_is_no_file_of_cases_and_cases_are_no_rulebook(self, folder: Path) -> None:
        done = run_gate("rulebook", "test", str(folder / "rulebooks" / "pricing.json"))
        assert (done.returncode, "This is a rulebook. Give a file of cases" in done.stdout) == (2, True)
        done = run_gate("rulebook", "check", cases(folder, HOLDS))
        assert (done.returncode, "This is a file of cases. Give its rulebook" in done.stdout) == (1, True)

    def test_cases_of_stdin_have_no_rulebook_to_name(self) -> None:
        done = run_gate("rulebook", "cases", "-", stdin=json.dumps(sample_rulebook()))
        assert (done.returncode, "give a file instead of stdin" in done.stderr) == (2, True)
