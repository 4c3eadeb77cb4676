"""Panel's components in the dashboard's colors: one style sheet for all of them."""

from __future__ import annotations

from typing import Any, Final

import panel as pn


class Looks:
    """Makes components that look alike."""

    def __init__(self, style: str) -> None:
        """Takes the style sheet."""
        self._style: Final = style

    @property
    def column(self) -> dict[str, Any]:
        """The arguments of a layout."""
        return {"stylesheets": [self._style], "margin": 0}

    def html(self, kind: str) -> pn.pane.HTML:
        """A part of the page: `header` or `main`."""
        return pn.pane.HTML(  # type: ignore[no-untyped-call]
            "", css_classes=[kind], stylesheets=[self._style], margin=0, sizing_mode="stretch_width"
        )

    def select(self, label: str) -> pn.widgets.Select:
        """A list to choose from."""
        return pn.widgets.Select(  # type: ignore[no-untyped-call]
            label=label, stylesheets=[self._style], margin=0, css_classes=["field"], width=None
        )

    def text(self, label: str, placeholder: str) -> pn.widgets.TextInput:
        """A field for a line of text; it counts once the reader leaves it or presses Enter."""
        return pn.widgets.TextInput(
            label=label,
            placeholder=placeholder,
            max_length=200,
            stylesheets=[self._style],
            margin=0,
            css_classes=["field"],
            width=None,
        )

    def note(self, label: str) -> pn.widgets.TextAreaInput:
        """A field for a note."""
        return pn.widgets.TextAreaInput(
            label=label,
            max_length=1000,
            rows=3,
            stylesheets=[self._style],
            margin=0,
            css_classes=["field", "note"],
            sizing_mode="stretch_width",
        )

    def button(self, label: str) -> pn.widgets.Button:
        """A button that does something."""
        return pn.widgets.Button(  # type: ignore[no-untyped-call]
            label=label, stylesheets=[self._style], margin=0, css_classes=["do"]
        )
