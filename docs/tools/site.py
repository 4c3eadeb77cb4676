"""Builds the site from docs/, the pages at the root and the docstrings: `python -m docs.tools.site`, or `make docs`.

The builder works on copies of the pages: README.md of a folder becomes index.md, links to files outside docs/ lead to
copies of them, and the links of docs/README.md become the navigation.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sphinx.cmd.build import build_main

import workbench

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
SOURCES: Final = ROOT / "build" / "site-sources"
SITE: Final = ROOT / "build" / "site"
ROOT_PAGES: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""The pages at the root that the site has as well; the README is for those who look at the repository."""

PYTHON: Final = ["gate.client", *sorted({getattr(workbench, name).__module__ for name in workbench.__all__})]
"""The modules with a page from their docstrings."""

_LINK: Final = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]*)(#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def main() -> int:
    """Builds the site; the exit code, which is not 0 where the builder warns of anything."""
    prepare()
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    return build_main([*options, "--conf-dir", str(Path(__file__).parent), str(SOURCES), str(SITE)])


def prepare() -> None:
    """Writes what the site is built from into build/site-sources."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    for page in _pages():
        text = adapted(page)
        if page == DOCS / "README.md":
            text += "".join(_navigation(page))
        elif listed := [each for each in _folder(page).glob("*.md") if each != page]:
            text += _toctree(sorted(map(_target, listed)), page)
        elif page == DOCS / "reference" / "python.md":
            text += _toctree([SOURCES / "reference" / "python" / f"{name}.md" for name in PYTHON], page)
        _write(_target(page), text)
    for module in PYTHON:
        directive = f".. automodule:: {module}\n   :members:\n"
        _write(SOURCES / "reference" / "python" / f"{module}.md", f"# {module}\n\n```{{eval-rst}}\n{directive}```\n")


def adapted(page: Path) -> str:
    """A page with its links as the site needs them. Files that it links to and that are no pages are copied."""

    def link(found: re.Match[str]) -> str:
        shown, target, anchor = found[1], found[2], found[3] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        linked = (page.parent / target).resolve()
        if linked.is_dir():
            return shown.removeprefix("[").removesuffix("]")
        at = _target(linked)
        if linked.is_file() and at.suffix != ".md":
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked, at)
        return f"{shown}({os.path.relpath(at, _target(page).parent)}{anchor})"

    # A block of code has no links, whatever it looks like.
    text, parts, at = page.read_text(), [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, _LINK.sub(link, text[at:])])


def _folder(page: Path) -> Path:
    """The folder whose pages a page leads to: its own for a README.md, one of its name for another page."""
    return page.parent if page.name == "README.md" else page.with_suffix("")


def _pages() -> list[Path]:
    return [*(ROOT / name for name in ROOT_PAGES if (ROOT / name).exists()), *sorted(DOCS.rglob("*.md"))]


def _target(path: Path) -> Path:
    """Where the site's sources have a file of the project."""
    if path.is_relative_to(SOURCES):
        return path
    if path.name == "README.md" and path.is_relative_to(DOCS):
        return SOURCES / path.relative_to(DOCS).with_name("index.md")
    if path.suffix in (".md", ".svg", ".png") and path.is_relative_to(DOCS):
        return SOURCES / path.relative_to(DOCS)
    if path.parent == ROOT and path.name in ROOT_PAGES:
        return SOURCES / path.name.lower()
    # Another page is shown as a text: the builder would take it for one of its own.
    copied = SOURCES / "files" / path.relative_to(ROOT)
    return copied.with_suffix(".md.txt") if path.suffix == ".md" else copied


def _navigation(page: Path) -> Iterator[str]:
    """A hidden table of contents for each section of the map that links to pages."""
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page.read_text(), flags=re.MULTILINE | re.DOTALL):
        linked = [(page.parent / found[2]).resolve() for found in _LINK.finditer(body) if found[2].endswith(".md")]
        targets = list(dict.fromkeys(_target(each) for each in linked if each != page))
        if targets:
            yield _toctree(targets, page, heading)


def _toctree(targets: list[Path], page: Path, caption: str = "") -> str:
    here = _target(page).parent
    options = f":caption: {caption}\n" if caption else ""
    names = "\n".join(os.path.relpath(target, here).removesuffix(".md") for target in targets)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{names}\n```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
