"""What several ask for is computed once, bounded, and not kept where it failed."""

from __future__ import annotations

from functools import partial
from threading import Barrier, Event, Thread

from workbench.dashboard.store.memo import Memo


def test_a_value_is_computed_once_for_all_who_ask_meanwhile() -> None:
    memo, begun, go, found, computed = Memo(2), Event(), Event(), list[int](), list[int]()

    def compute() -> int:
        computed.append(1)
        begun.set()
        go.wait(20)
        return 7

    threads = [Thread(target=lambda: found.append(memo.get("key", compute))) for _ in range(4)]
    threads[0].start()
    begun.wait(20)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert (found, computed) == ([7] * 4, [1])
    assert memo.get("key", lambda: 8) == 7


def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    memo, together, failures = Memo(2), Barrier(2), list[str]()

    def fail() -> int:
        raise ValueError("no")

    def ask() -> None:
        together.wait(20)
        try:
            memo.get("key", fail)
        except ValueError as error:
            failures.append(str(error))

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == ["no", "no"]
    assert memo.get("key", lambda: 1) == 1


def test_the_values_that_were_asked_for_last_are_kept() -> None:
    memo = Memo(2)
    for key in ("a", "b", "a", "c"):
        memo.get(key, lambda: 0)
    assert [memo.get(key, lambda: 1) for key in ("a", "c")] == [0, 0]
    assert memo.get("b", lambda: 1) == 1


def test_each_key_has_a_value_of_its_own() -> None:
    memo = Memo(10)
    keys = [("a", None), ("a", ""), ("a",), "a"]
    for number, key in enumerate(keys):
        memo.get(key, partial(int, number))
    assert [memo.get(key, lambda: -1) for key in keys] == [0, 1, 2, 3]


def test_a_value_that_may_not_be_used_any_more_is_computed_again() -> None:
    memo = Memo(2)
    assert memo.get("a", lambda: 1) == 1
    assert memo.get("a", lambda: 2, still=lambda kept: kept == 1) == 1
    assert memo.get("a", lambda: 3, still=lambda kept: kept != 1) == 3


def test_dropped_values_are_computed_again_and_the_others_are_kept() -> None:
    memo = Memo(9)
    for key in ("a", "b"):
        memo.get(key, lambda: 1)
    memo.drop(lambda key: key == "a")
    assert [memo.get(key, lambda: 2) for key in ("a", "b")] == [2, 1]
