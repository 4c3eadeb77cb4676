"""Migrations and routes over HTTP: what a key with read is answered, in which form, and what nobody else learns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import jsonschema
import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from api.http.state import NO_REPORTS
from gate.clock import utc_now
from gate.decisions.migrations.documents import migration_document, migration_summary, routes_document
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance
from gate.ledger.access.authority import ACCESS, FULL_ACCESS, Scope
from gate.ledger.packing import pack
from gate.ledger.tables import entries, migration_documents
from gate.migration.standing import STATES
from gate.verify import verify_packet
from tests.independent import verifier
from tests.support.migrations import Desk, Example, candidate, desk
from tests.support.reports import LateReports, give_reports
from tests.support.samples import REPORTS, sample_request
from tests.workbench.hostile import NAMES

POLICY: Final = "pricing_exception"
ROUTES: Final = "/api/decision/routes"
MIGRATIONS: Final = "/api/decision/migrations"
PATHS: Final = [ROUTES, MIGRATIONS, f"{MIGRATIONS}/prices_1", f"{MIGRATIONS}/prices_1/report"]
JSON, MARKDOWN, HTML = "application/json", "text/markdown; charset=utf-8", "text/html; charset=utf-8"


@pytest.fixture
def at(instance: Instance, scope: Scope) -> Desk:
    """The desk of an author and an approver."""
    return desk(instance, scope)


class Reader:
    """Whoever has a key."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self._client = client
        self._headers = {"x-api-key": key}

    def get(self, path: str, *, accept: str | None = None, **query: Any) -> TestResponse:
        """An answer."""
        headers = self._headers if accept is None else {**self._headers, "accept": accept}
        return self._client.get(path, query_string=query or None, headers=headers)

    def _read(self, path: str, schema: str, **query: Any) -> Any:
        response = self.get(path, **query)
        assert (response.status_code, response.content_type) == (200, JSON), response.data
        jsonschema.Draft202012Validator(resources.schema(schema)).validate(response.get_json())
        return response.get_json()

    def routes(self, **query: Any) -> Any:
        """The routes."""
        found = self._read(ROUTES, "decision-routes", **query)
        assert found["count"] == len(found["routes"])
        return found

    def migrations(self, **query: Any) -> Any:
        """A page of migrations."""
        found = self._read(MIGRATIONS, "decision-migrations", **query)
        assert found["count"] == len(found["migrations"])
        return found

    def migration(self, migration_id: str) -> Any:
        """A migration."""
        return self._read(f"{MIGRATIONS}/{migration_id}", "decision-migration")

    def pages(self, **query: Any) -> Iterator[list[str]]:
        """The ids of the migrations on each page."""
        cursor: dict[str, str] = {}
        while True:
            found = self.migrations(**query, **cursor)
            yield [of["migration_id"] for of in found["migrations"]]
            if found["next_cursor"] is None:
                return
            cursor = {"cursor": found["next_cursor"]}


@pytest.fixture
def reader(client: FlaskClient, key: str) -> Reader:
    return Reader(client, key)


def refused(response: TestResponse, status: int, code: str) -> Any:
    body = response.get_json()
    assert (response.status_code, body["error"]) == (status, code), body
    return body


class TestRoutes:
    def test_a_scope_without_routes_has_none(self, reader: Reader) -> None:
        assert reader.routes() == {"count": 0, "routes": []}
        assert reader.routes(rulebook_id=POLICY) == {"count": 0, "routes": [], "history": []}

    def test_each_rulebook_id_is_shown_by_the_route_in_force(self, reader: Reader, at: Desk, scope: Scope) -> None:
        first = at.route("prices_1", candidate("1"))
        second = at.route("prices_2", candidate("2"))
        other = at.route("refunds_1", candidate("7", rulebook_id="a_policy"))
        assert reader.routes() == {"count": 2, "routes": [other, second]}
        back = at.acts.rollback(scope, at.approver, POLICY, "too many approvals")
        assert reader.routes()["routes"] == [other, back]
        assert reader.routes(rulebook_id=POLICY) == {"count": 1, "routes": [back], "history": [back, second, first]}
        assert reader.routes(rulebook_id="a_policy") == {"count": 1, "routes": [other], "history": [other]}
        assert reader.routes(rulebook_id="nothing") == {"count": 0, "routes": [], "history": []}
        assert all(verifier.route_hash(route) == route["route_hash"] for route in (first, second, other, back))

    def test_a_limit_takes_the_newest_of_the_history(self, reader: Reader, at: Desk) -> None:
        made = [at.route(f"prices_{number}", candidate(str(number))) for number in range(4)]
        for limit in (1, 3, 4, 1000):
            found = reader.routes(rulebook_id=POLICY, limit=limit)
            assert (found["routes"], found["history"]) == ([made[3]], made[::-1][:limit])

    def test_twenty_routes_are_shown_where_no_limit_is_sent(self, reader: Reader, at: Desk, scope: Scope) -> None:
        for number in range(2):
            at.route(f"prices_{number}", candidate(str(number)))
        for number in range(10):
            at.acts.rollback(scope, at.author, POLICY, "")
            at.route(f"again_{number}", candidate("1"))
        history = reader.routes(rulebook_id=POLICY, limit=1000)["history"]
        assert len(history) == 22
        assert reader.routes(rulebook_id=POLICY)["history"] == history[:20]

    def test_a_limit_without_a_rulebook_id_is_refused(self, reader: Reader) -> None:
        body = refused(reader.get(ROUTES, limit=5), 400, "SVC_API_QUERY_INVALID")
        assert [(fault["field"], fault["code"]) for fault in body["errors"]] == [("rulebook_id", "required")]
        assert body["message"].startswith("The query parameter rulebook_id is missing; ")

    @pytest.mark.parametrize("rulebook_id", ["prices\0", "\0", "'; DROP TABLE entries", "\U0001f9ed", "x" * 3000])
    def test_an_id_that_no_rulebook_can_have_leads_nowhere(self, reader: Reader, at: Desk, rulebook_id: str) -> None:
        at.route("prices_1", candidate("1"))
        assert reader.routes(rulebook_id=rulebook_id) == {"count": 0, "routes": [], "history": []}


class TestMigrations:
    def test_a_scope_without_migrations_has_none(self, reader: Reader) -> None:
        assert reader.migrations() == {"count": 0, "migrations": [], "next_cursor": None}

    def test_a_migration_is_shown_by_where_it_stands(self, reader: Reader, at: Desk) -> None:
        proposed = at.propose("prices_1", candidate("1"))
        assert reader.migrations()["migrations"] == [
            {
                "migration_id": "prices_1",
                "state": "proposed",
                "status": "proposed",
                "candidates": proposed.proposed["candidates"],
                "manifest_hash": proposed.proposed["manifest_hash"],
                "evidence_hash": proposed.evidence_hash,
                "proposed_by": "ada",
                "proposed_at": proposed.proposed["recorded_at"],
                "decided_by": None,
                "decided_at": None,
            }
        ]
        at.approve(proposed)
        (shown,) = reader.migrations()["migrations"]
        assert (shown["state"], shown["status"], shown["decided_by"]) == ("approved", "approved", "ben")
        at.acts.apply(at.scope, at.author, "prices_1", "")
        (shown,) = reader.migrations()["migrations"]
        assert (shown["state"], shown["status"], shown["decided_by"]) == ("applied", "approved", "ben")

    def test_a_state_filters_the_list(self, reader: Reader, at: Desk, scope: Scope) -> None:
        at.propose("superseded", candidate("1"))
        at.route("applied", candidate("2"))
        at.route("rolled_back", candidate("6"))
        at.acts.rollback(scope, at.approver, POLICY, "")
        at.propose("proposed", candidate("3"))
        at.approve(at.propose("approved", candidate("4")))
        at.propose("rejected", candidate("5"))
        at.acts.reject(scope, at.approver, "rejected", "no")
        for state in STATES:
            assert [of["migration_id"] for of in reader.migrations(state=state)["migrations"]] == [state]
        assert {of["migration_id"] for of in reader.migrations()["migrations"]} == set(STATES)

    def test_pages_hold_every_migration_once_while_more_are_proposed(self, reader: Reader, at: Desk) -> None:
        made = [f"prices_{number}" for number in range(5)]
        for migration_id in made:
            at.propose(migration_id, candidate("1"))
        expected = [of["migration_id"] for of in reader.migrations(limit=1000)["migrations"]]
        assert sorted(expected) == made
        seen = []
        for number, page in enumerate(reader.pages(limit=2)):
            assert len(page) <= 2
            seen += page
            at.propose(f"later_{number}", candidate("1"))
        assert seen == expected

    def test_a_page_that_ends_with_the_last_one_says_so(self, reader: Reader, at: Desk) -> None:
        for number in range(4):
            at.propose(f"prices_{number}", candidate("1"))
        assert [len(page) for page in reader.pages(limit=2)] == [2, 2]
        assert [len(page) for page in reader.pages(limit=4, state="proposed")] == [4]
        assert list(reader.pages(state="applied", limit=1)) == [[]]

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("state=open", "state"),
            ("state=PROPOSED", "state"),
            ("state=", "state"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("cursor=", "cursor"),
            ("cursor=1", "cursor"),
            ("cursor=mig_1", "cursor"),
            (f"cursor=mig_{'F' * 32}", "cursor"),
            (f"cursor=rte_{'0' * 32}", "cursor"),
            (f"cursor=mig_{'0' * 32}%0A", "cursor"),
            (f"cursor=mig_{'0' * 32}&cursor=mig_{'0' * 32}", "cursor"),
            ("status=open", "status"),
        ],
    )
    def test_a_parameter_that_means_nothing_is_refused(self, reader: Reader, query: str, field: str) -> None:
        body = refused(reader.get(f"{MIGRATIONS}?{query}"), 400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in body["errors"]] == [field]


class TestMigration:
    def test_it_has_its_manifest_entries_and_routes(self, reader: Reader, at: Desk) -> None:
        route = at.route("prices_1", candidate("1"))
        found = reader.migration("prices_1")
        assert found["routes"] == [route]
        assert [entry["event"] for entry in found["entries"]] == ["proposed", "approved"]
        assert all(verifier.migration_hash(entry) == entry["migration_hash"] for entry in found["entries"])
        assert found["manifest"]["status"] == "approved"
        assert found["manifest"]["approval"] == {
            "status": "approved",
            "approved_by": "ben",
            "approved_at": found["entries"][1]["recorded_at"],
        }
        (listed,) = reader.migrations()["migrations"]
        assert {name: found[name] for name in listed} == listed

    def test_the_evidence_of_an_open_one_is_stale_once_its_base_has_changed(self, reader: Reader, at: Desk) -> None:
        at.propose("prices_1", candidate("1"))
        assert reader.migration("prices_1")["stale"] == []
        at.route("others", candidate("7", rulebook_id="a_policy"))
        assert reader.migration("others")["stale"] == []
        waiting = at.proposal("prices_2", candidate("2"))
        at.acts.propose(at.scope, at.author, waiting, "")
        at.route("prices_3", candidate("3"))
        # Superseded by then, and no longer asked for anything.
        assert (reader.migration("prices_2")["state"], reader.migration("prices_2")["stale"]) == ("superseded", [])
        assert (reader.migration("prices_3")["state"], reader.migration("prices_3")["stale"]) == ("applied", [])

    def test_decisions_make_the_evidence_of_an_open_one_stale(self, client: FlaskClient, key: str, at: Desk) -> None:
        at.propose("prices_1", candidate("1"))
        assert client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).status_code == 200
        (sentence,) = Reader(client, key).migration("prices_1")["stale"]
        assert sentence.startswith("1 decision of pricing_exception came after the 0 in the evidence")

    @pytest.mark.parametrize(
        "migration_id",
        ["prices_2", "PRICES_1", "prices_1.", " prices_1", "prices_1%00", "%F0%9F%98%80", "%ff", "..", "x" * 4000, "'"],
    )
    def test_one_that_the_scope_does_not_have_is_not_found(self, reader: Reader, at: Desk, migration_id: str) -> None:
        at.propose("prices_1", candidate("1"))
        for path in (f"{MIGRATIONS}/{migration_id}", f"{MIGRATIONS}/{migration_id}/report"):
            for accept in (None, "text/html"):
                refused(reader.get(path, accept=accept), 404, "SVC_MIGRATION_NOT_FOUND")


class TestReport:
    @pytest.mark.parametrize(
        ("accept", "content_type"),
        [
            (None, JSON),
            ("", JSON),
            ("*/*", JSON),
            ("application/json", JSON),
            ("application/*", JSON),
            ("application/pdf", JSON),
            ("text/html;q=0", JSON),
            ("no media type, ;;q=x", JSON),
            ("text/markdown", MARKDOWN),
            ("text/*", MARKDOWN),
            ("text/markdown; charset=utf-8", MARKDOWN),
            ("text/markdown;variant=GFM, */*;q=0.1", MARKDOWN),
            ("application/json;q=0.5, text/markdown", MARKDOWN),
            ("text/html", HTML),
            ("TEXT/HTML", HTML),
            ("text/html;q=0.9, text/markdown;q=0.8", HTML),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", HTML),
        ],
    )
    def test_accept_chooses_the_form(self, reader: Reader, at: Desk, accept: str | None, content_type: str) -> None:
        at.propose("prices_1", candidate("1"))
        response = reader.get(f"{MIGRATIONS}/prices_1/report", accept=accept)
        assert (response.status_code, response.content_type) == (200, content_type)
        assert response.headers["vary"] == "accept"
        assert response.headers["cache-control"] == "no-store"
        begins = {JSON: '{"', MARKDOWN: "# Migration prices", HTML: "<!doctype html>"}
        assert response.text.startswith(begins[content_type])

    def test_the_json_is_the_evidence_of_the_latest_proposal(self, reader: Reader, at: Desk) -> None:
        at.propose("prices_1", candidate("1"))
        proposal = at.proposal("prices_1", candidate("2"), unexpected=[{"fixture": "x", "fields": ["rulebook"]}])
        at.acts.propose(at.scope, at.author, proposal, "again")
        found = reader.get(f"{MIGRATIONS}/prices_1/report").get_json()
        assert found == proposal.evidence
        rest = {name: value for name, value in found.items() if name != "evidence_hash"}
        assert found["evidence_hash"] == verifier.canonical_hash(rest) == reader.migration("prices_1")["evidence_hash"]
        jsonschema.Draft202012Validator(resources.schema("rulebook-migration-evidence-v1")).validate(found)

    def test_a_page_may_load_nothing_and_run_nothing(self, reader: Reader, at: Desk) -> None:
        at.propose("prices_1", candidate("1"))
        response = reader.get(f"{MIGRATIONS}/prices_1/report", accept="text/html")
        policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
        assert policy == {
            "default-src": "'none'",
            "style-src": "'unsafe-inline'",
            "img-src": "data:",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
        }
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        for accept in ("text/markdown", "application/json"):
            other = reader.get(f"{MIGRATIONS}/prices_1/report", accept=accept)
            assert "content-security-policy" not in other.headers

    @pytest.mark.parametrize("name", NAMES, ids=["tags", "texts"])
    def test_hostile_names_are_escaped(self, reader: Reader, at: Desk, name: str) -> None:
        version = name[:80]
        proposal = at.proposal(
            "prices_1", candidate(version), failures=[name], unexpected=[{"fixture": name, "fields": []}]
        )
        at.acts.propose(at.scope, at.author, proposal, name)
        page = reader.get(f"{MIGRATIONS}/prices_1/report", accept="text/html").text
        for element in ("<script", "<img", "<svg", "<iframe", "<!--"):
            assert element not in page
        written = reader.get(f"{MIGRATIONS}/prices_1/report", accept="text/markdown").text
        assert re.findall(r"(?<!\\)(?:`|\[|<[A-Za-z/!?])", written) == []
        # What programs read is as it was given.
        assert reader.migration("prices_1")["entries"][0]["note"] == name
        assert reader.get(f"{MIGRATIONS}/prices_1/report").get_json() == proposal.evidence

    def test_where_no_page_can_be_drawn_the_evidence_is_answered_as_ever(
        self, client: FlaskClient, key: str, at: Desk
    ) -> None:
        at.propose("prices_1", candidate("1"))
        reader = Reader(client, key)
        for reports in (NO_REPORTS, LateReports()):
            give_reports(client.application, reports)
            for accept in ("text/html", "text/markdown"):
                response = reader.get(f"{MIGRATIONS}/prices_1/report", accept=accept)
                assert refused(response, 503, "SVC_REPORT_UNAVAILABLE")["message"].endswith(".")
                assert response.content_type == JSON
                refused(reader.get(f"{MIGRATIONS}/prices_2/report", accept=accept), 404, "SVC_MIGRATION_NOT_FOUND")
            assert reader.get(f"{MIGRATIONS}/prices_1/report").status_code == 200


class TestAccess:
    @pytest.mark.parametrize("path", PATHS)
    def test_a_key_with_read_is_needed(
        self, client: FlaskClient, instance: Instance, scope: Scope, at: Desk, path: str
    ) -> None:
        at.propose("prices_1", candidate("1"))
        for headers in ({}, {"x-api-key": "dgk_unknown"}):
            refused(client.get(f"{path}?nothing=1", headers=headers), 401, "SVC_API_UNAUTHORIZED")
        for access in ACCESS:
            key, _ = instance.ledger.directory.create_key(scope, frozenset({access}), None, utc_now())
            response = Reader(client, key).get(path)
            if access == "read":
                assert response.status_code == 200
            else:
                refused(response, 403, "SVC_API_UNAUTHORIZED")

    def test_another_scope_learns_nothing(self, client: FlaskClient, instance: Instance, at: Desk) -> None:
        at.route("prices_1", candidate("1"))
        other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
        stranger = Reader(client, instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())[0])
        assert stranger.routes(rulebook_id=POLICY) == {"count": 0, "routes": [], "history": []}
        assert stranger.migrations() == {"count": 0, "migrations": [], "next_cursor": None}
        for suffix in ("", "/report"):
            bodies = [stranger.get(f"{MIGRATIONS}/{name}{suffix}").get_json() for name in ("prices_1", "prices_2")]
            for body in bodies:
                body.pop("request_id")
            assert bodies[0] == bodies[1]
            refused(stranger.get(f"{MIGRATIONS}/prices_1{suffix}", accept="text/html"), 404, "SVC_MIGRATION_NOT_FOUND")

    @pytest.mark.parametrize("path", PATHS)
    def test_they_are_read_only(self, client: FlaskClient, key: str, at: Desk, path: str) -> None:
        at.propose("prices_1", candidate("1"))
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            response = client.open(path, method=method, headers={"x-api-key": key}, json={})
            refused(response, 405, "SVC_API_METHOD_NOT_ALLOWED")
            assert response.headers["allow"] == "GET, HEAD, OPTIONS"
        head = client.head(path, headers={"x-api-key": key})
        assert (head.status_code, head.data) == (200, b"")


class TestReservedPaths:
    """Their words lead to no decision, whatever a migration is called."""

    @pytest.mark.parametrize(
        "migration_id", ["verify", "packet", "execution", "outcome", "report", "routes", "migrations"]
    )
    def test_a_migration_may_be_called_as_an_endpoint_is(self, reader: Reader, at: Desk, migration_id: str) -> None:
        at.propose(migration_id, candidate("1"))
        assert reader.migration(migration_id)["migration_id"] == migration_id
        assert reader.get(f"{MIGRATIONS}/{migration_id}/report").get_json()["migration_id"] == migration_id

    def test_the_words_are_no_decision_ids(self, client: FlaskClient, key: str) -> None:
        headers = {"x-api-key": key}
        assert client.get(ROUTES, headers=headers).get_json() == {"count": 0, "routes": []}
        for word in ("routes", "migrations"):
            for path, body in {"replay": {}, **REPORTS}.items():
                answer = client.post(f"/api/decision/{word}/{path}", json=body, headers=headers)
                refused(answer, 404, "SVC_DECISION_NOT_FOUND")
        refused(client.get("/api/decision/routes/verify", headers=headers), 404, "SVC_DECISION_NOT_FOUND")
        refused(client.get("/api/decision/migrations/", headers=headers), 404, "SVC_API_NOT_FOUND")


class TestDamage:
    def test_evidence_that_was_changed_is_not_shown(self, reader: Reader, instance: Instance, at: Desk) -> None:
        at.propose("prices_1", candidate("1"))
        changed = pack(orjson.dumps({"evidence_version": "another"}))
        with instance.ledger.store.write() as connection:
            evidence = migration_documents.c.kind == "evidence"
            connection.execute(update(migration_documents).where(evidence).values(body=changed))
        for path, accept in ((f"{MIGRATIONS}/prices_1", None), (f"{MIGRATIONS}/prices_1/report", None)):
            body = refused(reader.get(path, accept=accept), 503, "SVC_STORAGE_UNAVAILABLE")
            assert "gate chain check" in body["message"]
        refused(reader.get(f"{MIGRATIONS}/prices_1/report", accept="text/html"), 503, "SVC_STORAGE_UNAVAILABLE")
        assert reader.migrations()["count"] == 1

    def test_an_entry_that_was_changed_is_not_shown(self, reader: Reader, instance: Instance, at: Desk) -> None:
        route = at.route("prices_1", candidate("1"))
        forged = pack(orjson.dumps({**route, "cause": "rollback"}))
        with instance.ledger.store.write() as connection:
            connection.execute(update(entries).where(entries.c.entry_id == route["route_entry_id"]).values(body=forged))
        for path in PATHS:
            refused(reader.get(path), 503, "SVC_STORAGE_UNAVAILABLE")


def test_a_packet_that_goes_on_over_a_migration_and_a_route_verifies(
    client: FlaskClient, key: str, instance: Instance, at: Desk
) -> None:
    headers = {"x-api-key": key}
    record = client.post("/api/decide", json=sample_request(), headers=headers).get_json()
    at.route("prices_1", candidate("1"))
    outcome = client.post(f"{record['decision_url']}/outcome", json={"outcome_status": "succeeded"}, headers=headers)
    assert outcome.status_code == 201
    packet = client.get(f"{record['decision_url']}/packet", headers=headers).get_json()
    types = [link["entry_type"] for link in packet["audit_chain"]["retained_links"]]
    assert types == ["decision", "migration", "migration", "route", "outcome"]
    result = verify_packet(packet, instance.trust())
    assert (result.verified, result.error) == (True, None)
    assert "audit_chain.entry_types" not in result.checks
    registries = ("/api/decision/receipt-keys", "/.well-known/rulebook-attestation-keys.json")
    keys, attesting = (client.get(path).get_json() for path in registries)
    assert verifier.packet_failures(packet, keys, attestation_keys=attesting) == []
    shown = Reader(client, key)
    links = packet["audit_chain"]["retained_links"][1:4]
    changes = [*shown.migration("prices_1")["entries"], *shown.routes()["routes"]]
    assert [verifier.change_failures(entry, link) for entry, link in zip(changes, links, strict=True)] == [[]] * 3


def test_the_examples_are_what_the_service_answers() -> None:
    made = Example()
    latest = made.stored[0]
    expected = {
        "decision-routes": {**routes_document({POLICY: made.routes}), "history": made.routes[::-1]},
        "decision-migrations": {
            "count": 2,
            "migrations": [migration_summary(of.standing) for of in made.stored],
            "next_cursor": None,
        },
        "decision-migration": migration_document(latest, ()),
        "migration-evidence": latest.evidence,
    }
    for name, document in expected.items():
        assert parse(resources.path("schemas", "examples", f"{name}.json").read_bytes()) == document
