"""Builds the site from docs/, the pages at the root and the docstrings: `python -m docs.tools.site`, or `make docs`.

The builder works on copies of the pages: README.md of a folder becomes index.md, links to files outside docs/ lead to
copies of them, and the links of docs/README.md become the navigation.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sphinx.cmd.build import build_main

import workbench

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
MAP: Final = DOCS / "README.md"
ROOT_PAGES: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""The pages at the root that the site has as well; the README is for readers of the repository."""

PYTHON: Final = ["gate.client", *sorted({getattr(workbench, name).__module__ for name in workbench.__all__})]
"""The modules with a page from their docstrings."""

# Classes whose members no page shows: each endpoint has its own reference, and Python documents the others.
_FOREIGN: Final = "Endpoints, AsyncEndpoints, Exception, tuple, Enum, SqlStore"
_PYTHON_PAGE: Final = DOCS / "reference" / "python.md"
_LINK: Final = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]*)(#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def main(folder: Path = ROOT / "build" / "site") -> int:
    """Builds the site in a folder; the exit code."""
    return build(folder.with_name(f"{folder.name}-sources"), folder)


def build(sources: Path, folder: Path) -> int:
    """Builds the site in a folder, from copies of the pages in another; the exit code, 0 unless the builder warns."""
    shutil.rmtree(sources, ignore_errors=True)
    for name, content in copies():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_bytes(content)
    shutil.rmtree(folder, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    return build_main([*options, "--conf-dir", str(Path(__file__).parent), str(sources), str(folder)])


def copies() -> Iterator[tuple[Path, bytes]]:
    """What the site is built from: the path of each file in the folder of sources, and its content."""
    for page in [*(ROOT / name for name in ROOT_PAGES), *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text()
        yield _place(page), (_adapted(page, text) + "".join(_navigation(page, text))).encode()
        for linked in _linked(page, text):
            if linked.is_file() and _place(linked).suffix != ".md":
                yield _place(linked), linked.read_bytes()
    for module in PYTHON:
        directive = f".. automodule:: {module}\n   :members:\n   :inherited-members: {_FOREIGN}\n"
        yield _python(module), f"# {module}\n\n```{{eval-rst}}\n{directive}```\n".encode()


def _place(path: Path) -> Path:
    """Where the folder of sources has a file of the project."""
    if path.parent == ROOT and path.name in ROOT_PAGES:
        return Path(path.name.lower())
    if path.name == "README.md" and path.is_relative_to(DOCS):
        return path.relative_to(DOCS).with_name("index.md")
    if path.suffix in (".md", ".svg", ".png") and path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    # Another page is shown as a text: the builder would take it for one of its own.
    copied = Path("files") / path.relative_to(ROOT)
    return copied.with_suffix(".md.txt") if path.suffix == ".md" else copied


def _python(module: str) -> Path:
    return _place(_PYTHON_PAGE).with_suffix("") / f"{module}.md"


def _linked(page: Path, text: str) -> list[Path]:
    """The files and folders of the project that a page leads to."""
    targets = [found[2] for found in _LINK.finditer(_FENCE.sub("", text))]
    return [(page.parent / target).resolve() for target in targets if target and "://" not in target]


def _adapted(page: Path, text: str) -> str:
    """A page with its links as the site needs them; a link to a folder becomes its text."""

    def link(found: re.Match[str]) -> str:
        shown, target, anchor = found[1], found[2], found[3] or ""
        if not target or "://" in target:
            return found[0]
        linked = (page.parent / target).resolve()
        if linked.is_dir():
            return shown.removeprefix("[").removesuffix("]")
        return f"{shown}({os.path.relpath(_place(linked), _place(page).parent)}{anchor})"

    # A block of code has no links, whatever it looks like.
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, _LINK.sub(link, text[at:])])


def _navigation(page: Path, text: str) -> Iterator[str]:
    """The pages below a page, as hidden tables of contents: for the map, one for each of its sections."""
    if page == MAP:
        sections = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
        for heading, body in sections:
            listed = [_place(each) for each in _linked(page, body) if each.suffix == ".md" and each != MAP]
            yield _contents(dict.fromkeys(listed), page, heading)
    elif page == _PYTHON_PAGE:
        yield _contents(map(_python, PYTHON), page)
    else:
        folder = page.parent if page.name == "README.md" else page.with_suffix("")
        yield _contents(sorted(_place(each) for each in folder.glob("*.md") if each != page), page)


def _contents(pages: Iterable[Path], page: Path, caption: str = "") -> str:
    names = [os.path.relpath(each, _place(page).parent).removesuffix(".md") for each in pages]
    options = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{chr(10).join(names)}\n```\n" if names else ""


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
