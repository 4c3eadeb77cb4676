"""Which function does which act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from workbench.dashboard.acts import cases, drafts, examining, histories, migrations, reviews, trying, whatif, writing
from workbench.dashboard.acts.turn import Answer, Turn

ACTS: Final[Mapping[str, Callable[[Turn], Answer]]] = MappingProxyType(
    {
        "new_draft": drafts.new,
        "rename_draft": drafts.rename,
        "close_draft": drafts.close,
        "reopen_draft": drafts.reopen,
        "type": writing.typed,
        "look": writing.look,
        "merge": writing.merge,
        "fork": writing.fork,
        "edit": writing.edit,
        "complete": writing.complete,
        "give": trying.give,
        "take_facts": trying.take,
        "examine": examining.examine,
        "cancel": examining.cancel,
        "measure": examining.measure,
        "boundaries": examining.boundaries,
        "compare": examining.compare,
        "keep_case": cases.keep,
        "remove_case": cases.remove,
        "take_cases": cases.take,
        "case_of": cases.from_decision,
        "what_if": whatif.change,
        "flips": whatif.flips,
        "send_file": histories.send,
        "rehearse_history": histories.rehearse,
        "import_history": histories.import_,
        "dry_run": migrations.dry_run,
        "watch_proof": migrations.watch,
        "stop_proof": migrations.stop,
        "propose": migrations.propose,
        "approve": migrations.approve,
        "reject": migrations.reject,
        "apply": migrations.apply,
        "roll_back": migrations.roll_back,
        "start_shadow": migrations.start_shadow,
        "stop_shadow": migrations.stop_shadow,
        "resolve": reviews.resolve,
    }
)
"""Every act, by the name that pages have for it."""

LATEST: Final = frozenset({"type", "look", "give", "complete", "what_if"})
"""The acts of which the last one has all that those before it had."""
