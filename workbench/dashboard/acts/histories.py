"""A history is imported: its file is sent, rehearsed, and imported once it was.

The pieces of the file are messages of the page, like all acts. They come from a signed-in user over the page's own
connection, and each has the size limit of a message.
"""

from __future__ import annotations

import base64
import binascii

from gate.errors import OperatorError
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.studio.uploads import MAX_FILE, Upload, too_large
from workbench.dashboard.views.imported import listing, rehearsal

_MOST_FAULTS = 5


def send(turn: Turn) -> Answer:
    """Takes a piece of a file: `{file, size, at, piece}`, the last in `base64`. The first piece starts a file."""
    turn.store.histories.require_import(turn.who.user, turn.scope)
    name, text = turn.text("file"), turn.text("piece")
    at, size = turn.message.get("at"), turn.message.get("size")
    if not isinstance(at, int) or not isinstance(size, int):
        raise OperatorError("ACT_INVALID", "The page did not send the position of a file part. Load the page again.")
    if size > MAX_FILE:
        raise too_large()
    try:
        piece = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise OperatorError("ACT_INVALID", "The page sent an unreadable file part. Load the page again.") from error
    if at == 0:
        turn.seat.drop_upload()
        turn.seat.upload = Upload.begin(name)
    upload = _upload(turn)
    turn.seat.rehearsed = None
    try:
        upload.add(at, piece)
    except OperatorError:
        turn.seat.drop_upload()
        raise
    return {"received": upload.size}


def rehearse(turn: Turn) -> Answer:
    """Says what would be imported of the file that was sent: {name, map}."""
    turn.store.histories.require_import(turn.who.user, turn.scope)
    name, map_text = turn.text("name"), turn.text("map")
    upload = _upload(turn)
    turn.seat.rehearsed = None
    try:
        found = turn.store.histories.rehearse(turn.scope, turn.who.user, name, map_text, upload.file)
    except OperatorError as error:
        raise _told(error) from error
    turn.seat.rehearsed = found
    return {"parts": {"rehearsal": str(rehearsal.rehearsed(found))}, "say": ""}


def import_(turn: Turn) -> Answer:
    """Imports what was rehearsed: {history, refused?}; with `refused` although rows are refused."""
    turn.store.histories.require_import(turn.who.user, turn.scope)
    name = turn.text("history")
    found = turn.seat.rehearsed
    if found is None or found.plan.name != name:
        raise OperatorError("HISTORY_NOT_REHEARSED", "No rehearsal has this name. Rehearse the file first.")
    allowed = turn.word("refused") is not None
    done = turn.store.histories.import_(turn.scope, turn.who.user, found, allow_refused=allowed)
    if done.imported.found is None:
        raise OperatorError(
            "HISTORY_ROWS_REFUSED",
            "Nothing was imported: rows are refused, or there are none. Fix the file or the map, and rehearse again.",
        )
    turn.seat.drop_upload()
    sets = listing.listed(turn.who.scope, turn.store.histories.of(turn.who.scope_id, turn.store.reports(turn.who)))
    return {
        "parts": {"histories": str(sets), "rehearsal": str(rehearsal.imported(turn.who.scope, done.imported))},
        "say": "",
    }


def _upload(turn: Turn) -> Upload:
    if turn.seat.upload is None:
        raise OperatorError("UPLOAD_BROKEN", "The file is no longer available. Choose it again, and rehearse it.")
    return turn.seat.upload


def _told(error: OperatorError) -> OperatorError:
    """A fault of the map, with the members at fault."""
    if not error.errors:
        return error
    faults = " ".join(f"{each.field or 'It'}: {each.message}" for each in error.errors[:_MOST_FAULTS])
    return OperatorError(error.code, f"{error.message} {faults}")
