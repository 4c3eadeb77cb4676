"""Every command in the README and in docs/ runs as written, in order, against a `make run`.

Those of docs/ run a `gate` that is forked and not started anew (tests/end_to_end/forking.py), for it is run 150 times.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from docs.tools.reference.http.operations import operations
from gate.policy.confidence import Counts, Coverage
from gate.policy.questions import ConfidenceQuestion
from gate.policy.reports import confidence_report
from tests.end_to_end.forking import forking, use_forked
from tests.end_to_end.site import Site
from tests.end_to_end.support import ROOT, bash_blocks, free_port, make_run, mirror
from tests.support import upstreams
from tests.support.documentation import notes, section

# These show what a fresh instance answers. The first of them only asks.
FIRST = ["docs/reference/formulas/confidence.md", "README.md"]
# These change the instance for whoever comes after.
LAST = ["docs/guides/compare-with-peers.md", "docs/guides/rotate-signing-keys.md"]
OTHERS = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}.difference(FIRST, LAST)
PAGES = [*FIRST, *sorted(OTHERS), *LAST]
# The pages of the API show what a fresh instance answers as well, and each uses what those before it saved. The other
# pages share an instance, as their readers do, which `make run` started.
API = [f"docs/reference/api/{page}" for page in dict.fromkeys(each.page for each in operations().values())]
# It needs an upstream, and shows what that was asked and answered.
ADVISED = "docs/guides/ask-a-model.md"
# Its commands are those that were installed.
INSTALLED = "README.md"
# These are the test itself, what runs the tests, and what that makes for them beforehand.
OUTSIDE = {"make run\n", "make test\n", "make mcp\n"}
# Of a demo, where a page makes one: as few as show what is planted, and nobody besides. In so few, chance hides it in
# some years, and so it is always the same year.
DEMO = {"DECISIONS": "3000", "PEERS": "0", "UNTIL": "2026-08-30"}


@dataclass(frozen=True, slots=True)
class Ran:
    """A block of a page that was run.

    Attributes:
        block: The block, as the page has it.
        done: What it printed, and its exit code.
        answer: What curl wrote to a file that the block names; where it names none, what the block printed.
    """

    block: str
    done: subprocess.CompletedProcess[str]
    answer: str


def run(block: str, project: Path, port: int, own: int) -> Ran:
    """Runs a block against the service at a port; a service that the page itself starts answers at `own`."""
    served = block.replace("127.0.0.1:8080", f"127.0.0.1:{port}").replace("8081", str(own))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", served],
        cwd=project,
        env={**os.environ, **DEMO},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    kept = re.search(r"-o (build/\S+)", block)
    return Ran(block, done, (project / kept[1]).read_text() if kept else done.stdout)


@dataclass(frozen=True, slots=True)
class Started:
    """A `make run` that is ready.

    Attributes:
        project: The folder that it was started in.
        port: Where it answers.
    """

    project: Path
    port: int


@contextmanager
def started(folder: Path) -> Iterator[Started]:
    project, port = mirror(folder / "project"), free_port()
    with make_run(project, port):
        yield Started(project, port)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """What all pages but one are run against."""
    with started(tmp_path_factory.mktemp("shared")) as running:
        yield running


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of what forks the `gate` command."""
    with forking(tmp_path_factory.mktemp("forks")) as address:
        yield address


@pytest.fixture(scope="module")
def ran(shared: Started, forks: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Ran]]:
    """Runs the blocks of a page in order, against a `make run`; once for all tests that look at the page."""

    @cache
    def api() -> dict[str, list[Ran]]:
        project = mirror(tmp_path_factory.mktemp("api") / "project")
        use_forked(project, forks)
        with Site(project / "var", None).serving(1, "--demo", "--analytics", ready="^curl ") as alone:
            port = int(alone.url.rpartition(":")[2])
            return {
                page: [run(block, project, port, free_port()) for block in bash_blocks((ROOT / page).read_text())]
                for page in API
            }

    @cache
    def blocks_of(page: str) -> list[Ran]:
        if page in API:
            return api()[page]
        own = free_port()
        blocks = [block for block in bash_blocks((ROOT / page).read_text()) if block not in OUTSIDE]
        project = mirror(tmp_path_factory.mktemp("page") / "project")
        if page != INSTALLED:
            use_forked(project, forks)
        if page == ADVISED:
            with upstreams.serving() as upstream:
                return advised(project, upstream, blocks)
        (project / "var").symlink_to(shared.project / "var")
        (project / "build").mkdir()
        (project / "build" / "mcp").symlink_to(ROOT / "build" / "mcp")
        try:
            return [run(block, project, shared.port, own) for block in blocks]
        finally:
            stop_services(project)

    return blocks_of


@pytest.mark.parametrize("page", [page for page in PAGES if bash_blocks((ROOT / page).read_text())])
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: str, ran: Callable[[str], list[Ran]]) -> None:
    for each in ran(page):
        assert "Traceback" not in each.done.stderr
        if page == "README.md" and "tampered" in each.block:
            assert "NOT VERIFIED" in each.done.stdout
            assert "exit code 1" in each.done.stdout
    require_shown((ROOT / page).read_text(), ran(page))
    if page == ADVISED:
        require_advice((ROOT / page).read_text(), ran(page))
    if page == FIRST[0]:
        require_notes((ROOT / page).read_text(), ran(page))


def stop_services(project: Path) -> None:
    """Ends the services that a page started and, where one of its blocks failed, did not stop."""
    for file in (project / "build").glob("docs/*/*.pid"):
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGTERM)


def test_the_script_of_the_lifecycle_says_where_it_is_to_be_run(tmp_path: Path) -> None:
    done = lifecycle(tmp_path, free_port())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Run this in the project's folder while 'make run' is running.\n"
    assert list(tmp_path.iterdir()) == []


def test_the_script_of_the_lifecycle_shows_the_answer_that_ended_it(shared: Started, tmp_path: Path) -> None:
    project = mirror(tmp_path / "project")
    (project / "var").mkdir()
    (project / "var" / "demo.key").write_text("dgk_unknown")
    done = lifecycle(project, shared.port)
    assert (done.returncode, done.stdout) == (1, "")
    assert '"error":"SVC_API_UNAUTHORIZED"' in done.stderr
    done = lifecycle(project, free_port())
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Run this in the project's folder while 'make run' is running.",
    )


def lifecycle(folder: Path, port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "docs" / "lifecycle.sh"), f"http://127.0.0.1:{port}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def require_shown(page: str, done: list[Ran]) -> None:
    """What a page shows after a block is what that printed: each line of a text, each field of a shortened JSON."""
    shown = [
        (block, text, answer)
        for block, text, answer in re.findall(
            r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```|\n(?:[^`\n]+\n\n)?```json\n(.*?)^```)?",
            page,
            flags=re.MULTILINE | re.DOTALL,
        )
        if block not in OUTSIDE
    ]
    assert [block for block, _, _ in shown] == [each.block for each in done]
    for (_, text, answer), each in zip(shown, done, strict=True):
        missing = [line for line in text.splitlines() if line not in each.done.stdout]
        assert missing == [], f"{each.block}\n{each.done.stdout}\n{each.done.stderr}"
        if answer:
            assert within(json.loads(answer), json.loads(each.answer)), f"{each.block}\n{each.answer}"


def advised(project: Path, upstream: upstreams.Server, blocks: list[str]) -> list[Ran]:
    """Runs blocks against a service with the settings of the page ADVISED, whose upstream answers as the page shows. It
    has to be asked as the page shows, too.
    """
    page = (ROOT / ADVISED).read_text()
    (settings,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    key = project / "upstream.key"
    key.write_text("upstream-key")
    key.chmod(0o600)
    site = Site(project / "var", None)
    site.create_key("advised")
    with (site.home / "settings.toml").open("a") as file:
        file.write(
            settings.replace("https://models.example.com/v1", upstream.url).replace(
                "/etc/decision-gate/advisory.key", str(key)
            )
        )
    shown = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)]
    answers = {each["evaluation"]["mode"]: each["evaluation"]["answer"] for each in shown if "evaluation" in each}

    def answer(handler: upstreams.Handler) -> None:
        handler.send(upstreams.completion(json.dumps(answers[upstreams.mode_of(handler)])))

    upstream.behave = answer
    with site.serving(1, "--demo", ready="^curl ") as server:
        done = [run(block, project, int(server.url.rpartition(":")[2]), free_port()) for block in blocks]
    ((path, headers, asked), *_) = upstream.asked
    assert (path, headers["authorization"]) == ("/v1/chat/completions", "Bearer upstream-key")
    # The page cuts the long text of the system short.
    (sample,) = [each for each in shown if "messages" in each]
    system = sample["messages"][0]["content"].removesuffix("...")
    assert asked["messages"][0]["content"].startswith(system)
    sample["messages"][0]["content"] = asked["messages"][0]["content"]
    assert asked == sample
    return done


def require_advice(page: str, done: list[Ran]) -> None:
    # The last block prints all that follows it.
    (printed,) = re.findall(r"^```text\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert done[-1].done.stdout == printed
    contract = json.loads(re.findall(r"^```json\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)[0])
    for each in done:
        if "-o build/" in each.block:
            record = json.loads(each.answer)
            assert (record["decision_contract"], record["evaluator_version"]) == (contract, "svc_advisory_v1")


def require_notes(page: str, done: list[Ran]) -> None:
    (each,) = done
    assert f"```bash\n{each.block}```\n\n```text\n{each.done.stdout}```" in page
    coverage = Coverage({"1": Counts()}, Counts(), None, None, truncated=True)
    question = ConfidenceQuestion("pricing_exception", limit=1, clock="occurred")
    listed = section((ROOT / "docs" / "reference" / "formulas" / "notes.md").read_text(), "## Confidence")
    assert notes(listed) == confidence_report(coverage, question)["notes"]


def within(shown: Any, real: Any) -> bool:
    """Whether a shortened answer is of the real one. Numbers, and words with digits, differ from run to run."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return all(name in real and within(value, real[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(real, list):
        return all(any(within(item, other) for other in real) for item in shown)
    varies = (isinstance(shown, str) and re.search(r"\d", shown)) or type(shown) in (int, float)
    return type(shown) is type(real) and (bool(varies) or shown == real)


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target


def test_the_tree_in_the_readme_is_the_tree() -> None:
    tree = re.findall(r"^(\w+)/  ", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    present = {entry.name for entry in ROOT.iterdir() if entry.is_dir() and not entry.name.startswith((".", "_"))}
    assert set(tree) - {"var"} <= present
    assert present - {"var", "var-demo", "build", "dist"} <= set(tree)
