"""Group commit: batches form behind a slow commit, each item gets its own answer, nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gate.errors import GateError, ServiceUnavailable
from gate.ledger.chain import group_commit
from gate.ledger.chain.group_commit import GroupCommit, Take


class SlowCommit:
    """Commits by doubling; the first batch waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = threading.Event()
        self.go = threading.Event()

    def __call__(self, take: Take[int]) -> Sequence[int | GateError]:
        items = take()
        self.batches.append(list(items))
        if len(self.batches) == 1:
            self.started.set()
            assert self.go.wait(10)
        return [GateError("ODD", "odd") if item % 2 else item * 2 for item in items]


def submit_all(commits: GroupCommit[int, int], items: list[int]) -> tuple[list[threading.Thread], dict[int, object]]:
    results: dict[int, object] = {}

    def submit(item: int) -> None:
        try:
            results[item] = commits.submit(item)
        except GateError as error:
            results[item] = error.code

    threads = [threading.Thread(target=submit, args=(item,)) for item in items]
    for thread in threads:
        thread.start()
    return threads, results


def wait_until_queued(commits: GroupCommit[int, int], count: int) -> None:
    pause = threading.Event()
    for _ in range(5000):
        if commits._queued == count:
            return
        pause.wait(0.001)
    raise AssertionError(f"{commits._queued} of {count} are queued")


def test_what_arrives_during_a_commit_is_committed_together_and_answered_one_by_one() -> None:
    slow = SlowCommit()
    commits: GroupCommit[int, int] = GroupCommit(slow)
    first, first_result = submit_all(commits, [0])
    assert slow.started.wait(10)
    others, results = submit_all(commits, list(range(1, 20)))
    wait_until_queued(commits, 19)
    slow.go.set()
    for thread in first + others:
        thread.join(10)
    assert first_result == {0: 0}
    assert results == {item: "ODD" if item % 2 else item * 2 for item in range(1, 20)}
    assert [len(batch) for batch in slow.batches] == [1, 19]


def test_a_batch_is_bounded_and_the_rest_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MAX_BATCH", 4)
    slow = SlowCommit()
    commits: GroupCommit[int, int] = GroupCommit(slow)
    first, _ = submit_all(commits, [0])
    assert slow.started.wait(10)
    others, results = submit_all(commits, list(range(2, 22, 2)))
    wait_until_queued(commits, 10)
    slow.go.set()
    for thread in first + others:
        thread.join(10)
    assert results == {item: item * 2 for item in range(2, 22, 2)}
    assert max(len(batch) for batch in slow.batches) == 4


class TestTogether:
    """Items that are submitted together."""

    def test_they_are_committed_together_and_answered_one_by_one_in_their_order(self) -> None:
        slow = SlowCommit()
        commits: GroupCommit[int, int] = GroupCommit(slow)
        first, _ = submit_all(commits, [0])
        assert slow.started.wait(10)
        groups = [[2, 3, 4], [6], [8, 10, 11]]
        answers: dict[int, list[object]] = {}

        def submit(group: list[int]) -> None:
            found = commits.submit_all(group)
            answers[group[0]] = [one.code if isinstance(one, GateError) else one for one in found]

        threads = [threading.Thread(target=submit, args=(group,)) for group in groups]
        for number, thread in enumerate(threads):
            thread.start()
            wait_until_queued(commits, [3, 4, 7][number])
        slow.go.set()
        for thread in first + threads:
            thread.join(10)
        assert slow.batches == [[0], [2, 3, 4, 6, 8, 10, 11]]
        assert answers == {2: [4, "ODD", 8], 6: [12], 8: [16, 20, "ODD"]}

    def test_no_commit_takes_a_part_of_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(group_commit, "MAX_BATCH", 4)
        slow = SlowCommit()
        commits: GroupCommit[int, int] = GroupCommit(slow)
        first, _ = submit_all(commits, [0])
        assert slow.started.wait(10)
        groups = [[2, 4, 6], [8, 10], [12, 14], list(range(16, 30, 2)), [30]]
        threads = [threading.Thread(target=commits.submit_all, args=(group,)) for group in groups]
        for number, thread in enumerate(threads):
            thread.start()
            wait_until_queued(commits, sum(map(len, groups[: number + 1])))
        slow.go.set()
        for thread in first + threads:
            thread.join(10)
        # More than a commit takes otherwise go alone.
        assert slow.batches == [[0], [2, 4, 6], [8, 10, 12, 14], list(range(16, 30, 2)), [30]]
        assert commits.queued == 0

    def test_those_that_wait_too_long_leave_the_queue_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(group_commit, "WRITE_TIMEOUT", 0.05)
        slow = SlowCommit()
        commits: GroupCommit[int, int] = GroupCommit(slow)
        first, _ = submit_all(commits, [0])
        assert slow.started.wait(10)
        with pytest.raises(ServiceUnavailable, match="no turn to commit within"):
            commits.submit_all([2, 4, 6])
        assert commits.queued == 0
        slow.go.set()
        for thread in first:
            thread.join(10)
        assert slow.batches == [[0]]
        assert commits.submit_all([8, 10]) == [16, 20]


def test_a_full_queue_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MAX_QUEUE", 2)
    slow = SlowCommit()
    commits: GroupCommit[int, int] = GroupCommit(slow)
    first, _ = submit_all(commits, [0])
    assert slow.started.wait(10)
    others, results = submit_all(commits, [2, 4])
    wait_until_queued(commits, 2)
    with pytest.raises(ServiceUnavailable, match="too many requests"):
        commits.submit(6)
    slow.go.set()
    for thread in first + others:
        thread.join(10)
    assert results == {2: 4, 4: 8}


def test_who_waits_too_long_leaves_the_queue_uncommitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "WRITE_TIMEOUT", 0.05)
    slow = SlowCommit()
    commits: GroupCommit[int, int] = GroupCommit(slow)
    first, _ = submit_all(commits, [0])
    assert slow.started.wait(10)
    with pytest.raises(ServiceUnavailable, match="no turn to commit within"):
        commits.submit(2)
    slow.go.set()
    for thread in first:
        thread.join(10)
    assert slow.batches == [[0]]
    assert commits.submit(4) == 8, "the queue goes on"


def test_a_commit_that_breaks_off_fails_its_batch_and_not_the_next() -> None:
    calls = 0

    def commit(take: Take[int]) -> Sequence[int | GateError]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("torn")
        return list(take())

    commits: GroupCommit[int, int] = GroupCommit(commit)
    with pytest.raises(RuntimeError):
        commits.submit(1)
    assert commits.submit(2) == 2


def test_many_threads_get_their_own_answers() -> None:
    commits: GroupCommit[int, int] = GroupCommit(lambda take: [item * 2 for item in take()])
    results: dict[int, int] = {}

    def work(part: int) -> None:
        for number in range(200):
            item = part * 1000 + number
            results[item] = commits.submit(item)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 1600
    assert all(result == item * 2 for item, result in results.items())


def test_what_arrives_while_the_turn_to_write_is_awaited_is_in_the_batch() -> None:
    turn = threading.Event()
    batches: list[list[int]] = []

    def commit(take: Take[int]) -> Sequence[int | GateError]:
        assert turn.wait(10)
        batches.append(list(take()))
        assert take() == batches[-1], "a batch stays what it is"
        return batches[-1]

    commits: GroupCommit[int, int] = GroupCommit(commit)
    threads, results = submit_all(commits, [1, 2, 3])
    wait_until_queued(commits, 3)
    turn.set()
    for thread in threads:
        thread.join(10)
    assert sorted(results) == [1, 2, 3]
    assert [sorted(batch) for batch in batches] == [[1, 2, 3]]


def test_lanes_do_not_wait_for_each_other() -> None:
    held, go = threading.Event(), threading.Event()

    def commit(take: Take[int]) -> Sequence[int | GateError]:
        items = take()
        if 1 in items:
            held.set()
            assert go.wait(10)
        return list(items)

    commits: GroupCommit[int, int] = GroupCommit(commit)
    blocked = threading.Thread(target=commits.submit, args=(1, "a"))
    blocked.start()
    assert held.wait(10)
    assert commits.submit(2, "b") == 2
    go.set()
    blocked.join(10)
    assert commits._lanes == {}, "nothing is kept of a lane that nobody uses"


def test_callers_that_were_answered_together_are_committed_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "_GATHER_SECONDS", 0.5)
    sizes: list[int] = []

    def commit(take: Take[int]) -> Sequence[int | GateError]:
        sizes.append(len(take()))
        if len(sizes) == 1:
            wait_until_queued(commits, 3)
        return take()

    commits: GroupCommit[int, int] = GroupCommit(commit)

    def caller() -> None:
        for item in range(20):
            commits.submit(item)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(30)
    assert sum(sizes) == 80
    assert sizes.count(4) >= 15, "answered together, they come together"


def test_a_lone_caller_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    commits: GroupCommit[int, int] = GroupCommit(lambda take: take())
    monkeypatch.setattr(group_commit, "_GATHER_SECONDS", 600)
    assert [commits.submit(item) for item in range(3)] == [0, 1, 2]
    assert commits._lanes == {}


class LateLock:
    """A lock whose first wait ends just as the lead is handed over."""

    def __init__(self, handed_over: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._handed_over: Callable[[], None] | None = handed_over

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As a lock; the first wait with a limit fails, once the lead was handed over."""
        if timeout >= 0 and self._handed_over is not None:
            handed_over, self._handed_over = self._handed_over, None
            handed_over()
            return False
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        """As a lock."""
        self._lock.release()


def test_a_lead_that_comes_as_the_wait_for_it_ends_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "_GATHER_SECONDS", 5)
    begun, go, waits = threading.Event(), threading.Event(), threading.Event()

    def commit(take: Take[int]) -> Sequence[int | GateError]:
        items = take()
        if 1 in items:
            begun.set()
            assert waits.wait(10)
        return list(items)

    commits: GroupCommit[int, int] = GroupCommit(commit)
    first, _ = submit_all(commits, [1])
    assert begun.wait(10)

    def handed_over() -> None:
        waits.set()
        first[0].join(10)
        go.set()

    waiting: Any = group_commit._Waiting([2])
    waiting.wake = LateLock(handed_over)
    waiting.wake.acquire()
    with monkeypatch.context() as patched:
        patched.setattr(group_commit, "_Waiting", lambda item: waiting)
        second, results = submit_all(commits, [2])
        assert go.wait(10)
    third, more = submit_all(commits, [3])
    for thread in (*second, *third):
        thread.join(10)
    assert results == {2: 2}
    assert more == {3: 3}
