"""gate migrate check: what it prints for people and for machines, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from gate.adapters.worker import Measures, Workers
from gate.contract.published import published
from gate.instance import fixtures
from tests.support.command_line import run_gate
from tests.support.corpora import APPROVED, DEALS, LABEL, deals, expecting, manifest, refactored, write
from tests.support.rulebooks import stricter_rulebook
from tests.support.samples import sample_rulebook

STRICTER: Final = expecting(*DEALS, fields=("semantic_output", "rulebook", "attestation_hash"))


def proposed(folder: Path, rulebook: Any, **members: Any) -> str:
    """The file of a manifest that proposes a rulebook, with the corpus of deals beside it."""
    named = manifest(**{"corpus": "index.json", **members})
    write(folder, {"m.json": named, "pricing.json": rulebook, **deals()})
    return str(folder / "m.json")


def checked(*arguments: str, code: int) -> Any:
    done = run_gate("migrate", "check", *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refused(*arguments: str) -> Any:
    done = run_gate("migrate", "check", *arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    return json.loads(done.stderr)


class TestExitCodes:
    """0 passed, 1 not, 2 unusable."""

    @pytest.mark.parametrize(
        ("rulebook", "members", "plain", "allowing"),
        [
            (sample_rulebook(), {}, 0, 0),
            (refactored(), {}, 1, 1),
            (refactored(), {"expected_drift": expecting(*DEALS)}, 1, 0),
            (refactored(), {"expected_drift": expecting(*DEALS), **APPROVED}, 0, 0),
            (refactored(), {"expected_drift": expecting("deals.thin"), **APPROVED}, 1, 1),
            (refactored(), {"expected_drift": expecting(*DEALS, fields=("rulebook",)), **APPROVED}, 1, 1),
            (refactored(), {"expected_drift": STRICTER, **APPROVED}, 1, 1),
            (refactored(), {"expected_drift": expecting(*DEALS, "deals.gone"), **APPROVED}, 1, 1),
            (stricter_rulebook(), {"expected_drift": expecting(*DEALS), **APPROVED}, 1, 1),
            (stricter_rulebook(), {"expected_drift": STRICTER, **APPROVED}, 0, 0),
            (stricter_rulebook(), {"expected_drift": STRICTER}, 1, 0),
        ],
        ids=[
            "nothing drifts",
            "drift that is not expected",
            "expected drift that is not approved",
            "expected drift that is approved",
            "fewer fixtures are expected",
            "fewer fields are expected",
            "more fields are expected",
            "more fixtures are expected",
            "another outcome that is not expected",
            "another outcome that is expected and approved",
            "another outcome that is expected and not approved",
        ],
    )
    def test_the_gate_passes_or_not(
        self, tmp_path: Path, rulebook: Any, members: dict[str, Any], plain: int, allowing: int
    ) -> None:
        file = proposed(tmp_path, rulebook, **members)
        assert checked(file, code=plain)["gate_passed"] is (plain == 0)
        assert checked(file, "--allow-drift", code=allowing)["gate_passed"] is (plain == 0)

    def test_unusable_material(self, tmp_path: Path) -> None:
        file = proposed(tmp_path, {**sample_rulebook(), "rules": []})
        told = refused(file)
        assert told["error"] == "MIGRATION_INVALID"
        assert [error["field"] for error in told["errors"]] == ["candidate.rulebooks[0].path"]
        assert refused(str(tmp_path / "nowhere.json"))["error"] == "FILE_UNREADABLE"
        assert refused(file, "--corpus", str(tmp_path / "nowhere.json"))["error"] == "MIGRATION_INVALID"
        proposed(tmp_path, sample_rulebook())
        assert refused(file, "--corpus", str(tmp_path / "nowhere.json"))["error"] == "FILE_UNREADABLE"
        write(tmp_path, {"deals.json": {}})
        assert refused(file)["error"] == "CORPUS_INVALID"
        (tmp_path / "m.json").write_text("{")
        assert refused(file)["error"] == "SVC_API_JSON_INVALID"

    def test_a_person_is_told_each_fault_with_its_place(self, tmp_path: Path) -> None:
        file = proposed(tmp_path, sample_rulebook(), status="done", extra=1)
        done = run_gate("migrate", "check", file)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "gate: The manifest is unusable in 2 places. Correct each field listed. (MIGRATION_INVALID)\n"
            "  extra: It is unknown here; check its spelling or remove it.\n"
            "  status: It must be one of proposed, approved, rejected, superseded.\n"
        )

    def test_a_wrong_hash_is_told_beside_the_recomputed_one(self, tmp_path: Path) -> None:
        file = proposed(tmp_path, sample_rulebook())
        index = deals()["index.json"]
        write(tmp_path, {"deals.json": {**deals()["deals.json"], "title": "Others"}})
        stated = index["files"][0]["sha256"]
        done = run_gate("migrate", "check", file)
        assert done.returncode == 2
        assert f"  files[0].sha256: The index, of deals.json, states {stated}, but the recomputed hash" in done.stderr


class TestMachines:
    """The JSON."""

    def test_what_drifts_and_what_of_it_is_unexpected(self, tmp_path: Path) -> None:
        drift = expecting("deals.usual", "deals.floor", fields=("semantic_output", "rulebook"))
        found = checked(proposed(tmp_path, stricter_rulebook(), expected_drift=drift), code=1)
        assert list(found)[:5] == ["ok", "gate_passed", "drift", "unexpected", "errors"]
        assert (found["ok"], found["gate_passed"], found["errors"]) == (False, False, [])
        assert [of["fixture"] for of in found["drift"]] == list(DEALS)
        assert found["drift"][0]["fields"] == ["semantic_output", "rulebook", "attestation_hash"]
        assert found["unexpected"][0] == {"fixture": "deals.usual", "fields": ["attestation_hash"]}
        assert found["unexpected"][2] == {"fixture": "deals.thin", "fields": ["rulebook", "attestation_hash"]}
        assert found["counts"] == {"fixtures": 5, "concerned": 5, "unchanged": 0, "expected": 0, "unexpected": 5}
        assert (found["corpus"], found["published"]) == (LABEL, False)

    def test_the_published_corpus_where_none_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, {"m.json": manifest(), "pricing.json": stricter_rulebook()})
        found = checked(str(tmp_path / "m.json"), code=0)
        assert (found["ok"], found["gate_passed"], found["drift"]) == (True, True, [])
        assert found["counts"] == {"fixtures": 324, "concerned": 0, "unchanged": 0, "expected": 0, "unexpected": 0}
        assert found["corpus_hash"] == published()["/replay/index.json"].document["corpus_hash"]
        assert (found["corpus"], found["published"]) == ("rulebook_v1_golden_replay_v1", True)

    def test_another_corpus_that_the_user_names(self, tmp_path: Path) -> None:
        write(tmp_path / "m", {"m.json": manifest(), "pricing.json": stricter_rulebook()})
        write(tmp_path / "corpus", deals())
        index = str(tmp_path / "corpus" / "index.json")
        assert checked(str(tmp_path / "m" / "m.json"), "--corpus", index, code=1)["counts"]["concerned"] == 5


def transfer(**members: Any) -> Any:
    """The next version of a published rulebook over the facts of an adapter."""
    document = published()["/replay/adapters.json"].document
    (body,) = [body for body in document["rulebooks"] if body["rulebook_id"] == "golden.adapter_transfer"]
    return {**body, "version": "2", **members}


SOLANA: Final = [case for case in published()["/replay/adapters.json"].document["cases"] if "solana" in case["case_id"]]


class TestAdapters:
    """Fixtures with adapters, which run in real workers."""

    def test_they_are_decided_over_the_facts_that_the_adapter_makes(self, tmp_path: Path) -> None:
        candidate = {"rulebooks": [{"rulebook_id": "golden.adapter_transfer", "path": "t.json"}]}
        write(tmp_path, {"m.json": manifest(candidate=candidate), "t.json": transfer()})
        found = checked(str(tmp_path / "m.json"), code=1)
        fields = ["rulebook", "attestation_hash"]
        assert found["drift"] == [{"fixture": case["case_id"], "fields": fields} for case in SOLANA]

    def test_the_adapters_and_the_evaluator_of_this_release_replay_the_published_corpus(self, tmp_path: Path) -> None:
        names = ("adapter_id", "version", "manifest_hash")
        candidate = {
            "evaluator_version": "svc_rulebook_v1",
            "adapters": [{name: SOLANA[0]["adapter"][name] for name in names}],
        }
        write(tmp_path, {"m.json": manifest(candidate=candidate, compatibility_class="mixed")})
        found = checked(str(tmp_path / "m.json"), code=0)
        assert (found["ok"], found["counts"]["unchanged"]) == (True, 324)

    def test_where_no_worker_can_run_nothing_is_said_about_the_candidate(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Nowhere(Workers):
            def measures(self, *, wait: float = 0) -> Measures:
                return Measures((), "the kernel has no seccomp")

        monkeypatch.setattr(fixtures, "Workers", Nowhere)
        candidate = {"rulebooks": [{"rulebook_id": "golden.adapter_transfer", "path": "t.json"}]}
        write(tmp_path, {"m.json": manifest(candidate=candidate), "t.json": transfer()})
        told = refused(str(tmp_path / "m.json"))
        assert told["error"] == "ADAPTERS_UNAVAILABLE"
        assert "the kernel has no seccomp" in told["message"]


def lines(*arguments: str) -> Sequence[str]:
    return run_gate("migrate", "check", *arguments).stdout.splitlines()


class TestPeople:
    """The lines for people."""

    def test_nothing_drifts(self, tmp_path: Path) -> None:
        assert lines(proposed(tmp_path, sample_rulebook())) == [
            f"gate passed: nothing drifts, 5 of 5 fixtures of {LABEL} concerned"
        ]

    def test_a_corpus_that_shows_nothing_about_the_candidate(self, tmp_path: Path) -> None:
        write(tmp_path, {"m.json": manifest(), "pricing.json": stricter_rulebook()})
        told = lines(str(tmp_path / "m.json"))
        assert told[0] == "gate passed: nothing drifts, 0 of 324 fixtures of rulebook_v1_golden_replay_v1 concerned"
        assert told[1].startswith("No fixture has a rulebook or an adapter of the candidate, so this shows nothing")

    def test_each_drift_names_its_fields_and_the_rules_before_and_now(self, tmp_path: Path) -> None:
        told = lines(proposed(tmp_path, stricter_rulebook(), expected_drift=expecting("deals.thin", "deals.large")))
        before, now = "yes by the rule approve_standard_exception", "now no by the rule block_below_margin_floor"
        meaning = "semantic_output, rulebook, attestation_hash"
        assert told[:5] == [
            f"deals.usual: {meaning}; {before}, {now} (unexpected)",
            f"deals.floor: {meaning}; {before}, {now} (unexpected)",
            "deals.thin: rulebook, attestation_hash; no by the rule block_below_margin_floor, unchanged (expected)",
            "deals.large: rulebook, attestation_hash; review by the default outcome, unchanged (expected)",
            "deals.unknown: rulebook, attestation_hash; review by missing or invalid input, unchanged (unexpected)",
        ]
        assert told[5] == f"NOT PASSED: 3 fixtures drift unexpectedly, 5 of 5 fixtures of {LABEL} concerned"
        assert told[6].startswith("Correct the candidate. If the drift is intended, add the fixtures and fields to")

    def test_another_outcome_of_the_same_rule_is_told(self, tmp_path: Path) -> None:
        body = refactored()
        body["rules"][0]["outcome"] = {**body["rules"][0]["outcome"], "reason_code": "THIN", "action": "wait"}
        told = lines(proposed(tmp_path, body, expected_drift=expecting(*DEALS)))
        assert told[2] == (
            "deals.thin: semantic_output, rulebook, attestation_hash; no by the rule block_below_margin_floor, "
            'now with action "wait", reason_code "THIN" (unexpected: semantic_output)'
        )

    def test_drift_that_waits_for_approval(self, tmp_path: Path) -> None:
        file = proposed(tmp_path, refactored(), expected_drift=expecting(*DEALS))
        told = lines(file)
        assert told[5] == "NOT PASSED: 5 fixtures drift exactly as expected, but the drift is not approved"
        assert told[6].startswith("Have the drift approved.")
        assert told[7] == "With --allow-drift, the command succeeds until then."
        assert lines(file, "--allow-drift")[7].startswith(
            "With --allow-drift, drift that is exactly as expected does not"
        )

    def test_drift_that_is_approved(self, tmp_path: Path) -> None:
        told = lines(proposed(tmp_path, refactored(), expected_drift=expecting(*DEALS), **APPROVED))
        assert told[5:] == [f"gate passed: 5 fixtures drift exactly as expected, 5 of 5 fixtures of {LABEL} concerned"]

    def test_expected_drift_that_did_not_happen(self, tmp_path: Path) -> None:
        fields = ("rulebook", "attestation_hash", "semantic_output")
        told = lines(proposed(tmp_path, refactored(), expected_drift=expecting(*DEALS, fields=fields)))
        assert told[5:] == [
            "The expected field semantic_output drifted in no fixture. Remove it from expected_drift.fields.",
            f"NOT PASSED: the drift differs from expected_drift, 5 of 5 fixtures of {LABEL} concerned",
            "Correct the candidate or the manifest, and check again.",
        ]

    def test_what_did_not_happen_is_told_where_nothing_drifts_and_the_gate_passes(self, tmp_path: Path) -> None:
        told = lines(
            proposed(tmp_path, sample_rulebook(), expected_drift=expecting("deals.thin", fields=("rulebook",)))
        )
        assert told == [
            "The expected fixture deals.thin did not drift. Remove it from expected_drift.fixtures.",
            "The expected field rulebook drifted in no fixture. Remove it from expected_drift.fields.",
            f"gate passed: nothing drifts, 5 of 5 fixtures of {LABEL} concerned",
        ]

    def test_only_so_many_fixtures_are_listed_as_anyone_reads(self, tmp_path: Path) -> None:
        documents = published()["/replay/operators.json"].document["rulebooks"]
        bodies = {body["rulebook_id"]: {**body, "version": "9"} for body in documents}
        concerned = [
            case["case_id"]
            for case in published()["/replay/operators.json"].document["cases"]
            if case["rulebook"]["rulebook_id"] in bodies
        ]
        candidate = {"rulebooks": [{"rulebook_id": name, "path": f"{name}.json"} for name in bodies]}
        files = {f"{name}.json": body for name, body in bodies.items()}
        write(tmp_path, {"m.json": manifest(candidate=candidate), **files})
        told = lines(str(tmp_path / "m.json"))
        assert len(concerned) > 100
        assert told[100] == f"... and {len(concerned) - 100} more fixtures; --json lists all of them."

    def test_only_so_many_faults_are_listed_as_anyone_reads(self, tmp_path: Path) -> None:
        unknown = [f"deals.n{number}" for number in range(120)]
        told = lines(proposed(tmp_path, refactored(), expected_drift=expecting(*DEALS, *unknown)))
        assert told[5].startswith("The expected fixture deals.n0 was not among those evaluated.")
        assert told[105] == "... and 20 more faults; --json lists all of them."

    def test_what_comes_from_files_cannot_steer_a_terminal(self, tmp_path: Path) -> None:
        file = proposed(tmp_path, sample_rulebook(), status="\u001b[31m", summary="x")
        done = run_gate("migrate", "check", str(tmp_path / "\u001b[2J.json"))
        assert "\u001b" not in done.stderr
        assert "\u001b" not in run_gate("migrate", "check", file).stderr

    def test_the_help_says_when_the_gate_passes(self) -> None:
        told = " ".join(run_gate("migrate", "check", "--help").stdout.split())
        assert "exactly the fixtures and fields in `expected_drift` drift" in told
        assert "Exit codes: 0 passed" in told
        for option in ("--corpus", "--allow-drift", "--json", "--home", "--database-url"):
            assert option in told
