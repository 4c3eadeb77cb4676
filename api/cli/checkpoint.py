"""Reading the checkpoint that an option names."""

from __future__ import annotations

from pathlib import Path

from api.cli.options import read_json
from gate.encoding.canonical import with_integers
from gate.errors import OperatorError
from gate.proof.chain import Checkpoint
from gate.verify.checkpoint import is_checkpoint


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file, or on stdin for `-`, with integers for integral doubles, which are the same JSON.

    Raises:
        OperatorError: FILE_UNREADABLE, or CHECKPOINT_INVALID.
        MaterialRefused: SVC_API_JSON_INVALID.
    """
    document = with_integers(read_json(path))
    if not is_checkpoint(document):
        raise OperatorError(
            "CHECKPOINT_INVALID",
            f"{path} is not a checkpoint: its fields are not those of a checkpoint. Give a file that `gate chain "
            f"checkpoint` printed.",
        )
    return document
