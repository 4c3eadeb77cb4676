"""The examples of the policy patterns, run as they are served, against a real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from gate.decisions.stored import stored_record
from gate.rulebooks.patterns import patterns
from tests.end_to_end.site import Site
from tests.end_to_end.support import free_port

PATTERNS: Final = [pattern["pattern_id"] for pattern in patterns()]
COMMANDS: Final = {"curl": ["bash", "-c"], "python": [sys.executable, "-c"]}
JSON: Final = {"content-type": "application/json"}
EXAMPLES: Final = [(pattern_id, language) for pattern_id in PATTERNS for language in COMMANDS]

pattern_examples = pytest.mark.parametrize(("pattern_id", "language"), EXAMPLES)


class Service:
    """A server, the patterns it serves, and a key of a scope that has registered nothing."""

    def __init__(self, site: Site, url: str) -> None:
        """Reads the patterns as anyone can."""
        self.url = url
        self.site = site
        self.key = site.create_key("acme")
        answer = httpx.get(f"{url}/api/decision/policy-patterns", trust_env=False)
        self.patterns: dict[str, Any] = {pattern["pattern_id"]: pattern for pattern in answer.json()["patterns"]}

    def run(
        self, example: str, language: str, *, url: str | None = None, key: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs an example with nothing in its environment that it does not ask for."""
        return subprocess.run(
            [*COMMANDS[language], example],
            cwd=self.site.home.parent,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GATE_URL": url or self.url, "GATE_API_KEY": key or self.key},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def example(self, pattern_id: str, language: str) -> str:
        """The text of an example."""
        text: str = self.patterns[pattern_id]["sdk_examples"][language]
        return text


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for all."""
    site = Site(tmp_path_factory.mktemp("patterns") / "home", None)
    with site.serving(workers=1) as server:
        yield Service(site, server.url)


@pattern_examples
def test_an_example_runs_as_it_is_and_may_act(service: Service, pattern_id: str, language: str) -> None:
    policy_id = service.patterns[pattern_id]["policy_id"]
    done = service.run(service.example(pattern_id, language), language)
    assert done.returncode == 0, done.stderr
    # Whichever of the two came first, the other was answered with its record and its receipt.
    entries = [entry for entry in service.site.entries("acme") if entry.link["policy_id"] == policy_id]
    records = [stored_record(entry) for entry in entries if entry.link["entry_type"] == "decision"]
    (record,) = [made for made in records if made["verdict"] == "yes"]
    (receipt,) = [json.loads(entry.body) for entry in entries if entry.link["entry_type"] == "execution"]
    assert receipt["decision_id"] == record["decision_id"]
    assert (receipt["execution_status"], receipt["action_binding_match"], receipt["flags"]) == ("executed", True, [])
    assert "yes" in done.stdout
    assert record["reason_code"] in done.stdout
    # What it stored before it acted can be verified.
    stored = (service.site.home.parent / f"{record['decision_id']}.json").read_bytes()
    verified = httpx.post(f"{service.url}/api/decision/verify", content=stored, headers=JSON, trust_env=False)
    assert verified.json()["verified"] is True


@pattern_examples
def test_an_example_holds_the_action_where_the_gate_does_not_say_yes(
    service: Service, pattern_id: str, language: str
) -> None:
    # Another action, of which the first fact is not known.
    request = service.patterns[pattern_id]["decision_request_template"]
    context = request["context"]
    other = f":{pattern_id} {language}"
    example = service.example(pattern_id, language).replace(f":{context['source_record_id']}", other)
    if "adapter" in request:
        # An input has no unknown member: the amount is not known where the claim names none.
        asked = re.sub(r'"amount_minor": \d+,\s*', "", example)
        assert asked != example
    else:
        before, inputs, after = example.partition('"inputs": {')
        asked = before + inputs + after.replace(f'"{next(iter(context["inputs"]))}"', '"unknown"')
    done = service.run(asked, language)
    assert done.returncode == 1
    assert "review" in done.stdout
    assert "INPUT_SCHEMA_FAILED" in done.stdout
    assert "Held" in done.stderr


@pattern_examples
def test_an_example_holds_the_action_with_a_wrong_key_and_without_an_answer(
    service: Service, pattern_id: str, language: str
) -> None:
    example = service.example(pattern_id, language)
    refused = service.run(example, language, key=f"{service.key}x")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "SVC_API_UNAUTHORIZED" in refused.stderr
    assert service.key not in refused.stderr
    alone = service.run(example, language, url=f"http://127.0.0.1:{free_port()}")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "Held" in alone.stderr


@pytest.mark.parametrize("language", COMMANDS)
def test_an_example_run_again_is_answered_with_the_same_record(service: Service, language: str) -> None:
    example = service.example("refund_review", language)
    assert service.run(example, language).returncode == 0
    count = len(service.site.entries("acme"))
    assert service.run(example, language).returncode == 0
    assert len(service.site.entries("acme")) == count
