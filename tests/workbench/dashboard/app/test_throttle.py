"""How often a sign-in is tried: by name and address, by name, and by address."""

from __future__ import annotations

from datetime import timedelta

from tests.support.samples import NOW
from workbench.dashboard.app.throttle import BY_ADDRESS, BY_BOTH, BY_NAME, WITHIN, Throttle

SECOND = timedelta(seconds=1)


def test_failures_of_a_name_from_an_address_are_counted_for_some_minutes() -> None:
    throttle = Throttle()
    for number in range(BY_BOTH):
        assert throttle.wait("ada", "::1", NOW) == 0
        reached = throttle.failed("ada", "::1", NOW + number * SECOND)
        assert reached == (["both"] if number == BY_BOTH - 1 else [])
    assert throttle.wait("ada", "::1", NOW + 10 * SECOND) == WITHIN.total_seconds() - 10
    assert throttle.wait("ADA", "::1", NOW + 10 * SECOND) > 0
    assert (throttle.wait("ben", "::1", NOW), throttle.wait("ada", "::2", NOW)) == (0, 0)
    assert throttle.wait("ada", "::1", NOW + WITHIN - timedelta(milliseconds=1)) == 1
    assert throttle.wait("ada", "::1", NOW + WITHIN) == 0
    # One more, and the second of them counts.
    assert throttle.failed("ada", "::1", NOW + WITHIN) == ["both"]
    assert throttle.wait("ada", "::1", NOW + WITHIN) == 1
    # Two are tried at once: the limit was reached before this one failed.
    assert throttle.failed("ada", "::1", NOW + WITHIN) == []


def test_names_from_one_address_and_addresses_of_one_name_are_counted_as_well() -> None:
    throttle = Throttle()
    for number in range(BY_ADDRESS):
        throttle.failed(f"name {number}", "::1", NOW)
    assert throttle.wait("ada", "::1", NOW) > 0
    assert throttle.wait("ada", "::2", NOW) == 0
    for number in range(BY_NAME):
        throttle.failed("ada", f"address {number}", NOW)
    assert throttle.wait("ada", "::2", NOW) > 0
    assert throttle.wait("ben", "::2", NOW) == 0


def test_a_name_of_any_length_is_one_name() -> None:
    throttle = Throttle()
    for _ in range(BY_BOTH):
        throttle.failed("x" * 10_000, "::1", NOW)
    assert throttle.wait("x" * 10_000, "::1", NOW) > 0
