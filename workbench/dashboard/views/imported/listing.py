"""The imported histories of a scope as a list, and the form that imports another one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from workbench.dashboard.store.histories import Listed
from workbench.dashboard.studio.uploads import MAX_FILE
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.history.sets import HistorySet


def view(location: Location, found: Sequence[Listed], *, may_import: bool) -> Page:
    """The page.

    Args:
        location: Where it is.
        found: The histories.
        may_import: Whether the user may import another one.
    """
    context = {
        "sets": listed(location.scope, found),
        "may": may_import,
        "command": command("import", "FILE...", "--map", "MAP.yaml", scope=location.scope) + " --name NAME",
        "most": MAX_FILE // (1024 * 1024),
    }
    return Page(location, "Imported histories", render("histories.html", context))


def listed(scope: str | None, found: Sequence[Listed]) -> Markup:
    """The list alone."""
    return render("histories_listed.html", {"rows": [_row(scope, each) for each in found]})


def command(verb: str, *arguments: str, scope: str | None) -> str:
    """A command about histories of a scope, as a shell takes it."""
    return shlex.join(["gate", "history", verb, *arguments, "--scope", scope or ""])


def policy_url(scope: str | None, found: HistorySet) -> str:
    """The page of a history's policy over its cases."""
    return Location("policy", scope=scope, policy=found.map["policy_id"], history=found.name).url


def _row(scope: str | None, of: Listed) -> dict[str, Any]:
    found = of.found
    row = {
        "name": of.name,
        "remove": command("remove", of.name, scope=scope),
        "verify": f"gate lake verify --scope {shlex.quote(scope or '')}",
    }
    if found is None:
        return {**row, "readable": False}
    return {
        **row,
        "readable": True,
        "rows": found.rows,
        "refused": found.refused,
        "erased": len(found.erased),
        "first": of.first,
        "last": of.last,
        "policy": found.map["policy_id"],
        "url": policy_url(scope, found),
        "hash": found.history_hash,
    }
