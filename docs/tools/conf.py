"""Settings of the site, for Sphinx. `make docs` prepares what it builds from (docs/tools/site.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sphinx.application import Sphinx

from gate import __version__

project = "Decision Gate"
author = "The Decision Gate authors"
release = __version__
html_title = f"Decision Gate {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["files"]

myst_heading_anchors = 4
# A docstring is Markdown for those who read the source: its single backticks are code.
default_role = "code"
smartquotes = False
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Called by Sphinx with the application that it builds with."""
    # Before napoleon, which reads the sections that follow.
    app.connect("autodoc-process-docstring", _mark_code, priority=400)


def _mark_code(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Marks indented text before the sections as code, as it is meant in a docstring, and not as a quotation."""
    for number in range(len(lines) - 1, 0, -1):
        sections = any(re.match(r"(Args|Attributes|Raises|Returns|Yields):$", line) for line in lines[:number])
        if not sections and lines[number].startswith("    ") and not lines[number - 1].strip():
            before = next((line for line in reversed(lines[:number]) if line.strip()), "")
            if not before.startswith("    "):
                lines[number:number] = ["::", ""]
