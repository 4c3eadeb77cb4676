"""The page of attacks on packets, from the cases that tests/gate/verify/test_packet.py carries out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

SOURCE: Final = "tests/cases/packet_attacks.json"

_INTRODUCTION: Final = """\
# Attacks on a packet

Which check finds which change to a packet? A test carries out every attack below and requires this result.
[Packet attacks](../explanation/packet-attacks.md) explains the result. [Packet checks](packet-checks.md) lists every
check by name.

"Not found" means that the packet still verifies. The checks after `null` are then reported as not made.

| attack | the attacker also | found by |
|---|---|---|
"""


def pages() -> dict[str, str]:
    """The one page."""
    attacks: list[dict[str, Any]] = json.loads((Path(__file__).parents[4] / SOURCE).read_text())
    return {"packet-attacks.md": _INTRODUCTION + "".join(map(_row, attacks))}


def _row(attack: dict[str, Any]) -> str:
    found = _names(attack["finds"])
    if not found:
        found = f"not found; `null`: {_names(attack['tells'])}" if attack["tells"] else "not found"
    return f"| {attack['changed']} | {attack['attacker']} | {found} |\n"


def _names(checks: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in checks)
