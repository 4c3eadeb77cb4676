"""Every command in the README and in docs/ runs as written, in order, against a fresh `make run`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.support import ROOT, bash_blocks, free_port, make_run, mirror

PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
# These two are the test itself, and what runs the tests.
OUTSIDE = {"make run\n", "make test\n"}


@pytest.mark.parametrize("page", [page for page in PAGES if bash_blocks((ROOT / page).read_text())])
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    project, port = mirror(tmp_path / "project"), free_port()
    blocks = [block for block in bash_blocks((ROOT / page).read_text()) if block not in OUTSIDE]
    with make_run(project, port):
        for block in blocks:
            here = block.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", here],
                cwd=project,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if page == "README.md" and "tampered" in block:
                assert "NOT VERIFIED" in done.stdout
                assert "exit code 1" in done.stdout


def test_the_readme_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text()
    shown = re.findall(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(shown) >= 2
    project, port = mirror(tmp_path / "project"), free_port()
    expected = dict(shown)
    with make_run(project, port):
        for block in bash_blocks(page):
            if block in OUTSIDE:
                continue
            here = block.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            done = subprocess.run(["bash", "-c", here], cwd=project, capture_output=True, text=True, check=False)
            for line in expected.get(block, "").splitlines():
                assert line in done.stdout, f"{block}\n{done.stdout}\n{done.stderr}"


def test_the_api_guide_shows_what_its_commands_answer(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    shown = re.findall(
        r"^```bash\n(.*?)^```\n\n(?:[^`\n]+\n\n)?(?:```(\w+)\n(.*?)^```)?", page, flags=re.MULTILINE | re.DOTALL
    )
    assert [block for block, _, _ in shown] == bash_blocks(page)
    project, port = mirror(tmp_path / "project"), free_port()
    with make_run(project, port):
        for block, language, answer in shown:
            here = block.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            done = subprocess.run(["bash", "-c", here], cwd=project, capture_output=True, text=True, check=False)
            if language == "json":
                kept = re.search(r"-o (\S+)", block)
                body = (project / kept[1]).read_text() if kept else done.stdout
                assert within(json.loads(answer), json.loads(body)), f"{block}\n{body}"


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
