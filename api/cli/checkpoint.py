"""Reads the checkpoint that an option gives."""

from __future__ import annotations

from pathlib import Path

from api.cli.options import read_json
from gate.encoding.canonical import with_integers
from gate.errors import OperatorError
from gate.proof.checkpoint import Checkpoint
from gate.verify.checkpoint import is_checkpoint


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint from a file, or from stdin for `-`. A double without a fraction becomes an integer.

    Raises:
        OperatorError: `FILE_UNREADABLE` or `CHECKPOINT_INVALID`.
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    document = with_integers(read_json(path))
    if not is_checkpoint(document):
        raise OperatorError(
            "CHECKPOINT_INVALID",
            f"{path} does not hold a checkpoint; give a file with the output of `gate chain checkpoint --scope NAME`.",
        )
    return document
