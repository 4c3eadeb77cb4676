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
        label: What it is called.
        options: What can be chosen: value by label; an empty value narrows nothing.
    """

    name: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A filter that takes text.

    Attributes:
        name: The parameter of the location.
        label: What it is called.
        placeholder: What it takes, as an example.
    """

    name: str
    label: str
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """Something to do, with a note: a text field and a button under the page.

    Attributes:
        act: What it does: `dismiss` or `reopen`.
        label: What the text field asks for.
        button: What the button says.
        subject: The id of what it is done to.
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
        forms: What can be done there.
        links: Filters that are links beside the fields, such as periods: URL by label.
    """

    location: Location
    title: str
    html: Markup
    filters: tuple[Choice | Entry, ...] = ()
    forms: tuple[Form, ...] = ()
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
