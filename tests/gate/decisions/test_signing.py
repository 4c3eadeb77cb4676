"""What signs many records that are made one after the other: looked up once a second, and as soon as the clock errs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from gate.decisions.signing import Signing
from gate.errors import ServiceUnavailable
from gate.proof.signing import Ed25519Signer
from gate.records.record import Signers

_START = datetime(2026, 11, 29, 12, tzinfo=UTC)


class _Clock:
    def __init__(self) -> None:
        self.now = _START

    def __call__(self) -> datetime:
        return self.now


def _counted(not_before: str | None = None) -> tuple[Callable[[], Signers], list[None]]:
    looked: list[None] = []
    signer = Ed25519Signer("key-1", bytes(32), not_before=not_before)

    def signers() -> Signers:
        looked.append(None)
        return Signers(signer, None)

    return signers, looked


def test_many_look_up_what_signs_once_a_second_and_tell_each_moment() -> None:
    clock = _Clock()
    signers, looked = _counted()
    signing = Signing(signers, clock).for_many()
    for milliseconds, times in ((0, 1), (1, 1), (999, 1), (1000, 2), (1999, 2), (2000, 3)):
        clock.now = _START + timedelta(milliseconds=milliseconds)
        assert signing()[1] == clock.now
        assert len(looked) == times


def test_one_by_one_what_signs_is_looked_up_each_time() -> None:
    signers, looked = _counted()
    signing = Signing(signers, _Clock())
    for times in (1, 2, 3):
        signing()
        assert len(looked) == times


def test_none_of_many_is_dated_before_its_key_was_valid() -> None:
    clock = _Clock()
    signers, _ = _counted(not_before="2026-11-29T12:00:00.000Z")
    signing = Signing(signers, clock).for_many()
    signing()
    clock.now = _START - timedelta(milliseconds=1)
    with pytest.raises(ServiceUnavailable, match="before its key key-1 became valid") as refused:
        signing()
    assert refused.value.code == "SVC_SIGNING_UNAVAILABLE"
