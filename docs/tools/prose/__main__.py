"""`count` measures the prose of the project; `check [PATH ...]` prints findings and exits with 1 if there are any."""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path

from docs.tools.prose import grammar, style
from docs.tools.prose.counts import Counts, count
from docs.tools.prose.texts import ROOT, Text, all_texts, read

_NAMES = {
    "page": "pages by hand",
    "generated": "generated pages",
    "docstring": "public docstrings",
    "notebook": "notebooks",
}


def main() -> int:
    """Runs the command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.tools.prose", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    counting = commands.add_parser(
        "count", help="words, length of sentences, passive share and findings, by kind of text"
    )
    counting.add_argument("--root", type=Path, default=ROOT, help="another checkout to count")
    checking = commands.add_parser("check", help="prints what the house rules and the grammar checker find")
    checking.add_argument("paths", nargs="*", type=Path, help="files or folders; by default everything")
    asked = parser.parse_args()
    return _count(asked.root.resolve()) if asked.command == "count" else _check(asked.paths)


def _check(paths: list[Path]) -> int:
    texts = _texts(paths) if paths else all_texts()
    findings = _findings(texts)
    if not paths:
        findings += style.check_total(texts)
    for found in sorted(findings, key=lambda found: (found.path, found.line)):
        print(f"{found.path}:{found.line}: {found.rule}: {found.message}")
    if not findings:
        print(f"The prose of {len(texts):,} files follows the house rules.")
    return bool(findings)


def _texts(paths: list[Path]) -> list[Text]:
    files = [file for path in paths for file in (_below(path) if path.is_dir() else [path])]
    return [text for file in files for text in read(file.resolve())]


def _below(folder: Path) -> list[Path]:
    return sorted([*folder.rglob("*.md"), *folder.rglob("*.py")])


def _findings(texts: list[Text]) -> list[style.Finding]:
    return [*(found for text in texts for found in style.check(text)), *grammar.check(texts)]


def _count(root: Path) -> int:
    print(f"{'':20}{'files':>6}{'words':>9}{'sentences':>11}{'mean':>7}{'over 30':>9}{'passive':>9}{'findings':>10}")
    texts = sorted(all_texts(root), key=lambda text: list(_NAMES).index(text.kind))
    for kind, group in groupby(texts, key=lambda text: text.kind):
        _row(_NAMES[kind], list(group))
    return 0


def _row(name: str, texts: list[Text]) -> None:
    counts: Counts = count(texts)
    read = sum(bool(text.blocks) for text in texts)
    print(
        f"{name:20}{read:>6}{counts.words:>9,}{counts.sentences:>11,}{counts.mean:>7.1f}{counts.long:>9.1%}"
        f"{counts.passive:>9.1%}{len(_findings(texts)):>10,}"
    )


if __name__ == "__main__":
    sys.exit(main())
