"""Many clients, processes and servers at once on one ledger, and operators who change things meanwhile."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from gate.clock import new_id
from gate.decisions.stored import stored_record
from gate.errors import GateError
from gate.instance.audit import check_chain
from gate.instance.instance import create_instance, open_instance
from gate.instance.keys import PURPOSES, KeyRing
from gate.instance.settings import load_settings
from gate.labels import VIEWS
from gate.ledger.access.authority import FULL_ACCESS, PLANS
from gate.ledger.access.limits import WINDOW, open_limits
from gate.proof import chain
from gate.records.reports.receipts import KINDS, Kind
from gate.verify import verify_record
from tests.end_to_end.conftest import Databases
from tests.end_to_end.processes import PART, Processes, append_many, ask_often, new_processes
from tests.end_to_end.site import (
    Crew,
    Load,
    Site,
    answered_report,
    connections_of,
    side_by_side,
    verification,
)
from tests.end_to_end.support import Server, post_decide
from tests.independent import verifier
from tests.support.samples import NOW, REPORTS, sample_request
from tests.support.torture import report, size

IN_2038 = datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC)

STARTER = PLANS["starter"].requests_per_minute or 0


@dataclass(frozen=True, slots=True)
class Pair:
    """An instance with two servers, one of them of two processes. They serve every test, each in scopes of its own."""

    site: Site
    servers: Sequence[Server]

    @property
    def urls(self) -> list[str]:
        """Where they answer."""
        return [server.url for server in self.servers]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Pair]:
    """Two servers on one ledger."""
    site = Site(tmp_path_factory.mktemp("pair") / "home", databases())
    site.gate("scopes", "create", "first")
    with ExitStack() as stack:
        starting = [site.serving(), site.serving(size(1, 2))]
        yield Pair(site, side_by_side(stack.enter_context, starting))


@contextmanager
def connected(servers: Sequence[Server], key: str, count: int) -> Iterator[list[httpx.Client]]:
    """Clients with an open connection each, by turns to each server; every process of every server has some."""
    for _ in range(20):
        with ExitStack() as stack:
            clients = [
                stack.enter_context(
                    httpx.Client(
                        base_url=servers[number % len(servers)].url,
                        headers={"x-api-key": key},
                        timeout=30,
                        trust_env=False,
                    )
                )
                for number in range(count)
            ]
            for client in clients:
                client.get("/api/decision/verify").raise_for_status()
            if all(connections and min(connections.values()) for connections in map(connections_of, servers)):
                yield clients
                return
    raise AssertionError("one process of a server takes all connections")


def test_one_key_from_many_clients_and_servers_makes_one_record(pair: Pair) -> None:
    key, rounds, count = pair.site.create_key("one-key"), size(2, 100), 32
    statuses: Counter[str] = Counter()
    with connected(pair.servers, key, count) as clients:
        processes = [list(connections_of(server).values()) for server in pair.servers]
        for number in range(rounds):
            start = threading.Barrier(count)

            def ask(client: int, name: str = f"order {number}", start: threading.Barrier = start) -> httpx.Response:
                # The same payload, its numbers spelt in two ways.
                body = sample_request(discount_percent=10.0 if client % 2 else 10, margin_percent=22)
                headers = {"x-idempotency-key": name, "x-decision-response-view": VIEWS[client % len(VIEWS)]}
                start.wait(30)
                return clients[client].post("/api/decide", json=body, headers=headers)

            answers = side_by_side(ask, range(count), threads=count)
            assert {answer.status_code for answer in answers} == {200}
            statuses.update(answer.headers["x-idempotency-status"] for answer in answers)
            for view in range(len(VIEWS)):
                assert len({answer.content for answer in answers[view :: len(VIEWS)]}) == 1
            other = sample_request(discount_percent=11, margin_percent=22)
            refused = clients[number % count].post(
                "/api/decide", json=other, headers={"x-idempotency-key": f"order {number}"}
            )
            assert (refused.status_code, refused.json()["error"]) == (409, "SVC_API_IDEMPOTENCY_CONFLICT")
            full = answers[VIEWS.index("full")].json()
            assert refused.json()["existing_input_hash"] == full["input_hash"] != refused.json()["input_hash"]
    assert statuses == {"created": rounds, "replayed": rounds * (count - 1)}
    assert [record["idempotency_key"] for record in map(stored_record, pair.site.chain("one-key"))] == [
        f"order {n}" for n in range(rounds)
    ]
    report(f"{rounds} rounds, {dict(statuses)}; connections of each process of each server: {processes}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_one_key_from_many_clients_and_servers_makes_one_report(pair: Pair, kind: Kind) -> None:
    scope = f"one-key-{kind.name}"
    key, rounds, count = pair.site.create_key(scope), size(4, 100), 24
    conflict, in_progress = (f"SVC_{kind.code}_IDEMPOTENCY_{word}" for word in ("CONFLICT", "IN_PROGRESS"))
    seen: Counter[str] = Counter()
    made: list[tuple[str, bytes]] = []
    with connected(pair.servers, key, count) as clients:
        for number in range(rounds):
            record = clients[number % count].post("/api/decide", json=sample_request()).json()
            # In every second round the clients want to report two different things.
            payloads = [REPORTS[kind.name], {**REPORTS[kind.name], "decision_record_hash": record["record_hash"]}]
            name, start = f"job {number}", threading.Barrier(count)

            def ask(
                client: int,
                path: str = f"{record['decision_url']}/{kind.name}",
                bodies: Sequence[dict[str, Any]] = payloads[: 1 + number % 2],
                name: str = name,
                start: threading.Barrier = start,
            ) -> httpx.Response:
                start.wait(30)
                headers = {"x-idempotency-key": name}
                return clients[client].post(path, json=bodies[client % len(bodies)], headers=headers)

            answers = side_by_side(ask, range(count), threads=count)
            (created,) = [answer for answer in answers if answer.status_code == 201]
            winner = answers.index(created) % (1 + number % 2)
            for client, answer in enumerate(answers):
                told = answer.headers.get("x-idempotency-status") or answer.json()["error"]
                seen[told] += 1
                if client % (1 + number % 2) == winner:
                    assert told in ("created", "replayed", in_progress)
                    assert told == in_progress or answer.content == created.content
                else:
                    assert told in (conflict, in_progress)
            # Once all have ended, nothing is in progress any more, whoever is asked.
            after = [ask(client, start=threading.Barrier(1)) for client in range(8)]
            same = [answer for client, answer in enumerate(after) if client % (1 + number % 2) == winner]
            assert {(answer.status_code, answer.content) for answer in same} == {(200, created.content)}
            assert {answer.json()["error"] for answer in after if answer not in same} <= {conflict}
            made.append((f"{kind.name} {name}", created.content))
    entries = [entry for entry in pair.site.chain(scope) if entry.link["entry_type"] != "decision"]
    assert [answered_report(entry) for entry in entries] == made
    assert seen["created"] == rounds
    report(f"{rounds} rounds, {dict(seen)}")


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """Four processes beside this one."""
    with new_processes(4) as running:
        yield running


def test_four_processes_append_to_one_chain_without_fork_or_gap(site: Site, processes: Processes) -> None:
    site.gate("scopes", "create", "acme", "--plan", "unlimited")
    each = size(200, 5000)
    with site.ledger() as ledger:
        scope_id = ledger.directory.scope("acme").scope_id
        processes.each(append_many, site.ledger_url, scope_id, each)
        head = ledger.entries.head(scope_id)
        links = [entry.link for entry in ledger.entries.walk(scope_id, up_to=head.size)]
    assert [link["chain_position"] for link in links] == list(range(1, 4 * each + 1))
    assert verifier.link_failures(links) == []
    assert (head.merkle_root, head.link_hash) == (links[-1]["merkle_root"], links[-1]["link_hash"])
    serials = [int(link["record_hash"], 16) for link in links]
    # What one process appended stands in the order in which it was told so.
    for part in range(4):
        assert [n for n in serials if n // PART == part] == list(range(part * PART, part * PART + each))
    changes = sum(one // PART != next_ // PART for one, next_ in pairwise(serials))
    report(f"{len(links)} links; after {changes} of them the next is another process's")


def require_limit(admitted: Iterable[tuple[float, float]]) -> None:
    """Requires that no window saw more admissions than a starter key has, each between two moments."""
    before, after = map(sorted, zip(*admitted, strict=True))
    # PostgreSQL counts by a clock of its own, whose seconds may differ a little.
    windows = zip(before, after[STARTER:], strict=False)
    assert [late - early for early, late in windows if late - early < WINDOW - 0.1] == []


def test_a_rate_limit_is_exact_over_processes(site: Site, processes: Processes) -> None:
    key_id = site.create_key("acme", "starter").split("_")[1]
    with site.ledger() as ledger:
        scope_id = ledger.directory.scope("acme").scope_id
        open_limits(ledger.store).close()
    seconds = size(0, 130)
    asked = processes.each(ask_often, site.ledger_url, scope_id, key_id, STARTER, seconds)
    admitted = [moments for one in asked for moments in one.admitted]
    require_limit(admitted)
    assert len(admitted) == STARTER * (1 + seconds // int(WINDOW))
    assert all(1 <= wait <= WINDOW for one in asked for wait in one.waits)
    refused = sum(one.refused for one in asked)
    report(f"{len(admitted)} requests admitted and {refused} refused in {seconds or 'a few'} seconds")


def test_limits_are_exact_over_servers(pair: Pair) -> None:
    cap, count = 25, size(60, 300)
    pair.site.gate("scopes", "create", "capped", "--plan", "team", "--monthly-cap", str(cap))
    keys = {
        "limited": pair.site.create_key("limited", "starter"),
        "capped": pair.site.gate("keys", "create", "--scope", "capped")["key"],
    }
    answers: dict[str, list[httpx.Response]] = {}
    for scope, key in keys.items():
        with connected(pair.servers, key, 12) as clients:

            def ask(number: int, clients: Sequence[httpx.Client] = clients) -> httpx.Response:
                return clients[number % len(clients)].post("/api/decide", json=sample_request())

            answers[scope] = side_by_side(ask, range(count), threads=len(clients))
    errors = {"limited": "SVC_API_RATE_LIMITED", "capped": "SVC_API_MONTHLY_CAP_EXCEEDED"}
    for scope, allowed in (("limited", STARTER), ("capped", cap)):
        assert Counter(answer.status_code for answer in answers[scope]) == {200: allowed, 429: count - allowed}
        refused = [answer for answer in answers[scope] if answer.status_code == 429]
        assert {answer.json()["error"] for answer in refused} == {errors[scope]}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        made = {answer.json()["decision_id"] for answer in answers[scope] if answer.status_code == 200}
        assert {entry.entry_id for entry in pair.site.chain(scope)} == made
        report(f"{scope}: {len(made)} of {count} requests answered with 200, the others with 429 {errors[scope]}")


class Clock:
    """A clock that goes on from whatever it is set to."""

    def __init__(self, moment: datetime) -> None:
        self.set(moment)

    def __call__(self) -> datetime:
        moment, since = self._set
        return moment + timedelta(seconds=time.monotonic() - since)

    def set(self, moment: datetime) -> None:
        self._set = moment, time.monotonic()


@dataclass
class Answers:
    """What callers were answered.

    Attributes:
        records: The records, by scope.
        refusals: The codes of the refusals, by scope, and how often each came.
        admitted: The moments before and after each admission by the rate limiter.
    """

    records: dict[str, list[Any]]
    refusals: dict[str, Counter[str]]
    admitted: list[tuple[float, float]]

    def more(self, number: int) -> Callable[[], bool]:
        """Whether so many more decisions were answered, one way or the other."""
        goal = self._count() + number
        return lambda: self._count() >= goal

    def _count(self) -> int:
        return sum(map(len, self.records.values())) + sum(refused.total() for refused in self.refusals.values())


def test_a_clock_that_jumps_breaks_nothing(
    tmp_path: Path, database_url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, clock, cap = tmp_path / "home", Clock(NOW), 20
    for purpose in PURPOSES:
        KeyRing(home / "keys", purpose).create(NOW - timedelta(days=1))
    create_instance(home, database_url=database_url)
    monkeypatch.setattr(time, "time", lambda: clock().timestamp())
    jumps = [NOW, NOW + timedelta(hours=2), NOW - timedelta(hours=2), datetime(1970, 1, 1, tzinfo=UTC), IN_2038, NOW]
    answers = Answers({"acme": [], "capped": []}, {"acme": Counter(), "capped": Counter()}, [])
    with closing(open_instance(load_settings(home, database_url=database_url))) as instance:
        directory, gate, limiter = instance.ledger.directory, instance.gate(clock), instance.limiter
        scopes = {
            "acme": directory.create_scope("acme", "unlimited", NOW),
            "capped": directory.create_scope("capped", "team", NOW, monthly_cap=cap),
        }
        callers = {
            name: directory.authenticate(directory.create_key(scope, FULL_ACCESS, None, NOW)[0], clock())
            for name, scope in scopes.items()
        }

        def turn(_: int) -> None:
            for name, caller in callers.items():
                try:
                    decision = gate.decide(caller, sample_request(), request_id=new_id("req", clock()))
                except GateError as refusal:
                    answers.refusals[name][refusal.code] += 1
                else:
                    answers.records[name].append(decision.record)
            before = time.monotonic()
            if limiter.admit(caller.scope_id, caller.key_id, STARTER).admitted:
                answers.admitted.append((before, time.monotonic()))

        with Crew(4, turn) as crew:
            for moment in jumps * size(1, 20):
                clock.set(moment)
                made = len(answers.records["acme"])
                crew.wait_until(answers.more(60))
        assert len(answers.records["acme"]) > made
        # Before the signing keys were in use, nothing is decided; nothing else but the cap refuses anything.
        assert set(answers.refusals["acme"]) == {"SVC_SIGNING_UNAVAILABLE"}
        assert set(answers.refusals["capped"]) == {"SVC_SIGNING_UNAVAILABLE", "SVC_API_MONTHLY_CAP_EXCEEDED"}
        months = Counter(record["created_at"][:7] for record in answers.records["capped"])
        assert months == {"2026-06": cap, "2038-01": cap}
        for name, scope in scopes.items():
            made = len(answers.records[name])
            head, links = instance.ledger.entries.latest_links(scope.scope_id, made)
            assert [link["chain_position"] for link in links] == list(range(1, head.size + 1))
            assert chain.find_break(links, start=chain.Head(scope.chain_id), end=head) is None
            assert check_chain(instance, scope.scope_id) == (made, None)
            assert {link["decision_id"] for link in links} == {r["decision_id"] for r in answers.records[name]}
            assert [r for r in answers.records[name] if not verify_record(r, instance.trust()).verified] == []
            dates = [link["created_at"] for link in links]
            report(f"{name}: {made} records, {sum(late < early for early, late in pairwise(dates))} times back in time")
    require_limit(answers.admitted)
    assert len(answers.admitted) >= STARTER
    report(f"{len(answers.admitted)} admitted by the rate limiter; refused {dict(answers.refusals['capped'])}")


def test_signing_keys_change_under_load_without_a_failed_answer(pair: Pair) -> None:
    key, rounds = pair.site.create_key("signed"), size(3, 30)
    with Load(pair.urls, key, pause=size(0.2, 0.1)) as load:
        load.wait_for(10)
        for _ in range(rounds):
            side_by_side(lambda purpose: pair.site.gate("signing-keys", "rotate", "--purpose", purpose), PURPOSES)
            load.wait_for(10)
        before = dated(load.answers.values())
        assert set(verification(pair.urls[0], key, before).values()) == {None}
        receipt_keys = list(dict.fromkeys(record["receipt_key_id"] for record in before))
        registry_keys = {record["rulebook_attestation"]["signature"]["key_id"] for record in before}
        assert len(receipt_keys) == len(registry_keys) == rounds + 1

        dates = [record["created_at"] for record in before if record["receipt_key_id"] == receipt_keys[0]]
        not_after = dates[len(dates) // 2]
        compromised = {receipt_keys[1], receipt_keys[-1]}
        pair.site.gate("signing-keys", "retire", receipt_keys[0], "--not-after", not_after)
        for key_id in compromised:
            pair.site.gate("signing-keys", "compromise", "--yes", key_id)
        after = [post_decide(url, key, sample_request()).json() for url in pair.urls * 4]
        load.wait_for(10)

    def error(record: dict[str, Any]) -> str | None:
        late = record["receipt_key_id"] == receipt_keys[0] and record["created_at"] > not_after
        return "SIGNING_KEY_NOT_TRUSTED" if late or record["receipt_key_id"] in compromised else None

    records = [*dated(load.answers.values()), *after]
    errors = {record["decision_id"]: error(record) for record in records}
    assert verification(pair.urls[0], key, records) == errors
    assert load.failures == {}
    assert len(pair.site.chain("signed")) == len(records)
    assert not {record["receipt_key_id"] for record in after} & set(receipt_keys)
    # Some of what the retired key signed still counts, and some no longer.
    assert {errors[record["decision_id"]] for record in before if record["receipt_key_id"] == receipt_keys[0]} == {
        None,
        "SIGNING_KEY_NOT_TRUSTED",
    }
    report(
        f"{len(records)} decisions, none failed; {len(receipt_keys) + 1} receipt keys, {len(registry_keys)} registry "
        f"keys; {len(records) - Counter(errors.values())[None]} do not verify any more, for their key's sake"
    )


def dated(bodies: Iterable[bytes]) -> list[dict[str, Any]]:
    """Answered records by date."""
    return sorted(map(json.loads, list(bodies)), key=lambda record: str(record["created_at"]))


def test_a_key_that_is_rotated_and_then_disabled_is_refused_by_every_process(pair: Pair) -> None:
    old = pair.site.create_key("rotated")
    seen: Counter[tuple[str, int]] = Counter()
    with connected(pair.servers, old, 8) as clients:
        for _ in range(size(1, 20)):
            keys, disabled = [old], threading.Event()
            answers: list[tuple[str, int]] = []
            turn = partial(ask_by_turns, clients, keys, disabled, answers, itertools.count())
            with Crew(len(clients), turn) as crew:
                crew.wait_until(partial(longer_than, answers, 50))
                keys.append(pair.site.gate("keys", "rotate", old.split("_")[1], "--overlap-hours", "1")["key"])
                crew.wait_until(partial(longer_than, answers, len(answers) + 50))
                pair.site.gate("keys", "disable", "--yes", old.split("_")[1])
                disabled.set()
                crew.wait_until(partial(longer_than, answers, len(answers) + 100))
            # Until `gate keys disable` has returned, either answer is right.
            assert {status for key, status in answers if key == "old"} <= {200, 403}
            assert {status for key, status in answers if key == "old, disabled"} == {403}
            assert {status for key, status in answers if key == "new"} == {200}
            seen.update(answers)
            old = keys[-1]
    assert len(pair.site.chain("rotated")) == sum(number for (_, status), number in seen.items() if status == 200)
    report(", ".join(f"{number} times {status} with the {key} key" for (key, status), number in sorted(seen.items())))


def ask_by_turns(
    clients: Sequence[httpx.Client],
    keys: Sequence[str],
    disabled: threading.Event,
    answers: list[tuple[str, int]],
    turns: Iterator[int],
    client: int,
) -> None:
    """Decides with one key and then with another; notes which, and whether the first was disabled before it began."""
    key = keys[next(turns) % len(keys)]
    which = "new" if key != keys[0] else "old, disabled" if disabled.is_set() else "old"
    answer = clients[client].post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    answers.append((which, answer.status_code))
    time.sleep(0.02)


def longer_than(found: Sequence[object], number: int) -> bool:
    """Whether so many are there by now."""
    return len(found) > number


def test_a_backup_under_load_is_a_whole_part_of_what_goes_on(pair: Pair, databases: Databases, tmp_path: Path) -> None:
    key = pair.site.create_key("kept")
    with Load(pair.urls, key, pause=size(0.2, 0.03)) as load:
        for number in range(size(1, 20)):
            load.wait_for(20)
            file, before = str(tmp_path / f"backup-{number}"), set(load.answers)
            pair.site.gate("backup", file)
            after = len(load.answers)
            copy = Site(tmp_path / f"copy-{number}", databases())
            assert copy.gate("restore", file)["whole"] is True
            entries = copy.entries("kept")
            assert before <= {stored_record(entry)["idempotency_key"] for entry in entries}
            assert entries == pair.site.entries("kept")[: len(entries)]
            report(f"begun after {len(before)} answers, ended after {after}: {len(entries)} entries")
    assert load.failures == {}
    records = map(stored_record, pair.site.chain("kept"))
    assert {record["idempotency_key"]: orjson.dumps(record) for record in records} == load.answers
