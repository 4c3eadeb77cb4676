"""Whether the time that a refusal takes tells how much of a key was right.

Keys are compared as SHA-256 digests of the whole key, by hmac.compare_digest. `make test` shows that nothing else
compares them; `make torture` measures 100,000 interleaved attempts.
"""

from __future__ import annotations

import hmac
import random
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from types import SimpleNamespace
from typing import ClassVar, Final

import pytest

from gate.clock import utc_now
from gate.errors import AccessRefused
from gate.ledger import Ledger
from gate.ledger.access import scopes
from tests.support.torture import LONG, chance, report

ATTEMPTS: Final = 100_000
_ALIKE_T: Final = 5.0
"""A Welch's t that two distributions alike in their means exceed about once in two million times."""


def _other(character: str) -> str:
    return "A" if character != "A" else "B"


def _attempts(key: str) -> dict[str, str]:
    """The key as it is, and wrong in one way each."""
    prefix, key_id, secret = key.split("_", 2)
    return {
        "right": key,
        "first wrong": f"{prefix}_{key_id}_{_other(secret[0])}{secret[1:]}",
        "last wrong": f"{prefix}_{key_id}_{secret[:-1]}{_other(secret[-1])}",
        "all wrong": f"{prefix}_{key_id}_{''.join(map(_other, secret))}",
        "unknown id": f"{prefix}_{key_id[:-1]}{'0' if key_id[-1] != '0' else '1'}_{secret}",
    }


class _Watched(str):
    """A text that tells who compares it."""

    __slots__ = ()
    compared: ClassVar[list[str]] = []

    def __eq__(self, other: object) -> bool:
        self.compared.append("==")
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self.compared.append("!=")
        return str.__ne__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


@pytest.mark.parametrize("way", ["authenticate", "recognize"])
@pytest.mark.parametrize("attempt", ["right", "first wrong", "last wrong", "all wrong", "unknown id"])
def test_keys_are_compared_as_digests_in_constant_time_alone(
    ledger: Ledger, key: str, way: str, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.directory.authenticate(key, utc_now())
    sent = _attempts(key)[attempt]
    compared: list[tuple[str, str]] = []

    def compare_digest(one: str, other: str) -> bool:
        compared.append((str(one), str(other)))
        return hmac.compare_digest(str(one), str(other))

    monkeypatch.setattr(scopes, "hmac", SimpleNamespace(compare_digest=compare_digest))
    monkeypatch.setattr(scopes, "_hash", lambda text: _Watched(sha256(text.encode()).hexdigest()))
    _Watched.compared.clear()
    find = getattr(ledger.directory, way)
    if attempt == "right":
        assert find(sent, utc_now()).key_id == key.split("_")[1]
    else:
        with pytest.raises(AccessRefused, match="is unknown"):
            find(sent, utc_now())
    digest = sha256(sent.encode()).hexdigest()
    known = "0" * 64 if attempt == "unknown id" else sha256(key.encode()).hexdigest()
    # Recognizing falls back on authenticating, which compares once more.
    assert set(compared) == {(known, digest)}
    assert _Watched.compared == []


@pytest.mark.skipif(not LONG, reason="100,000 attempts are for `make torture`")
@pytest.mark.parametrize("way", ["authenticate", "recognize"])
def test_a_refusal_takes_as_long_for_a_first_wrong_character_as_for_a_last(ledger: Ledger, key: str, way: str) -> None:
    chosen, seed = chance()
    attempts = _attempts(key)
    find = getattr(ledger.directory, way)
    taken = _interleaved(attempts, lambda sent: _try(find, sent), chosen)
    for name, times in taken.items():
        report(f"{way}, {name}: median {statistics.median(times):,.0f} ns of {len(times):,}")
    t = _welch_t(_trimmed(taken["first wrong"]), _trimmed(taken["last wrong"]))
    difference = statistics.median(taken["first wrong"]) - statistics.median(taken["last wrong"])
    report(f"{way}, first wrong - last wrong: {difference:+,.0f} ns in the median, t = {t:+.2f} (seed {seed})")
    assert abs(t) < _ALIKE_T


def _try(find: Callable[..., object], sent: str) -> int:
    now = utc_now()
    started = time.perf_counter_ns()
    with suppress(AccessRefused):
        find(sent, now)
    return time.perf_counter_ns() - started


def _interleaved(
    attempts: dict[str, str], attempt: Callable[[str], int], chosen: random.Random
) -> dict[str, list[int]]:
    """The nanoseconds of each attempt: all kinds as often as one another, in an order that no clock can follow."""
    order = [*attempts] * (ATTEMPTS // len(attempts))
    chosen.shuffle(order)
    taken: dict[str, list[int]] = {name: [] for name in attempts}
    for name in order:
        taken[name].append(attempt(attempts[name]))
    return taken


def _trimmed(times: list[int]) -> list[int]:
    """Without the slowest tenth, which is the machine's doing."""
    return sorted(times)[: len(times) * 9 // 10]


def _welch_t(one: list[int], other: list[int]) -> float:
    spread = sum(statistics.variance(times) / len(times) for times in (one, other))
    return float((statistics.fmean(one) - statistics.fmean(other)) / spread**0.5)
