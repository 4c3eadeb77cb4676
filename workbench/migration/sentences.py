"""The sentences of a dry run, short enough to be read by a person who has to say yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from workbench.engines.wording import counted

_Figure = Mapping[str, Any]

REGIONS: Final = "Regions may overlap: a decision counts in each region that it lies in."
"""What the traffic of regions does not say."""


def percent(share: float | None) -> str:
    """A share of a whole with one decimal, and small ones with more: `0.04 %`; a dash if there is none."""
    # With a plain space: a terminal and the report in Markdown show any other as an escape.
    return "-" if share is None else f"{_hundreds(share)} %"


def _hundreds(share: float) -> str:
    shown = share * 100
    return f"{shown:.2g}" if 0 < shown < 0.1 else f"{shown:.1f}"


def rate(of: _Figure) -> str:
    """A share with its interval: `2.6 %, 95 % interval 1.8 to 3.6 %`."""
    if of["share"] is None:
        return "none to judge by"
    return f"{percent(of['share'])}, 95 % interval {_hundreds(of['low'])} to {percent(of['high'])}"


def _good_newly_blocked(of: _Figure) -> str:
    if not of["of"]:
        return "No decision was approved and succeeded, so nothing is known about good ones that would be lost."
    return f"Of {_approved(of['of'])} succeeded, {of['decisions']:,} ({rate(of)}) would now be blocked or held."


def _bad_newly_blocked(of: _Figure) -> str:
    if not of["of"]:
        return "No decision was approved and ended badly, so nothing is known about bad ones that would be stopped."
    return (
        f"Of {_approved(of['of'])} did not succeed in full, {of['decisions']:,} ({rate(of)}) would now be blocked or "
        f"held."
    )


def _approved(number: int) -> str:
    return f"{counted(number, 'decision')} that {'was' if number == 1 else 'were'} approved and"


def _bad_newly_approved(of: _Figure) -> str:
    if not of["of"]:
        return "No decision that the candidate would newly approve has a final outcome."
    have = "has" if of["of"] == 1 else "have"
    return (
        f"The candidate would newly approve {counted(of['of'], 'decision')} that {have} a final outcome; "
        f"{of['decisions']:,} of them ({rate(of)}) did not succeed in full."
    )


def _newly_approved_unknown(of: _Figure) -> str:
    if not of["of"]:
        return "The candidate would newly approve no decision."
    have = "has" if of["decisions"] == 1 else "have"
    return (
        f"The candidate would newly approve {counted(of['of'], 'decision')}; {of['decisions']:,} of them "
        f"({percent(of['share'])}) {have} no final outcome."
    )


OUTCOMES: Final[Mapping[str, Callable[[_Figure], str]]] = {
    "good_newly_blocked": _good_newly_blocked,
    "bad_newly_blocked": _bad_newly_blocked,
    "bad_newly_approved": _bad_newly_approved,
    "newly_approved_unknown": _newly_approved_unknown,
}


def unknowable(of: _Figure) -> str:
    """What cannot be known, whatever the figures say.

    Args:
        of: The newly approved decisions without a final outcome.
    """
    sentence = "An action that was not carried out has no outcome, so nobody knows how it would have ended."
    among = f"{of['decisions']:,} of {counted(of['of'], 'newly approved decision')}"
    return f"{sentence} No final outcome was reported for {among}." if of["decisions"] else sentence
