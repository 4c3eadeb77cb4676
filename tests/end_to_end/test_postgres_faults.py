"""PostgreSQL failing under a running service: callers see 200 or 503, and what they ask for is made once."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, product

import httpx
import jsonschema
import psycopg
import pytest

from gate.encoding import resources
from tests.end_to_end.postgres_proxy import Proxy, proxy_of
from tests.end_to_end.site import PATIENCE, Load, Site, request_of, side_by_side, wait_until, workers_of
from tests.end_to_end.support import Server
from tests.support.postgres import Postgres
from tests.support.torture import chance, report, size

GIVE_WAY = """
CREATE SEQUENCE IF NOT EXISTS attempts;
ALTER SEQUENCE attempts RESTART;
CREATE OR REPLACE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('attempts') <= {times} THEN
        RAISE EXCEPTION 'it has to give way' USING ERRCODE = '{code}';
    END IF;
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER give_way BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION give_way();
"""


# Callers at once: one with an idempotency key, one without, and eight of whom every second has one.
KEYS = ([True], [False], [True, False] * 4)


@dataclass(frozen=True, slots=True)
class Line:
    """An instance, and a server that reaches the ledger through a proxy. It serves several tests, each in its scope.

    Attributes:
        site: The instance; its ledger is reached directly.
        proxy: What stands between the server and the ledger.
        server: The server.
    """

    site: Site
    proxy: Proxy
    server: Server

    @contextmanager
    def calling(self, scope: str) -> Iterator[Caller]:
        """A client of the server while the block runs, for a scope of its own."""
        headers = {"x-api-key": self.site.create_key(scope), "content-type": "application/json"}
        with httpx.Client(base_url=self.server.url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
            yield Caller(client, self.site, scope)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Line]:
    """A server behind a proxy."""
    home = tmp_path_factory.mktemp("line") / "home"
    with postgres.database() as url, proxy_of(url) as proxy, Site(home, proxy.url(url)).serving() as server:
        yield Line(Site(home, url), proxy, server)


class Caller:
    """A client of a server, and every 200 that it was answered."""

    def __init__(self, client: httpx.Client, site: Site, scope: str) -> None:
        self.answers: list[httpx.Response] = []
        self._client = client
        self._site = site
        self._scope = scope

    def decide(self, name: str | None = None) -> httpx.Response:
        """A decision, under an idempotency key where one is given."""
        answer = self._client.post(
            "/api/decide", content=request_of(name or ""), headers={} if name is None else {"x-idempotency-key": name}
        )
        if answer.status_code == 200:
            self.answers.append(answer)
        return answer

    def decide_at_once(self, names: Sequence[str | None]) -> None:
        """Decisions side by side, each of which has to be answered with a new record."""
        answers = side_by_side(self.decide, names, threads=len(names))
        assert [answer.status_code for answer in answers] == [200] * len(names), [answer.text for answer in answers]
        assert {answer.headers["x-idempotency-status"] for answer in answers} == {"created"}

    def require_exactly_these(self) -> None:
        """Requires that the ledger holds what was answered, once, and that a retry of each gives the same."""
        for answer in list(self.answers):
            shown = self._client.get(answer.json()["decision_url"])
            assert shown.content == answer.content
            if (name := answer.json().get("idempotency_key")) is not None:
                again = self.decide(name)
                assert (again.headers["x-idempotency-status"], again.content) == ("replayed", answer.content)
        made = {answer.headers["x-decision-id"] for answer in self.answers}
        assert sorted(entry.entry_id for entry in self._site.chain(self._scope)) == sorted(made)


def test_connections_that_the_server_ends_cost_no_decision(line: Line, postgres: Postgres) -> None:
    key, times, ended = line.site.create_key("ended"), size(5, 200), 0
    chances, seed = chance()
    with Load([line.server.url], key, clients=8, pause=0.01) as load:
        for _ in range(times):
            load.wait_for(10)
            time.sleep(chances.uniform(0, 0.05))
            ended += postgres.kill_backends(str(line.site.database_url))
    assert ended >= times
    assert set(load.failures) <= {"503"}
    line.site.require_exactly(load.answers, "ended", line.server.url, key, ended_connections=4)
    report(
        f"seed {seed}: {ended} connections ended in {times} strokes; {len(load.answers)} acknowledged, {load.retried} "
        f"retried, of which {load.found} had been recorded; {dict(load.failures)}"
    )


def test_a_decision_whose_commit_is_cut_off_is_made_once(line: Line) -> None:
    names, before, rounds = numbered(), line.proxy.lost, size(2, 100)
    with line.calling("cut-off") as caller:
        for number, (_, arrives, keys) in enumerate(product(range(rounds), (True, False), KEYS), 1):
            line.proxy.lose(1, arrives=arrives)
            caller.decide_at_once([next(names) if under_a_key else None for under_a_key in keys])
            assert line.proxy.lost == before + number
        made = len(caller.answers)
        caller.require_exactly_these()
    report(f"{made} decisions, {number} commits or their answers lost; each made once and answered with 200")


def test_a_decision_that_was_made_and_could_not_be_answered_is_found_by_a_retry(line: Line) -> None:
    names, times = numbered(), size(1, 5)
    with line.calling("found") as caller:
        for number in range(1, times + 1):
            name = next(names)
            line.proxy.lose(1, arrives=True, stays_down=True)
            refused = caller.decide(name)
            assert (refused.status_code, refused.json()["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")
            assert len(line.site.entries("found")) == number
            line.proxy.up()
            found = caller.decide(name)
            assert (found.status_code, found.headers["x-idempotency-status"]) == (200, "replayed")
        caller.require_exactly_these()
    report(f"{times} times recorded, answered with 503, and found by a retry")


def require_degraded(answer: httpx.Response) -> None:
    """Requires that a status says, in the shape that it always has, that the ledger is not ready."""
    told = answer.json()
    jsonschema.Draft202012Validator(resources.schema("status")).validate(told)
    assert (told["status"], told["ledger"]["ready"], told["ledger"]["backend"]) == ("degraded", False, "postgresql")


def test_the_service_recovers_by_itself_when_the_server_is_back(line: Line, postgres: Postgres) -> None:
    key, times, url = line.site.create_key("back"), size(1, 10), line.server.url

    # Each worker looks once a second, so that two of them may differ for a moment: the last answer is judged.
    answers: deque[httpx.Response] = deque(maxlen=1)

    def status() -> int:
        answers.append(httpx.get(f"{url}/api/decision/status", timeout=PATIENCE, trust_env=False))
        return answers[-1].status_code

    with Load([url], key, pause=0.02) as load:
        for _ in range(times):
            load.wait_for(10)
            with postgres.stopped():
                wait_until(lambda: status() == 503)
                require_degraded(answers[-1])
            wait_until(lambda: status() == 200)
            load.wait_for(10)
    assert set(load.failures) <= {"503"}
    line.site.require_exactly(load.answers, "back", url, key)
    report(
        f"{times} restarts; {len(load.answers)} acknowledged, {load.retried} retried, of which {load.found} had been "
        f"recorded; {dict(load.failures)}"
    )


def test_an_append_that_has_to_give_way_is_tried_again_and_nobody_hears_of_it(line: Line) -> None:
    names, times, attempts = numbered(), 3, 0
    with line.calling("patient") as caller, psycopg.connect(str(line.site.database_url), autocommit=True) as database:
        # A serialization failure and a deadlock.
        for _, code, keys in product(range(size(1, 50)), ("40001", "40P01"), KEYS):
            database.execute(GIVE_WAY.format(times=times, code=code).encode())
            caller.decide_at_once([next(names) if under_a_key else None for under_a_key in keys])
            ((tried,),) = database.execute(b"SELECT last_value FROM attempts").fetchall()
            assert tried >= times + len(keys)
            attempts += tried
        database.execute(b"DROP TRIGGER give_way ON entries")
        made = len(caller.answers)
        caller.require_exactly_these()
    report(f"{made} decisions in {attempts} attempts at an insert")


def numbered() -> Iterator[str]:
    """Idempotency keys."""
    return (f"order {number}" for number in count(1))


@pytest.mark.skipif(sys.platform != "linux", reason="a server's workers are found in /proc")
def test_a_worker_that_is_started_while_the_database_is_away_answers_when_it_is_back(
    line: Line, postgres: Postgres
) -> None:
    url, before = line.server.url, set(workers_of(line.server))

    def unready() -> set[str] | None:
        """The parts that are not ready, but for the workers, which these tests kill; None while nothing listens."""
        try:
            report = httpx.get(f"{url}/api/decision/status", timeout=PATIENCE, trust_env=False).json()
        except httpx.TransportError:
            return None
        parts = {name: part for name, part in report.items() if isinstance(part, dict) and "ready" in part}
        return {name for name, part in parts.items() if not part["ready"]} - {"workers"}

    with postgres.stopped():
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(line.server)) - before) == len(before) and bool(unready()))
        require_degraded(httpx.get(f"{url}/api/decision/status", timeout=PATIENCE, trust_env=False))
        answer = httpx.post(f"{url}/api/decide", content=b"{}", timeout=PATIENCE, trust_env=False)
        assert (answer.status_code, answer.json()["c"]) == (503, "unclear")
        assert answer.json()["error"] == "SVC_STORAGE_UNAVAILABLE"
    wait_until(lambda: all(unready() == set() for _ in range(8)))
    with line.calling("back-again") as caller:
        caller.decide_at_once([f"key {number}" for number in range(4)])
        caller.require_exactly_these()
