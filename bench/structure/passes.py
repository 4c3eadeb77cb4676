"""The files of the project that one decide uses, and those that one guarded call uses on its caller's side.

A call uses a file if its thread enters a function of the file. Each call is the second of its kind, so that one-time
loading, compiling, and caching does not count. The calls run in a separate process without garbage collection, because
the cleanup of earlier objects would enter functions at any moment.

`python -m bench.structure.passes` prints them as JSON.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from io import BytesIO
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx
import orjson
from flask import Flask
from flask.testing import FlaskClient

from api.app import create_app
from api.http.logs import open_log
from bench.disk import scratch
from bench.measure import Mismatch
from bench.samples import ROOT, decide_request, rulebook_body
from bench.subjects import SCOPE, sqlite_url
from gate.client import Client
from gate.clock import utc_now
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS

_RULEBOOK: Final = rulebook_body()


def passed() -> dict[str, list[str]]:
    """The files that a `decide` of the service passes, and those of `gate` that a `guard` of a client passes.

    Raises:
        CalledProcessError: A decide was not answered with 200.
    """
    command = [sys.executable, "-m", __spec__.name]
    files: dict[str, list[str]] = orjson.loads(
        subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    )
    return files


def _passed_here() -> dict[str, list[str]]:
    with scratch() as directory, _service(directory / "home") as (instance, key):
        application = create_app(instance, log=open_log(stream=BytesIO()))
        decide = _of_second(_decide(application.test_client(), key))
        with Client(
            "http://gate.example",
            key=key,
            registry=instance.receipt_keys.registry().to_dict(),
            store=directory / "intents.db",
            transport=_Unwatched(application),
        ) as client:
            guard = _of_second(_guard(client))
    return {"decide": decide, "guard": [file for file in guard if file.startswith("gate/")]}


@contextmanager
def watched() -> Iterator[set[str]]:
    """The files whose functions this thread enters while the block runs, complete at its end."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _of_second(call: Callable[[], None]) -> list[str]:
    call()
    with watched() as files:
        call()
    paths = (Path(file) for file in files)
    own = (path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT))
    return sorted(path for path in own if path.startswith(("gate/", "workbench/", "api/")))


@contextmanager
def _service(home: Path) -> Iterator[tuple[Instance, str]]:
    create_instance(home, database_url=sqlite_url(home))
    instance = open_instance(load_settings(home, database_url=sqlite_url(home)))
    try:
        scope = instance.ledger.directory.create_scope(SCOPE, "unlimited", utc_now())
        yield instance, instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0]
    finally:
        instance.close()


def _decide(client: FlaskClient, key: str) -> Callable[[], None]:
    numbers = count()

    def call() -> None:
        headers = {"x-api-key": key, "x-idempotency-key": f"decide-{next(numbers)}"}
        response = client.post("/api/decide", data=decide_request(), content_type="application/json", headers=headers)
        if response.status_code != HTTPStatus.OK:
            raise Mismatch(f"A decide was answered with {response.status}: {response.text}")

    return call


def _guard(client: Client) -> Callable[[], None]:
    numbers = count()
    facts = {"discount_percent": 10, "margin_percent": 22}

    def call() -> None:
        target = ("crm", f"deal-{next(numbers)}")
        with client.guard(_RULEBOOK, facts, action="approve_discount", target=target):
            pass

    return call


class _Unwatched(httpx.BaseTransport):
    """The application over its WSGI entry, in the caller's thread, as if it ran elsewhere."""

    def __init__(self, application: Flask) -> None:
        self._application = httpx.WSGITransport(application)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        watching = sys.getprofile()
        sys.setprofile(None)
        try:
            response = self._application.handle_request(request)
            response.read()
            return response
        finally:
            sys.setprofile(watching)


if __name__ == "__main__":
    print(orjson.dumps(_passed_here()).decode())
