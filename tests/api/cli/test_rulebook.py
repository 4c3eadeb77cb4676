"""gate rulebook: files are checked with their lines, explained as trees, stripped of comments, and registered."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient

from api.cli.rulebook import registered
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.backup import make_backup, restore_backup
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import Scope
from gate.rulebooks.rulebook import load
from tests.api.deciding import decide
from tests.support.command_line import run_gate
from tests.support.migrations import desk
from tests.support.samples import sample_request, sample_rulebook

SAMPLE: Final = str(resources.path("data", "rulebooks", "pricing_exception.json"))
ORDERS: Final = str(resources.path("data", "rulebooks", "refund_order_policy.json"))
HASH: Final = "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee"


def printed(done: CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def written(tmp_path: Path, body: Any, name: str = "rulebook.json") -> str:
    file = tmp_path / name
    file.write_text(json.dumps(body, indent=1))
    return str(file)


def line_of(file: str, text: str) -> int:
    """The only line of a file that has a text."""
    (line,) = [number for number, line in enumerate(Path(file).read_text().splitlines(), 1) if text in line]
    return line


def misspelt() -> Any:
    body = sample_rulebook()
    body["rules"][0]["condition"]["field"] = "margin_prcent"
    return body


class TestCheck:
    """gate rulebook check."""

    def test_a_valid_rulebook(self) -> None:
        checked = printed(run_gate("rulebook", "check", SAMPLE, "--json"))
        assert checked == {"valid": True, "hash": HASH, "errors": [], "warnings": []}
        assert "valid rulebook: pricing_exception" in run_gate("rulebook", "check", SAMPLE, "--strict").stdout

    def test_an_error_names_file_and_line(self, tmp_path: Path) -> None:
        body = sample_rulebook()
        body["rules"][1]["outcome"]["decision"] = "maybe"
        del body["rules"][1]["outcome"]["reason_code"]
        file = written(tmp_path, body)
        done = run_gate("rulebook", "check", file)
        assert done.returncode == 1
        outcome, decision = Path(file).read_text().splitlines().index('   "outcome": {', 40) + 1, line_of(file, "maybe")
        assert [line.partition(": It")[0] for line in done.stdout.splitlines()] == [
            f"{file}:{outcome}: error: rules[1].outcome.reason_code",
            f"{file}:{decision}: error: rules[1].outcome.decision",
        ]
        shown = printed(run_gate("rulebook", "check", file, "--json"), code=1)
        assert [(error["line"], error["field"]) for error in shown["errors"]] == [
            (outcome, "rules[1].outcome.reason_code"),
            (decision, "rules[1].outcome.decision"),
        ]
        for command in ("hash", "explain", "convert"):
            done = run_gate("rulebook", command, file)
            assert (done.returncode, f"{file}:{decision}: error" in done.stdout) == (1, True)

    def test_json_that_is_refused_names_the_line_too(self, tmp_path: Path) -> None:
        file = tmp_path / "rulebook.json"
        text = json.dumps(sample_rulebook(), indent=1)
        file.write_text(text.replace('"priority": 50,', '"priority": 50,\n"priority": 50,', 1))
        twice = 1 + file.read_text().splitlines().index('"priority": 50,')
        done = run_gate("rulebook", "check", str(file))
        assert (done.returncode, f"{file}:{twice} is not valid JSON" in done.stderr) == (2, True), done.stderr
        file.write_text(text.replace('"priority": 50,', '"priority": 10'))
        done = run_gate("rulebook", "check", str(file))
        assert (done.returncode, "at line" in done.stderr, f"{file} is no" in done.stderr) == (2, True, True)

    def test_warnings_name_file_and_line_and_fail_only_if_strict(self, tmp_path: Path) -> None:
        file = written(tmp_path, misspelt())
        line = line_of(file, "margin_prcent")
        done = run_gate("rulebook", "check", file)
        assert (done.returncode, "is a valid rulebook with 1 warning:" in done.stdout) == (0, True)
        assert f"{file}:{line}: warning: rules[0].condition.field: 'margin_prcent'" in done.stdout
        assert "Did you mean 'margin_percent'?" in done.stdout
        strict = run_gate("rulebook", "check", "--strict", file)
        assert strict.returncode == 1
        assert strict.stdout == f"{done.stdout}The warnings count as errors, because of --strict.\n"
        (warning,) = printed(run_gate("rulebook", "check", file, "--strict", "--json"), code=1)["warnings"]
        assert (warning["line"], warning["code"]) == (line, "undeclared_field")

    def test_an_adapter_says_which_facts_there_are(self) -> None:
        for arguments in ([], ["--adapter", "refund_facts"], ["--adapter", "refund_facts@1.0.0"]):
            assert run_gate("rulebook", "check", ORDERS, "--strict", *arguments).returncode == 0
        shown = printed(run_gate("rulebook", "check", SAMPLE, "--adapter", "refund_facts", "--json"))
        assert {warning["code"] for warning in shown["warnings"]} == {"not_made_by_adapter"}
        done = run_gate("rulebook", "check", SAMPLE, "--adapter", "nobody", "--json")
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "ADAPTER_UNKNOWN")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["check", "/nowhere.json"],
            ["check", __file__],
            ["explain", SAMPLE, "--facts", "/nowhere.json"],
            ["explain", SAMPLE, "--facts", "-"],
        ],
    )
    def test_unusable_files_exit_with_2(self, arguments: list[str]) -> None:
        done = run_gate("rulebook", *arguments, stdin="[1, 2]")
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr

    def test_a_file_that_no_request_could_carry_is_refused(self) -> None:
        body = sample_rulebook()
        value: Any = 1
        for _ in range(32):
            value = [value]
        body["rules"][0]["condition"] = {"field": "margin_percent", "operator": "eq", "value": value}
        done = run_gate("rulebook", "check", "-", stdin=json.dumps(body))
        assert (done.returncode, "nests deeper" in done.stderr) == (2, True)


class TestComments:
    """$schema and description in files."""

    @pytest.fixture
    def commented(self, tmp_path: Path) -> str:
        """The sample rulebook with comments."""
        body = {"$schema": "x.json", "description": "Who may give discounts.\nSee the wiki.", **sample_rulebook()}
        body["rules"][0]["description"] = "Never below the floor."
        body["rules"][0]["outcome"]["description"] = "Tell the owner."
        body["default_outcome"]["description"] = "Sales decides."
        return written(tmp_path, body)

    def test_they_change_no_hash_and_are_taken_out(self, commented: str) -> None:
        assert printed(run_gate("rulebook", "check", commented, "--strict", "--json"))["hash"] == HASH
        assert run_gate("rulebook", "hash", commented).stdout.strip() == HASH
        converted = printed(run_gate("rulebook", "convert", commented))
        assert (converted, content_hash(converted)) == (sample_rulebook(), HASH)

    def test_explanations_show_them_and_say_that_they_are_not_authenticated(self, commented: str) -> None:
        shown = run_gate("rulebook", "explain", commented).stdout
        for comment in ("Who may give discounts.", "Never below the floor.", "Tell the owner.", "Sales decides."):
            assert f"description (not authenticated): {comment}" in shown
        assert "\n  See the wiki.\n" in shown
        facts = json.dumps({"discount_percent": 5, "margin_percent": 3})
        told = run_gate("rulebook", "explain", commented, "--facts", "-", stdin=facts).stdout
        assert "description (not authenticated): Never below the floor." in told
        for arguments, stdin in (([], ""), (["--facts", "-"], facts)):
            shown = printed(run_gate("rulebook", "explain", commented, *arguments, "--json", stdin=stdin))
            assert (shown["annotations"]["authenticated"], shown["annotations"]["schema"]) == (False, "x.json")
        plain = printed(run_gate("rulebook", "explain", SAMPLE, "--json"))
        assert "annotations" not in plain


class TestExplain:
    """gate rulebook explain."""

    def test_conditions_are_trees(self) -> None:
        shown = run_gate("rulebook", "explain", SAMPLE).stdout
        assert (
            "approve_standard_exception  (priority 50)\n"
            "  when all\n"
            "    discount_percent lte 15\n"
            "    margin_percent gte 15\n"
            "  then yes: APPROVE, approve_discount, STANDARD_EXCEPTION_ALLOWED\n"
        ) in shown
        places = [shown.index(name) for name in ("block_below_margin_floor", "approve_standard", "no rule matches")]
        assert places == sorted(places)
        assert "needs discount_percent, margin_percent" in shown

    def test_facts_show_every_result_with_its_reason(self) -> None:
        def explained(facts: Any, *options: str) -> str:
            return run_gate("rulebook", "explain", SAMPLE, "--facts", "-", *options, stdin=json.dumps(facts)).stdout

        told = explained({"discount_percent": 30, "margin_percent": 22})
        assert "- all: false, 1 of 2 inside is false" in told
        assert "- discount_percent lte 15: false, the fact is 30" in told
        assert "+ margin_percent gte 15: true, the fact is 22" in told
        assert "no rule matched, so the default outcome holds" in told
        told = explained({"margin_percent": "22"})
        assert "discount_percent is required but missing" in told
        assert "margin_percent must be of type number, but is of type string" in told
        shown = json.loads(explained({"discount_percent": 30, "margin_percent": 22}, "--json"))
        assert (shown["verdict"], shown["reason_code"], shown["evaluation"]["matched"]) == (
            "review",
            "NO_RULE_MATCHED",
            False,
        )
        assert shown["rules"][1]["tree"]["reason"] == "1 of 2 inside is false"

    def test_the_smallest_changes_that_flip_the_verdict_are_told(self) -> None:
        facts = json.dumps({"discount_percent": 30, "margin_percent": 22})
        arguments = ("rulebook", "explain", SAMPLE, "--facts", "-", "--flip")
        told = run_gate(*arguments, "any", stdin=facts).stdout.splitlines()
        assert told[-3:] == [
            "  the smallest changes that give another verdict:",
            "    margin_percent 22 -> below 15 (such as 14) gives no (MARGIN_FLOOR_BREACH)",
            "    discount_percent 30 -> 15 gives yes (STANDARD_EXCEPTION_ALLOWED)",
        ]
        (flip,) = printed(run_gate(*arguments, "yes", "--json", stdin=facts))["flips"]
        assert (flip["facts"], flip["result"]["decision"]) == ({"discount_percent": 15, "margin_percent": 22}, "yes")
        told = run_gate(*arguments, "review", stdin=facts).stdout.splitlines()
        assert told[-1] == "  the verdict is already review"
        done = run_gate("rulebook", "explain", SAMPLE, "--flip", "any")
        assert (done.returncode, "--facts" in done.stderr) == (2, True)

    def test_a_misspelt_fact_is_told(self, tmp_path: Path) -> None:
        facts = written(tmp_path, {"discount_percent": 1, "margn_percent": 22}, "facts.json")
        told = run_gate("rulebook", "explain", SAMPLE, "--facts", facts).stdout.splitlines()[-1]
        assert told.startswith(f"{facts}:{line_of(facts, 'margn_percent')}: warning: margn_percent: ")
        assert told.endswith("so this fact changes nothing. Did you mean 'margin_percent'?")
        (warning,) = printed(run_gate("rulebook", "explain", SAMPLE, "--facts", facts, "--json"))["warnings"]
        assert (warning["field"], warning["code"]) == ("margn_percent", "unknown_fact")

    def test_no_sign_contradicts_the_verdict_below_a_not(self, tmp_path: Path) -> None:
        body = sample_rulebook()
        test = {"field": "tags", "operator": "contains", "value": "fraud"}
        body["rules"] = [{**body["rules"][1], "condition": {"not": test}}]
        rulebook = written(tmp_path, body)
        facts = written(tmp_path, {"discount_percent": 1, "margin_percent": 50, "tags": ["vip"]}, "facts.json")
        assert "  when not\n    tags contains" in run_gate("rulebook", "explain", rulebook).stdout
        verdict, _, *lines, legend = run_gate("rulebook", "explain", rulebook, "--facts", facts).stdout.splitlines()
        assert verdict.startswith("yes: APPROVE")
        assert [line.strip() for line in lines] == [
            "+ not: true, the condition inside is false",
            '+ tags contains "fraud": false, the fact is ["vip"]',
        ]
        assert legend.strip() == "+ supports a match, - opposes it; inside `not`, false supports it"


class TestRegister:
    """gate rulebook register."""

    @pytest.fixture
    def register(self, home: Path, instance: Instance, scope: Scope) -> Any:
        """Registers a file in the scope, while the instance is open."""

        def run(*arguments: str, stdin: str = "") -> CompletedProcess[str]:
            return run_gate(
                "rulebook", "register", *arguments, "--scope", scope.name, "--home", str(home), "--json", stdin=stdin
            )

        return run

    @pytest.fixture
    def limited(self, instance: Instance, scope: Scope) -> str:
        """A key that may decide and read, and may not register."""
        return instance.ledger.directory.create_key(scope, ("decide", "read"), None, utc_now())[0]

    def test_a_key_without_register_decides_with_what_the_operator_registered(
        self, register: Any, client: FlaskClient, limited: str
    ) -> None:
        assert decide(client, limited, sample_request()).status_code == 403
        shown = printed(register(SAMPLE))
        assert (shown["registered"], shown["created"], shown["warnings"]) == (True, True, [])
        record = decide(client, limited, sample_request())
        assert "x-rulebook-warnings" not in record.headers
        assert record.get_json()["rulebook_registry"] == shown["rulebook"]
        again = printed(register(SAMPLE))
        assert (again["created"], again["rulebook"]) == (False, shown["rulebook"])

    def test_the_first_body_stays(self, register: Any, instance: Instance, scope: Scope, tmp_path: Path) -> None:
        first = printed(register(SAMPLE))["rulebook"]
        body = sample_rulebook()
        body["rules"][0]["condition"]["value"] = 1
        done = register(written(tmp_path, body))
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "RULEBOOK_VERSION_CONFLICT")
        found = instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2026-06-11")
        assert found is not None
        assert found.metadata == first

    def test_warnings_are_told_and_keep_a_strict_one_from_registering(
        self, register: Any, instance: Instance, scope: Scope, tmp_path: Path
    ) -> None:
        file = written(tmp_path, misspelt())
        shown = printed(register(file, "--strict"), code=1)
        assert (shown["registered"], shown["warnings"][0]["code"]) == (False, "undeclared_field")
        assert instance.ledger.rulebooks.versions(scope.scope_id, "pricing_exception", limit=1) == []
        shown = printed(register(file))
        assert (shown["created"], shown["warnings"][0]["line"]) == (True, line_of(file, "margin_prcent"))
        told = run_gate("rulebook", "register", file, "--scope", scope.name, "--home", str(instance.settings.home))
        assert f"{file}:{line_of(file, 'margin_prcent')}: warning" in told.stdout

    def test_an_adapter_binds_it(self, register: Any, tmp_path: Path) -> None:
        bound = printed(register(ORDERS, "--adapter", "refund_facts"))["rulebook"]
        assert bound["adapter_dependency"]["adapter_id"] == "refund_facts"
        done = register(ORDERS)
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "RULEBOOK_VERSION_CONFLICT")

    def test_descriptions_are_kept_and_replaced_beside_it(
        self, register: Any, client: FlaskClient, limited: str, tmp_path: Path
    ) -> None:
        def metadata() -> Any:
            query = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
            answer = client.get("/api/decision/rulebooks", query_string=query, headers={"x-api-key": limited})
            jsonschema.Draft202012Validator(resources.schema("rulebook-metadata")).validate(answer.get_json())
            return answer.get_json()

        registered = printed(register(SAMPLE))["rulebook"]
        assert metadata() == {"ok": True, "rulebook": registered, "warnings": []}
        body = {"description": "First.", **sample_rulebook()}
        assert printed(register(written(tmp_path, body)))["annotations_changed"] is True
        body["description"] = "Second."
        body["rules"][0]["outcome"]["description"] = "Why."
        assert printed(register(written(tmp_path, body)))["annotations_changed"] is True
        assert printed(register(written(tmp_path, body)))["annotations_changed"] is False
        assert printed(register(SAMPLE))["annotations_changed"] is False
        shown = metadata()
        assert shown["rulebook"] == registered
        assert shown["annotations"] == {
            "authenticated": False,
            "description": "Second.",
            "rules": {"block_below_margin_floor": {"outcome": "Why."}},
        }

    def test_a_backup_keeps_what_was_registered(
        self, register: Any, instance: Instance, scope: Scope, tmp_path: Path
    ) -> None:
        printed(register(written(tmp_path, {"description": "Kept.", **sample_rulebook()})))
        make_backup(instance, tmp_path / "backup", utc_now())
        restore_backup(tmp_path / "backup", tmp_path / "restored", None, utc_now())
        with closing(open_instance(load_settings(tmp_path / "restored"))) as restored:
            assert restored.ledger.rulebooks.annotations(scope.scope_id, HASH) == {"description": "Kept."}
            assert restored.ledger.rulebooks.find(scope.scope_id, HASH) is not None

    def test_an_unknown_scope_and_an_invalid_rulebook_register_nothing(
        self, register: Any, home: Path, instance: Instance, scope: Scope
    ) -> None:
        done = run_gate("rulebook", "register", SAMPLE, "--scope", "nobody", "--home", str(home), "--json")
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "SCOPE_UNKNOWN")
        done = register("-", stdin=json.dumps(sample_rulebook() | {"version": 7}))
        assert printed(done, code=1)["errors"][0]["field"] == "version"
        assert instance.ledger.rulebooks.versions(scope.scope_id, "pricing_exception", limit=1) == []


class TestYaml:
    """Rulebooks and facts in YAML, and converting them."""

    @pytest.fixture
    def authored(self, tmp_path: Path) -> str:
        """The sample rulebook in YAML, with a comment."""
        file = tmp_path / "pricing.yaml"
        converted = run_gate("rulebook", "convert", written(tmp_path, sample_rulebook()), "--to", "yaml")
        file.write_text(f"# Sales owns it.\n{converted.stdout}")
        return str(file)

    def test_both_forms_have_one_hash(self, authored: str) -> None:
        assert run_gate("rulebook", "hash", authored).stdout.strip() == HASH
        assert run_gate("rulebook", "hash", "-", stdin=Path(authored).read_text()).stdout.strip() == HASH
        assert printed(run_gate("rulebook", "convert", authored)) == sample_rulebook()

    def test_comments_stay_in_yaml_and_are_named_where_json_has_none(self, authored: str) -> None:
        assert run_gate("rulebook", "convert", authored, "--to", "yaml").stdout == Path(authored).read_text()
        done = run_gate("rulebook", "convert", authored, "--to", "json")
        assert json.loads(done.stdout) == sample_rulebook()
        assert done.stderr == f"{authored}:1: JSON has no comments, so 1 comment is left out.\n"

    def test_errors_name_their_line(self, authored: str) -> None:
        file = Path(authored)
        file.write_text(file.read_text().replace("operator: lt,", "operator: below,"))
        (line,) = [number for number, text in enumerate(file.read_text().splitlines(), 1) if "below," in text]
        done = run_gate("rulebook", "check", authored)
        assert (done.returncode, f"{authored}:{line}: error: rules[0].condition.operator: " in done.stdout) == (1, True)
        file.write_text("a: 1\na: 2\n")
        done = run_gate("rulebook", "check", authored)
        assert done.returncode == 2
        assert f"{authored}:2 is not valid YAML. The field 'a' appears twice" in done.stderr

    def test_a_comment_that_cannot_be_kept_is_named(self, authored: str) -> None:
        file = Path(authored)
        file.write_text(file.read_text().replace("{field: margin_percent,", "{field: margin_percent, # lost\n     ", 1))
        done = run_gate("rulebook", "convert", authored, "--to", "yaml")
        assert done.returncode == 2
        assert "cannot be written as YAML. The comment would be lost" in done.stderr

    def test_facts_may_be_yaml(self, authored: str, tmp_path: Path) -> None:
        facts = tmp_path / "facts.yaml"
        facts.write_text("discount_percent: 10\nmargin_percent: 22\n")
        assert run_gate("rulebook", "explain", authored, "--facts", str(facts)).stdout.startswith("yes: APPROVE")


class TestShow:
    """gate rulebook show."""

    @pytest.fixture
    def show(self, home: Path, instance: Instance, scope: Scope) -> Any:
        """Shows a rulebook of the scope, in which two versions are registered."""
        for version in ("2026-06-11", "2026-09-01"):
            rulebook = load({**sample_rulebook(), "version": version})
            instance.gate().sources.register_file(scope, rulebook, {}, None)

        def run(*arguments: str) -> CompletedProcess[str]:
            return run_gate("rulebook", "show", *arguments, "--scope", scope.name, "--home", str(home), "--json")

        return run

    def test_a_version_is_shown_as_records_cite_it(self, show: Any) -> None:
        assert printed(show("pricing_exception", "--version", "2026-06-11")) == sample_rulebook()

    def test_the_file_has_the_hash_of_the_version_and_replaces_no_other(self, show: Any, tmp_path: Path) -> None:
        file = str(tmp_path / "back.json")
        told = printed(show("pricing_exception", "--version", "2026-09-01", "--output", file))
        assert printed(run_gate("rulebook", "hash", file, "--json"))["hash"] == told["hash"]
        again = show("pricing_exception", "--version", "2026-06-11", "--output", file)
        assert (again.returncode, json.loads(again.stderr)["error"]) == (2, "RULEBOOK_EXISTS")
        nowhere = show("pricing_exception", "--version", "2026-06-11", "--output", str(tmp_path / "no" / "b.json"))
        assert (nowhere.returncode, json.loads(nowhere.stderr)["error"]) == (2, "RULEBOOK_UNWRITABLE")
        assert json.loads(Path(file).read_text())["version"] == "2026-09-01"

    def test_without_a_version_it_is_the_one_that_the_route_leads_to(
        self, show: Any, instance: Instance, scope: Scope
    ) -> None:
        done = show("pricing_exception")
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "RULEBOOK_REF_UNKNOWN")
        message = json.loads(done.stderr)["message"]
        assert "give a version with --version. Registered versions, newest first: 2026-09-01, 2026-06-11." in message
        desk(instance, scope).route("pricing.first", load(sample_rulebook()))
        assert printed(show("pricing_exception")) == sample_rulebook()

    def test_a_version_that_is_not_registered_is_refused(self, show: Any) -> None:
        done = show("pricing_exception", "--version", "1")
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "RULEBOOK_REF_UNKNOWN")


class TestList:
    """gate rulebook list."""

    @pytest.fixture
    def listed(self, home: Path, scope: Scope) -> Any:
        """Lists the rulebooks of the scope."""

        def run(*arguments: str) -> CompletedProcess[str]:
            return run_gate("rulebook", "list", "--scope", scope.name, "--home", str(home), *arguments)

        return run

    def test_it_shows_each_version_the_latest_first_and_where_a_route_leads(
        self, listed: Any, instance: Instance, scope: Scope
    ) -> None:
        routed = load(sample_rulebook())
        desk(instance, scope).route("pricing.first", routed)
        for rulebook_id, version in (("pricing_exception", "2026-09-01"), ("another", "1")):
            rulebook = load({**sample_rulebook(), "rulebook_id": rulebook_id, "version": version})
            instance.gate().sources.register_file(scope, rulebook, {}, None)
        found = printed(listed("--json"))
        shown = [(of["rulebook_id"], of["version"], of["routed"]) for of in found["rulebooks"]]
        assert shown == [
            ("another", "1", False),
            ("pricing_exception", "2026-09-01", False),
            ("pricing_exception", "2026-06-11", True),
        ]
        assert (found["rulebooks"][-1]["hash"], found["more"]) == (routed.hash, False)
        lines = [line for line in listed().stdout.splitlines() if "active" in line]
        assert [line.split()[:2] for line in lines] == [["pricing_exception", "2026-06-11"]]

    def test_it_says_where_it_stops(
        self, listed: Any, instance: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(3):
            rulebook = load({**sample_rulebook(), "version": str(number)})
            instance.gate().sources.register_file(scope, rulebook, {}, None)
        monkeypatch.setattr(registered, "_LISTED", 2)
        done = listed()
        assert "Only the latest 2 are listed; there are more." in done.stderr
        assert f"gate rulebook show RULEBOOK_ID --scope {scope.name}" in done.stderr

    def test_a_scope_without_rulebooks_has_an_empty_list(self, listed: Any) -> None:
        assert printed(listed("--json")) == {"rulebooks": [], "more": False}
