"""Packets that earlier releases exported: they verify offline against kept keys and checkpoints, and not if changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command_line import run_gate
from tests.upgrade.kept import ON_SQLITE, Kept, Release

pytestmark = pytest.mark.parametrize("release", ON_SQLITE, indirect=True, ids=lambda archive: archive.parent.name)


def verification(kept: Kept, packet: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the result of verifying a packet with everything that was kept beside it."""
    material = ["--registry", str(kept.file("receipt-keys")), "--checkpoint", str(kept.file("checkpoints/harbor"))]
    done = run_gate("verify-packet", "-", *material, "--require-signed-reports", "--json", stdin=packet)
    return done.returncode, json.loads(done.stdout)


def test_a_packet_verifies_and_a_changed_one_does_not(release: Release) -> None:
    kept = release.kept
    names = kept.names("packets")
    assert len(names) == 3
    for name in names:
        packet = kept.file(name).read_text()
        code, result = verification(kept, packet)
        assert (code, result["verified"], result["checks"]["reports_signed"]) == (0, True, True), name
        changed = packet.replace('"execution_status": "', '"execution_status": "not ', 1)
        assert changed != packet, name
        code, result = verification(kept, changed)
        assert (code, result["error"]) == (1, "PACKET_INTEGRITY_FAILED"), name
