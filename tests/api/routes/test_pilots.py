"""The intake of pilots: what is taken, confirmed and exported, and what nobody learns from it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from typing import Any, TypeAlias

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.encoding import resources
from gate.instance.instance import Instance
from gate.instance.pilots import KEPT_DAYS, MAX_PENDING, PILOT_FILE, TOKEN_DAYS, is_email
from gate.ledger.access.pilots import Pilot
from tests.support.samples import PILOT, cases

EXPORT = "/api/pilot-export"

Post: TypeAlias = Callable[[str, Any], TestResponse]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The moment of every request, to be changed."""
    moment = [datetime(2026, 12, 1, 12, tzinfo=UTC)]
    monkeypatch.setattr("api.routes.pilots.utc_now", lambda: moment[0])
    return moment


@pytest.fixture
def post(client: FlaskClient, now: list[datetime]) -> Post:
    """Sends a body, each time from another address, so that no limit is met by chance."""
    addresses = count(1)

    def sent(path: str, body: Any) -> TestResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        origin = {"REMOTE_ADDR": f"2001:db8:1:{next(addresses):x}::1"}
        return client.post(path, data=data, content_type="application/json", environ_base=origin)

    return sent


@pytest.fixture
def token(instance: Instance) -> str:
    return instance.settings.metrics_token.read_text().strip()


def submitted(post: Post, **members: str) -> str:
    answer = post("/api/pilot", PILOT | members)
    assert answer.status_code == 202
    pilot_id: str = answer.get_json()["pilot_id"]
    return pilot_id


def stored(instance: Instance) -> list[Pilot]:
    return [pilot for page in instance.pilots.pages() for pilot in page]


def confirmation(instance: Instance, pilot_id: str, **members: Any) -> dict[str, Any]:
    return {"pilot_id": pilot_id, "token": instance.pilots.token(pilot_id), **members}


def unlike(answer: TestResponse) -> tuple[int, dict[str, Any], list[str]]:
    """What could tell one answer from another: all but the id of the request."""
    return (
        answer.status_code,
        {**answer.get_json(), "request_id": ""},
        sorted(name.lower() for name, _ in answer.headers),
    )


class TestSubmission:
    def test_it_is_stored_as_it_was_written_without_the_white_space_around(
        self, post: Post, instance: Instance
    ) -> None:
        answer = post("/api/pilot", {name: f" {text} " for name, text in PILOT.items()})
        body = answer.get_json()
        jsonschema.Draft202012Validator(resources.schema("pilot-submission")).validate(body)
        assert (answer.status_code, body["status"]) == (202, "pending")
        assert stored(instance) == [Pilot(body["pilot_id"], **PILOT, submitted_at="2026-12-01T12:00:00.000Z")]

    def test_the_answer_tells_nothing_of_earlier_ones(self, post: Post, instance: Instance) -> None:
        first, second = post("/api/pilot", PILOT), post("/api/pilot", PILOT)
        post("/api/pilot/confirm", confirmation(instance, first.get_json()["pilot_id"]))
        third = post("/api/pilot", PILOT)
        shown = {
            (each.status_code, tuple(each.get_json()), len(each.data), tuple(sorted(each.headers.keys())))
            for each in (first, second, third)
        }
        assert len(shown) == 1
        assert len(stored(instance)) == 3

    @pytest.mark.parametrize("case", cases("pilot_refusals"), ids=lambda case: str(case["name"]))
    def test_what_is_no_submission_is_refused_with_each_fault(
        self, post: Post, instance: Instance, case: dict[str, Any]
    ) -> None:
        body = {name: text for name, text in PILOT.items() if name != case.get("unset")} | case.get("set", {})
        answer = post("/api/pilot", body)
        told = answer.get_json()
        assert (answer.status_code, told["error"]) == (422, "SVC_API_REQUEST_INVALID")
        assert [[error["field"], error["code"]] for error in told["errors"]] == case["fields"]
        assert "c" not in told
        assert stored(instance) == []

    def test_texts_of_the_longest_are_taken_and_longer_ones_refused(self, post: Post, instance: Instance) -> None:
        longest = {
            "name": "é" * 200,
            "company": "\U0001f600" * 200,
            "use": "x" * 2000,
            "email": f"a@{'b' * 62}.example",
        }
        submitted(post, **longest)
        for name, most in (("name", 200), ("company", 200), ("email", 200), ("use", 2000)):
            answer = post("/api/pilot", PILOT | {name: "x" * (most + 1)})
            assert [error["code"] for error in answer.get_json()["errors"]] == ["too_long"]
        assert len(stored(instance)) == 1

    def test_what_languages_write_with_is_taken(self, post: Post, instance: Instance) -> None:
        for name in ("\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "\u05d0\u200f!", "क्‍ष", 'O\'Neil "the" <b>'):
            submitted(post, name=name)
        assert len(stored(instance)) == 4

    def test_other_bodies_are_refused(self, client: FlaskClient, post: Post, instance: Instance) -> None:
        for path in ("/api/pilot", "/api/pilot/confirm"):
            assert post(path, b" " * (16 * 1024 + 1)).status_code == 413
            number = b'{"name": 1' + b"0" * 300 + b"}"
            for body in (b"", b"{", number, b"[" * 40 + b"]" * 40, b'{"name": "\xff"}', b'{"name": "\\ud800"}'):
                assert post(path, body).get_json()["error"] == "SVC_API_JSON_INVALID", body
            values: list[Any] = [[], "x", 7, None, {}]
            for value in values:
                assert post(path, value).status_code == 422
            assert client.get(path).status_code == 405
        assert stored(instance) == []

    def test_an_address_may_send_five_a_minute(self, client: FlaskClient, now: list[datetime]) -> None:
        for path in ("/api/pilot", "/api/pilot/confirm"):
            answers = [
                client.post(path, json={}, environ_base={"REMOTE_ADDR": "2001:db8:2:1::1"}, headers={"x-api-key": "k"})
                for _ in range(6)
            ]
            assert [answer.status_code for answer in answers] == [422] * 5 + [429]
            assert answers[-1].headers["retry-after"] == str(answers[-1].get_json()["retry_after"])

    def test_so_many_wait_and_old_ones_make_room(self, post: Post, instance: Instance, now: list[datetime]) -> None:
        early, kept = now[0], submitted(post, name="Confirmed")
        assert post("/api/pilot/confirm", confirmation(instance, kept)).status_code == 200
        rows = [
            {
                "pilot_id": f"plt_{number:032x}",
                **dict.fromkeys(PILOT, b""),
                "submitted_at": "2026-12-01T12:00:00.000Z",
            }
            for number in range(MAX_PENDING)
        ]
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO pilots (pilot_id, name, email, company, use, submitted_at) "
                "VALUES (:pilot_id, :name, :email, :company, :use, :submitted_at)",
                rows,
            )
        answer = post("/api/pilot", PILOT)
        assert (answer.status_code, answer.get_json()["error"]) == (429, "SVC_PILOT_INTAKE_FULL")
        assert len(stored(instance)) == MAX_PENDING + 1
        now[0] = early + timedelta(days=KEPT_DAYS)
        assert post("/api/pilot", PILOT).status_code == 429
        now[0] += timedelta(milliseconds=1)
        last = submitted(post)
        assert [pilot.pilot_id for pilot in stored(instance)] == [kept, last]

    def test_nothing_of_it_is_logged(self, post: Post, instance: Instance, log: BytesIO) -> None:
        pilot_id = submitted(post, name="canary-name", use="canary-use", email="canary@example.com")
        post("/api/pilot", PILOT | {"name": "canary-name\0"})
        post("/api/pilot/confirm", confirmation(instance, pilot_id))
        post("/api/pilot/confirm", confirmation(instance, pilot_id, token="canary-token"))
        logged = log.getvalue().decode()
        assert "/api/pilot/confirm" in logged
        assert "canary" not in logged
        assert instance.pilots.token(pilot_id) not in logged


class TestConfirmation:
    def test_the_token_confirms_and_does_so_again(self, post: Post, instance: Instance, now: list[datetime]) -> None:
        first, second = submitted(post), submitted(post)
        now[0] += timedelta(days=TOKEN_DAYS) - timedelta(milliseconds=1)
        for _ in range(2):
            answer = post("/api/pilot/confirm", confirmation(instance, first))
            assert (answer.status_code, answer.get_json()) == (200, {"status": "confirmed"})
        found = {pilot.pilot_id: pilot.confirmed_at for pilot in stored(instance)}
        assert found == {first: "2026-12-15T11:59:59.999Z", second: None}

    def test_all_that_does_not_confirm_is_answered_alike(
        self, post: Post, instance: Instance, now: list[datetime]
    ) -> None:
        expired, confirmed = submitted(post), submitted(post)
        post("/api/pilot/confirm", confirmation(instance, confirmed))
        now[0] += timedelta(days=TOKEN_DAYS)
        pending, erased = submitted(post), submitted(post)
        instance.ledger.pilots.erase([erased], now[0])
        right = instance.pilots.token(pending)
        sent = [
            confirmation(instance, expired),
            confirmation(instance, confirmed),
            confirmation(instance, erased),
            confirmation(instance, "plt_" + "0" * 32),
            confirmation(instance, "\0"),
            confirmation(instance, "é" * 200),
            *(
                confirmation(instance, pending, token=token)
                for token in ("x", right[:-1], f"{right}x", right.swapcase())
            ),
            confirmation(instance, pending, token=instance.pilots.token(expired)),
            confirmation(instance, pending, token="\0é" * 100),
        ]
        told = [unlike(post("/api/pilot/confirm", body)) for body in sent]
        assert told == [told[0]] * len(sent)
        assert told[0][0] == 404
        assert told[0][1]["error"] == "SVC_PILOT_NOT_FOUND"
        assert {pilot.confirmed_at for pilot in stored(instance) if pilot.pilot_id != confirmed} == {None}

    def test_a_token_is_256_bits_of_the_instance_and_nowhere_in_the_ledger(
        self, post: Post, instance: Instance, home: Any
    ) -> None:
        pilot_id = submitted(post)
        token = instance.pilots.token(pilot_id)
        assert len(token) == 43
        assert (home / PILOT_FILE).stat().st_mode & 0o777 == 0o600
        for file in home.rglob("ledger.db*"):
            assert token.encode() not in file.read_bytes()
        (home / PILOT_FILE).write_text("00" * 32)
        assert instance.pilots.token(pilot_id) != token
        assert post("/api/pilot/confirm", {"pilot_id": pilot_id, "token": token}).status_code == 404

    @pytest.mark.parametrize("content", [None, "", "00", "no hex"])
    def test_without_a_usable_secret_nothing_is_confirmed(
        self, post: Post, instance: Instance, home: Any, content: str | None
    ) -> None:
        body = confirmation(instance, submitted(post))
        (home / PILOT_FILE).unlink() if content is None else (home / PILOT_FILE).write_text(content)
        answer = post("/api/pilot/confirm", body)
        assert (answer.status_code, answer.get_json()["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")
        assert stored(instance)[0].confirmed_at is None

    @pytest.mark.parametrize("body", [{"pilot_id": "plt_1"}, {"token": "x"}, {"pilot_id": 1, "token": "x"}])
    def test_what_is_no_confirmation_is_refused(self, post: Post, body: Any) -> None:
        assert post("/api/pilot/confirm", body).status_code == 422


class TestExport:
    def test_every_submission_is_a_row(
        self, client: FlaskClient, post: Post, instance: Instance, token: str, now: list[datetime]
    ) -> None:
        expired = submitted(post)
        now[0] += timedelta(seconds=1)
        confirmed = submitted(post)
        post("/api/pilot/confirm", confirmation(instance, confirmed))
        now[0] += timedelta(days=TOKEN_DAYS)
        hostile = {"name": '=cmd|" /C calc"!A0', "company": "\uff1d1+1", "use": '-1, "x"\u200f'}
        pending = submitted(post, **hostile)
        answer = client.get(EXPORT, headers={"x-metrics-token": token})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="pilots.csv"'
        assert answer.headers["cache-control"] == "no-store"
        rows = list(csv.DictReader(io.StringIO(answer.data.decode(), newline=""), strict=True))
        assert list(rows[0]) == [
            "pilot_id",
            "status",
            "submitted_at",
            "confirmed_at",
            "name",
            "email",
            "company",
            "use",
        ]
        assert [(row["pilot_id"], row["status"], row["confirmed_at"]) for row in rows] == [
            (expired, "expired", ""),
            (confirmed, "confirmed", "2026-12-01T12:00:01.000Z"),
            (pending, "pending", ""),
        ]
        assert {name: rows[2][name] for name in hostile} == {name: f"'{text}" for name, text in hostile.items()}
        assert all(cell.startswith('"') for line in answer.data.decode().splitlines() for cell in line.split('","')[:1])

    def test_many_are_exported_whole(
        self, client: FlaskClient, instance: Instance, token: str, now: list[datetime]
    ) -> None:
        for number in (199, 200, 201, 401):
            missing = number - len(stored(instance))
            for _ in range(missing):
                instance.pilots.submit(PILOT, now[0])
            lines = client.get(EXPORT, headers={"x-metrics-token": token}).data.decode().split("\r\n")
            assert len(lines) == number + 2
            assert len(set(lines)) == number + 2

    def test_wrong_tokens_look_like_none(self, client: FlaskClient, token: str) -> None:
        sent: list[dict[str, str]] = [
            {},
            *(
                {"x-metrics-token": wrong}
                for wrong in ("", "x", token[:-1], f"{token}x", token.swapcase(), "\xe9" * 99)
            ),
            {"x-api-key": token},
            {"authorization": f"Bearer {token}"},
        ]
        for path in (EXPORT, "/api/proof-metrics", "/metrics"):
            told = [unlike(client.get(path, headers=headers)) for headers in sent]
            assert told == [told[0]] * len(sent)
            assert (told[0][0], told[0][1]["error"]) == (401, "SVC_API_UNAUTHORIZED")
            assert client.get(path, headers={"x-metrics-token": token}).status_code == 200
            head = client.head(path, headers={"x-metrics-token": token})
            assert (head.status_code, head.data) == (200, b"")
            assert client.head(path).status_code == 401

    def test_a_ledger_out_of_reach_is_an_error_and_no_file(
        self, client: FlaskClient, instance: Instance, home: Any, token: str
    ) -> None:
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql("ALTER TABLE pilots RENAME TO gone")
        answer = client.get(EXPORT, headers={"x-metrics-token": token})
        assert (answer.status_code, answer.get_json()["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")


@pytest.mark.parametrize(
    "text", ["a@b.co", "ada+x@mail.example.com", "o'neil@example.com", "é@exämple.de", "a.b-c_d@xn--exmple-cua.de"]
)
def test_an_address_of_the_usual_form_is_one(text: str) -> None:
    assert is_email(text)
