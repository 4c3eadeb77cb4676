"""Every command in the README and in docs/ runs as written, in order, against a fresh `make run`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.support import ROOT, bash_blocks, free_port, make_run, mirror

PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
# These two are the test itself, and what runs the tests.
OUTSIDE = {"make run\n", "make test\n"}


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


def run(block: str, project: Path, port: int) -> Ran:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace("127.0.0.1:8080", f"127.0.0.1:{port}")],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    kept = re.search(r"-o (build/\S+)", block)
    return Ran(block, done, (project / kept[1]).read_text() if kept else done.stdout)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Ran]]:
    """Runs the blocks of a page in order, against a fresh `make run`; once for all tests that look at the page."""

    @cache
    def blocks_of(page: str) -> list[Ran]:
        project, port = mirror(tmp_path_factory.mktemp("page") / "project"), free_port()
        blocks = [block for block in bash_blocks((ROOT / page).read_text()) if block not in OUTSIDE]
        with make_run(project, port):
            return [run(block, project, port) for block in blocks]

    return blocks_of


@pytest.mark.parametrize("page", [page for page in PAGES if bash_blocks((ROOT / page).read_text())])
def test_the_commands_of_a_page_run(page: str, ran: Callable[[str], list[Ran]]) -> None:
    for each in ran(page):
        assert "Traceback" not in each.done.stderr
        if page == "README.md" and "tampered" in each.block:
            assert "NOT VERIFIED" in each.done.stdout
            assert "exit code 1" in each.done.stdout


def test_the_readme_shows_what_its_commands_print(ran: Callable[[str], list[Ran]]) -> None:
    page = (ROOT / "README.md").read_text()
    shown = re.findall(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(shown) >= 2
    expected = dict(shown)
    for each in ran("README.md"):
        for line in expected.get(each.block, "").splitlines():
            assert line in each.done.stdout, f"{each.block}\n{each.done.stdout}\n{each.done.stderr}"


def test_the_api_guide_shows_what_its_commands_answer(ran: Callable[[str], list[Ran]]) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    shown = re.findall(
        r"^```bash\n(.*?)^```\n\n(?:[^`\n]+\n\n)?(?:```(\w+)\n(.*?)^```)?", page, flags=re.MULTILINE | re.DOTALL
    )
    assert [block for block, _, _ in shown] == bash_blocks(page)
    for (block, language, answer), each in zip(shown, ran("docs/api.md"), strict=True):
        if language == "json":
            assert within(json.loads(answer), json.loads(each.answer)), f"{block}\n{each.answer}"


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
    assert present - {"var", "build", "dist"} <= set(tree)
