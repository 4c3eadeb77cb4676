"""How long the tests with real processes run: short in `make test`, long in `make torture`; and what they report."""

from __future__ import annotations

import os
import random
import secrets
import sys
from typing import Final, TypeVar

LONG: Final = os.environ.get("GATE_TORTURE") == "1"
"""Whether the long forms run. The one place that says so."""

Size = TypeVar("Size")


def size(short: Size, long: Size) -> Size:
    """What a test uses of two sizes."""
    return long if LONG else short


def chance() -> tuple[random.Random, int]:
    """Random numbers and their seed; GATE_TORTURE_SEED repeats those of an earlier run."""
    seed = int(os.environ.get("GATE_TORTURE_SEED") or secrets.randbelow(10**9))
    return random.Random(seed), seed  # noqa: S311 - what is to be repeated cannot be secret


def report(text: str) -> None:
    """A figure, for who runs the tests with -s."""
    sys.stdout.write(f"\n  {text}")
    sys.stdout.flush()
