"""The frame of every page: of those that Panel fills, and of those outside of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

_TEMPLATES: Final = Path(__file__).parent / "templates"

ASSETS: Final = Path(__file__).parent / "assets"
"""The style sheet and the scripts."""


def frame() -> Template:
    """The template that Panel's pages are rendered with."""
    return _environment().get_template("frame.html")


def outside(template: str, **context: Any) -> str:
    """A page outside of Panel.

    Args:
        template: The template's file name.
        context: What it shows, by name.
    """
    return _environment().get_template(template).render(context)


@cache
def style() -> str:
    """The style sheet, for the components that live in a shadow of their own."""
    return (ASSETS / "workbench.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
