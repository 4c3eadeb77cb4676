"""Settings of the site, for Sphinx. `make docs` prepares what it builds from (docs/tools/site.py)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

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
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
