"""A page's filters and forms as Panel's widgets. A filter that two pages share stays the same widget on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import panel as pn

from workbench.dashboard.pages.looks import Looks
from workbench.dashboard.views import header
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Entry, Form
from workbench.engines.rendering import on_one_line


class Fields:
    """The widgets of a session.

    Attributes:
        filters: The row of filters.
        forms: The forms under the page.
    """

    def __init__(
        self, looks: Looks, changed: Callable[[str, str | None], None], act: Callable[[Form, str], None]
    ) -> None:
        """Makes no widget yet.

        Args:
            looks: How they look.
            changed: Called with a filter's name and its new value, None where it narrows nothing.
            act: Called with a form and its note, once its button is pressed.
        """
        self._looks = looks
        self._changed = changed
        self._act = act
        self._widgets: dict[str, Any] = {}
        self._quiet = False
        self._links = looks.html("links")
        self._said = looks.html("said")
        self._refused = looks.html("refused")
        self._shown: tuple[Any, ...] = ()
        self._offered: tuple[Form, ...] = ()
        self.filters: Final = pn.Row(css_classes=["filters"], sizing_mode="stretch_width", **looks.column)
        self.forms: Final = pn.Column(css_classes=["forms"], sizing_mode="stretch_width", **looks.column)

    def show(
        self,
        filters: Sequence[Choice | Entry],
        links: Mapping[str, str],
        forms: Sequence[Form],
        location: Location,
    ) -> None:
        """Offers the filters and forms of a page.

        Args:
            filters: The filters.
            links: Filters that are links: URL by label.
            forms: The forms.
            location: The page with the values of its filters.
        """
        self._quiet = True
        try:
            widgets = [self._filter(each, location) for each in filters]
        finally:
            self._quiet = False
        self._links.object = str(header.links(links, location)) if links else ""
        shown = (*widgets, self._links) if links else tuple(widgets)
        if shown != self._shown or self._refused in self.filters.objects:
            self._shown = shown
            self.filters.objects = list(shown)
        if tuple(forms) != self._offered:
            self._offered = tuple(forms)
            self._said.object = ""
            self.forms.objects = [part for form in forms for part in self._form(form)] + ([self._said] if forms else [])

    def refuse(self, message: str) -> None:
        """Says why a filter cannot have such a value."""
        self._refused.object = str(header.fault(message))
        self.filters.objects = [*self._shown, self._refused]

    def fault(self, message: str) -> None:
        """Says why an act was not done."""
        self._said.object = str(header.fault(message))

    def _filter(self, offered: Choice | Entry, location: Location) -> Any:
        widget = self._widgets.get(offered.name)
        if widget is None:
            widget = self._widgets[offered.name] = self._made(offered)
            widget.param.watch(lambda event: self._narrowed(offered.name, event.new), "value")
        value = location.filters[offered.name] or ""
        if isinstance(offered, Choice):
            widget.options = _labelled(offered.options, value)
        widget.value = value
        return widget

    def _made(self, offered: Choice | Entry) -> Any:
        if isinstance(offered, Choice):
            return self._looks.select(offered.label)
        return self._looks.text(offered.label, offered.placeholder)

    def _narrowed(self, name: str, value: str | None) -> None:
        if not self._quiet:
            self._changed(name, value.strip() or None if value else None)

    def _form(self, form: Form) -> Sequence[Any]:
        note, button = self._looks.note(form.label), self._looks.button(form.button)
        button.on_click(lambda _: self._act(form, note.value or ""))
        return note, button


def _labelled(offered: Mapping[str, str], value: str) -> dict[str, str]:
    """What a list offers, each value under a label that no other one has."""
    # A bookmark may name what is no longer among the most frequent.
    every = offered if value in offered else {**offered, value: on_one_line(value)}
    labelled: dict[str, str] = {}
    for of, label in every.items():
        same = sum(each == label or each.startswith(f"{label} (") for each in labelled)
        labelled[f"{label} ({same + 1})" if label in labelled else label] = of
    return labelled
