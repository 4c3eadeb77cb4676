"""Formats that are too long for one page: which of their fields and definitions have a page of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Part:
    """A page for a part of a format.

    Attributes:
        name: What the page is called after the name of the format.
        title: What its title says after that of the format.
        fields: The fields whose own fields it lists.
        sections: The definitions that it has.
    """

    name: str
    title: str
    fields: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


_HISTORY: Final = "rulebooks[].history"
_NUMBERS: Final = "anomalies[].numbers"
PARTS: Final[Mapping[str, tuple[Part, ...]]] = {
    "decision-record-v1": (
        Part("rulebook", "registered rulebook", ("rulebook_registry", "rulebook_attestation")),
        Part("views", "other views", sections=("standard", "minimal", "after_erasure")),
        Part("advisory", "advisory record", sections=("advisory",)),
    ),
    "rulebook-migration-evidence-v1": (
        Part("history", "past decisions", (_HISTORY,)),
        Part(
            "effects",
            "changed decisions and outcomes",
            tuple(
                f"{_HISTORY}.{name}"
                for name in ("changed", "newly_approved", "newly_blocked", "otherwise_refused", "outcomes", "money")
            ),
        ),
        Part(
            "groups",
            "past decisions by group",
            tuple(
                f"{_HISTORY}.{name}"
                for name in (
                    "matrix",
                    "rules",
                    "then_rules",
                    "transitions",
                    "weeks",
                    "versions",
                    "facts",
                    "regions",
                    "missing_facts",
                )
            ),
        ),
    ),
    "anomaly-report": (
        Part("numbers", "numbers of an anomaly", (_NUMBERS,)),
        Part("changes", "changes of numbers", tuple(f"{_NUMBERS}.{name}" for name in ("changes", "levels", "facts"))),
    ),
    "effectiveness-report": (
        Part("versions", "versions", ("versions", "comparison", "versions_by_verdict")),
        Part(
            "groups",
            "decisions by group",
            (
                "verdicts",
                "dispositions",
                "reviews",
                "rules",
                "weeks",
                "metrics",
                "metrics_by_version",
                "metrics_by_week",
            ),
        ),
    ),
}
"""The parts of each long format, by its name. A test says when a page is too long."""


def of_field(name: str, path: str) -> str:
    """The name of the page that lists a field of a format: that of the innermost field with a page."""
    found = [
        (len(field), part)
        for part in PARTS.get(name, ())
        for field in part.fields
        if re.match(rf"{re.escape(field)}(\[\]|\.\*)*\.", path)
    ]
    return page_of(name, max(found, key=lambda each: each[0])[1]) if found else name


def of_fields_in(name: str, path: str) -> str:
    """The name of the page that lists the fields inside a field of a format."""
    return of_field(name, f"{path}.")


def of_section(name: str, section: str) -> str:
    """The name of the page that has a definition of a format."""
    return next((page_of(name, part) for part in PARTS.get(name, ()) if section in part.sections), name)


def page_of(name: str, part: Part) -> str:
    """The name of the page of a part."""
    return f"{name}-{part.name}"
