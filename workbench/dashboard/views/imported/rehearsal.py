"""What an import understood of a file, and what came of it."""

from __future__ import annotations

from markupsafe import Markup

from workbench.dashboard.store.histories import Rehearsal
from workbench.dashboard.views.html import render
from workbench.dashboard.views.imported.listing import policy_url
from workbench.history.accounts.account import Account
from workbench.history.accounts.summary import columns_of, range_of, warnings_of
from workbench.history.importing import Imported

_REASONS_SHOWN = 20


def rehearsed(found: Rehearsal) -> Markup:
    """What would be imported, and the button that imports it."""
    account = found.imported.account or Account()
    body = account.to_dict()
    context = {
        "name": found.plan.name,
        "columns": [{**of, "range": range_of(of)} for of in columns_of(account, found.plan.map_)],
        "warnings": warnings_of(account, found.plan.map_),
        "read": account.read,
        "rows": account.rows,
        "refused": account.refused,
        "first": account.first,
        "last": account.last,
        "reasons": body["reasons"][:_REASONS_SHOWN],
        "first_refused": body["first_refused"],
    }
    return render("history_rehearsed.html", context)


def imported(scope: str, done: Imported) -> Markup:
    """That a history was imported, or was there already, with its hash.

    Args:
        scope: The scope's name.
        done: What came of the import; its set is there.
    """
    found = done.found
    context = {
        "name": None if found is None else found.name,
        "hash": None if found is None else found.history_hash,
        "rows": 0 if found is None else found.rows,
        "already": done.already,
        "url": None if found is None else policy_url(scope, found),
    }
    return render("history_imported.html", context)
