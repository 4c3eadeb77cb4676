"""The sentences of a dry run, short enough to be read by a person who has to say yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from workbench.engines.wording import counted

_Figure = Mapping[str, Any]


def percent(share: float | None) -> str:
    """A share of a whole with one decimal, and of very small ones with more: `0.04 %`; a dash where there is none."""
    if share is None:
        return "-"
    shown = share * 100
    # With a plain space: a terminal and the report in Markdown show any other as an escape.
    return f"{shown:.2g} %" if 0 < shown < 0.1 else f"{shown:.1f} %"


def rate(of: _Figure) -> str:
    """A share with its interval: `2.6 %, 95 % interval 1.8 % to 3.6 %`."""
    if of["share"] is None:
        return "none to judge by"
    return f"{percent(of['share'])}, 95 % interval {percent(of['low'])} to {percent(of['high'])}"


def _good_newly_blocked(of: _Figure) -> str:
    if not of["of"]:
        return (
            "No approved decision is known to have succeeded, so that nothing is known of good ones that would be lost."
        )
    verb = "is" if of["of"] == 1 else "are"
    return (
        f"{counted(of['of'], 'approved decision')} {verb} known to have succeeded; {of['decisions']:,} of them "
        f"({rate(of)}) would be blocked or held."
    )


def _bad_newly_blocked(of: _Figure) -> str:
    if not of["of"]:
        return (
            "No approved decision is known to have failed, so that nothing is known of bad ones that would be stopped."
        )
    verb = "is" if of["of"] == 1 else "are"
    return (
        f"{counted(of['of'], 'approved decision')} {verb} known to have failed in part or whole; {of['decisions']:,} "
        f"of them ({rate(of)}) would be blocked or held."
    )


def _bad_newly_approved(of: _Figure) -> str:
    if not of["of"]:
        return "Of no decision that would be newly approved an outcome is known."
    return (
        f"Of {counted(of['of'], 'decision')} that would be newly approved and has a known outcome, {of['decisions']:,} "
        f"({rate(of)}) failed in part or whole."
        if of["of"] == 1
        else f"Of {counted(of['of'], 'decision')} that would be newly approved and have a known outcome, "
        f"{of['decisions']:,} ({rate(of)}) failed in part or whole."
    )


def _newly_approved_unknown(of: _Figure) -> str:
    if not of["of"]:
        return "No decision would be newly approved."
    return (
        f"{counted(of['of'], 'decision')} would be newly approved; of {of['decisions']:,} ({percent(of['share'])}) no "
        f"outcome is known."
    )


OUTCOMES: Final[Mapping[str, Callable[[_Figure], str]]] = {
    "good_newly_blocked": _good_newly_blocked,
    "bad_newly_blocked": _bad_newly_blocked,
    "bad_newly_approved": _bad_newly_approved,
    "newly_approved_unknown": _newly_approved_unknown,
}


def unknowable(of: _Figure) -> str:
    """What cannot be known, whatever the figures say."""
    extra = f" That is so of {of['decisions']:,} that would be newly approved." if of["decisions"] else ""
    return (
        "A blocked action has no outcome: what would have come of a decision that was not approved, and would be, is "
        f"not known.{extra}"
    )
