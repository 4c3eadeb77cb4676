"""What is sent again, how often, and what an answer is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from gate.client import (
    AnswerUnusable,
    ApiError,
    Client,
    Conflict,
    Forbidden,
    LimitReached,
    NotFound,
    Refused,
    ServiceFailed,
    Unauthorized,
    Unreachable,
    operations,
)
from gate.client.transport import engine as engine_module
from tests.support.samples import sample_request

Answer = httpx.Response | Exception


class Script(httpx.BaseTransport):
    """Answers one after the other; the last one for good."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """Pauses that take no time, and are remembered."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(engine_module, "time", clock)
    return clock


def client(*answers: Answer, **said: Any) -> tuple[Client, Script]:
    script = Script(*answers)
    return Client("https://gate.example", key="dgk_1_2", transport=script, **said), script


def ok(**headers: str) -> httpx.Response:
    return httpx.Response(200, json={"decision_id": "dec_1"}, headers=headers)


def failed(status: int, code: str = "SVC_X", **headers: str) -> httpx.Response:
    body = {"v": "x", "error": code, "message": "It failed.", "request_id": "req_1"}
    return httpx.Response(status, json=body, headers={"x-request-id": "req_1", **headers})


CUT = httpx.ReadError("cut")


@pytest.mark.parametrize(
    "first", [CUT, httpx.ConnectError("refused"), failed(500), failed(502), failed(503), failed(504)]
)
def test_network_errors_and_5xx_are_sent_again_under_the_same_key(first: Answer, clock: Clock) -> None:
    made, script = client(first, first, ok())
    answer = made.send(operations.decide(sample_request()))
    assert answer.tries == 3
    assert len({request.headers["x-idempotency-key"] for request in script.requests}) == 1
    assert len({request.content for request in script.requests}) == 1
    assert len(clock.pauses) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, Refused),
        (409, Conflict),
        (413, Refused),
        (415, Refused),
        (418, Refused),
        (422, Refused),
        (429, LimitReached),
    ],
)
def test_no_other_refusal_is_sent_again(status: int, kind: type[ApiError]) -> None:
    made, script = client(failed(status, "SVC_API_X"))
    with pytest.raises(kind) as refused:
        made.decide(sample_request())
    assert len(script.requests) == 1
    error = refused.value
    assert type(error) is kind
    assert (error.status, error.code, error.message, error.request_id) == (status, "SVC_API_X", "It failed.", "req_1")


@pytest.mark.parametrize("answer", [CUT, failed(503)])
def test_it_gives_up_after_so_many_tries_and_says_how_many(answer: Answer) -> None:
    made, script = client(answer, tries=4)
    with pytest.raises((Unreachable, ServiceFailed)) as gone:
        made.decide(sample_request())
    assert (len(script.requests), gone.value.tries) == (4, 4)


def test_pauses_grow_at_most_so_far_and_are_drawn_at_random(clock: Clock) -> None:
    made, _ = client(failed(503), tries=12, timeout=1000)
    with pytest.raises(ServiceFailed):
        made.decide(sample_request())
    limits = [min(5.0, 0.1 * 2**number) for number in range(11)]
    assert all(0 <= pause <= limit for pause, limit in zip(clock.pauses, limits, strict=True))
    assert len(set(clock.pauses)) == 11


def test_a_pause_that_the_service_asks_for_is_kept(clock: Clock) -> None:
    made, _ = client(failed(503, **{"retry-after": "7"}), ok())
    made.decide(sample_request())
    assert clock.pauses == [7.0]


def test_no_pause_outlasts_the_deadline(clock: Clock) -> None:
    made, script = client(failed(503, **{"retry-after": "11"}), ok())
    with pytest.raises(ServiceFailed) as failure:
        made.decide(sample_request())
    assert failure.value.retry_after == 11
    assert (len(script.requests), clock.pauses) == (1, [])


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"retry-after": "17"}, {}, 17),
        ({"retry-after": "17"}, {"retry_after": 5}, 17),
        ({}, {"retry_after": 5.5}, 5.5),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "-1"}, {}, None),
        ({"retry-after": "9" * 30}, {}, None),
        ({}, {"retry_after": True}, None),
        ({}, {"retry_after": "5"}, None),
        ({}, {"retry_after": 1e300}, 7 * 24 * 3600),
    ],
)
def test_when_to_come_again_is_read_from_the_header_or_the_body(
    headers: dict[str, str], body: dict[str, Any], expected: float | None
) -> None:
    told = {"error": "SVC_API_RATE_LIMITED", "message": "Slower.", **body}
    made, _ = client(httpx.Response(429, json=told, headers=headers))
    with pytest.raises(LimitReached) as limited:
        made.decide(sample_request())
    assert limited.value.retry_after == expected


def test_an_error_brings_its_members_at_fault_and_what_else_its_body_has() -> None:
    told = {
        "c": "unclear",
        "v": "idempotency_conflict",
        "error": "SVC_API_IDEMPOTENCY_CONFLICT",
        "message": "Another payload.",
        "request_id": "req_1",
        "decision_id": "dec_7",
        "errors": [{"field": "context", "code": "type", "message": "It must be an object."}, "noise"],
    }
    made, _ = client(httpx.Response(409, json=told))
    with pytest.raises(Conflict) as conflict:
        made.decide(sample_request())
    assert conflict.value.details == {"decision_id": "dec_7"}
    assert [fault.field for fault in conflict.value.errors] == ["context"]


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"{", b"[]", b"null", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1e400}', b"\xff", b'{"a": 1}x'],
)
def test_an_answer_that_is_no_strict_json_object_is_unusable_and_not_asked_for_again(content: bytes) -> None:
    made, script = client(httpx.Response(200, content=content))
    with pytest.raises(AnswerUnusable):
        made.decide(sample_request())
    assert len(script.requests) == 1


@pytest.mark.parametrize("status", [201, 204, 301, 302, 304, 307])
def test_another_status_than_the_operation_has_is_no_answer_and_no_redirect_is_followed(status: int) -> None:
    made, script = client(httpx.Response(status, json={}, headers={"location": "https://elsewhere.example/"}))
    with pytest.raises(AnswerUnusable) as unusable:
        made.decide(sample_request())
    assert unusable.value.status == status
    assert len(script.requests) == 1


def test_what_an_error_says_steers_no_terminal_and_forges_no_line_of_a_log() -> None:
    told = {"error": "SVC_X", "message": "a\x1b[31m\nroot: b", "errors": [{"field": "\n", "code": "", "message": ""}]}
    made, _ = client(httpx.Response(422, json=told))
    with pytest.raises(Refused) as refused:
        made.decide(sample_request())
    assert str(refused.value).replace("\n  ", "").isprintable()


@pytest.mark.parametrize(
    "content", [b"<html>Bad gateway</html>", b"", b"{}", b'{"error": 7}', b'{"error": "E\\u001b", "message": "x"}']
)
def test_an_error_without_a_body_of_the_service_is_told_by_its_status(content: bytes) -> None:
    made, _ = client(httpx.Response(401, content=content))
    with pytest.raises(Unauthorized) as refused:
        made.decide(sample_request())
    assert refused.value.code == "HTTP_401"


def test_a_compressed_answer_is_unusable() -> None:
    made, script = client(httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"x")))
    with pytest.raises(AnswerUnusable):
        made.decide(sample_request())
    assert script.requests[0].headers["accept-encoding"] == "identity"


def test_an_answer_without_end_is_cut_off() -> None:
    sent = 0

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal sent
            while True:
                sent += 1
                yield bytes(1024 * 1024)

    made, _ = client(httpx.Response(200, stream=Endless()))
    with pytest.raises(AnswerUnusable, match="larger than"):
        made.decide(sample_request())
    assert sent <= 18


def test_an_answer_has_its_status_headers_and_handle() -> None:
    made, _ = client(ok(**{"x-idempotency-status": "replayed", "x-request-id": "req_9", "X-RateLimit-Remaining": "3"}))
    answer = made.send(operations.decide(sample_request()))
    assert (answer.status, answer.replayed, answer.request_id) == (200, True, "req_9")
    assert answer.headers["x-ratelimit-remaining"] == "3"


def test_a_handle_that_is_not_safe_to_show_is_left_out() -> None:
    made, _ = client(ok(**{"x-request-id": "req\x1b[31m"}))
    assert made.send(operations.decide(sample_request())).request_id is None


def test_every_endpoint_is_a_method_with_the_signature_of_its_operation(make: Callable[..., Client]) -> None:
    gate = make()
    for name in dir(operations):
        operation = getattr(operations, name)
        if inspect.isfunction(operation):
            assert inspect.signature(getattr(gate, name)) == inspect.signature(operation), name
            assert getattr(gate, name).__doc__ == operation.__doc__
    with pytest.raises(TypeError, match="method of a client"):
        Client.decide(sample_request())


def test_one_entry_that_is_asked_for_has_its_own_type() -> None:
    answers: list[dict[str, Any]] = [{"policy_bundles": []}, {"policy_bundle_entry": {"policy_id": "p"}}]
    made, _ = client(*(httpx.Response(200, json=answer) for answer in answers))
    # A type checker refuses these members where an operation's overloads are lost on the way to the client.
    assert made.list_policy_bundles()["policy_bundles"] == []
    assert made.list_policy_bundles(hash="0" * 64)["policy_bundle_entry"]["policy_id"] == "p"
