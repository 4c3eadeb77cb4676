"""What a view makes: a page's title, its HTML, and which filters and forms it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from markupsafe import Markup

from workbench.dashboard.views.location import Location


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter that a page offers as a list.

    Attributes:
        name: The parameter of the location.
        label: Its name on the page.
        options: The choices: value by label; an empty value filters nothing.
    """

    name: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A filter that takes text.

    Attributes:
        name: The parameter of the location.
        label: Its name on the page.
        placeholder: An example of a value.
    """

    name: str
    label: str
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """Something to do, with a note: a text field and a button under the page.

    Attributes:
        act: Its act: `dismiss` or `reopen`.
        label: The label of the text field.
        button: The text of the button.
        subject: The id of the thing that it changes.
    """

    act: str
    label: str
    button: str
    subject: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page, ready to be shown.

    Attributes:
        location: Where it is, with every default filled in.
        title: The heading: a finding, as a sentence without its full stop.
        html: All beneath the heading.
        filters: The filters that it offers.
        forms: The forms on the page.
        links: Filters that are links next to the fields, such as periods: URL by label.
    """

    location: Location
    title: str
    html: Markup
    filters: tuple[Choice | Entry, ...] = ()
    forms: tuple[Form, ...] = ()
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
