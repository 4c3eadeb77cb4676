"""Spelling and grammar, by the checker Harper."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from docs.tools.prose.style import HOUSE, Finding
from docs.tools.prose.texts import Text

_COMMAND: Final = Path(sys.executable).parent / "harper"
_WORDS: Final = Path(__file__).parent / "words.txt"


def check(texts: Sequence[Text]) -> Iterator[Finding]:
    """What Harper finds in the texts, without the rules that house.toml sets aside."""
    with TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            (Path(folder) / f"{number}.md").write_text(_plain(text.markdown))
        ignored = ",".join(HOUSE["harper"]["ignore"])
        command = [str(_COMMAND), "lint", "--format", "json", "--quiet", "--no-color", "--ignore", ignored]
        done = subprocess.run(
            [*command, "--user-dict-path", str(_WORDS), folder], capture_output=True, text=True, check=False
        )
        # It exits with 1 where it finds something.
        for file in json.loads(done.stdout or "[]"):
            text = texts[int(Path(file["file"]).stem)]
            for found in file["lints"]:
                message = f"{found['message']} ('{found['matched_text']}')"
                yield Finding(text.path, found["line"], found["rule"], message)


def _plain(markdown: str) -> str:
    """Markdown with each line where it was, but without links' targets, and with *n* and the like as code."""
    return re.sub(r"\*\w\*", "`n`", re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", markdown))
