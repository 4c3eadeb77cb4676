"""gate serve: the HTTP service."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shlex
import shutil
import socket
import threading
import time
from contextlib import nullcontext
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

import httpx
import orjson
import typer
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from structlog.typing import FilteringBoundLogger

from api.analytics.client import ADDRESS_VARIABLE, SOCKET, analytics_process, is_installed
from api.app import DRAIN_SECONDS, HOME_VARIABLE, SERVER_VARIABLE
from api.cli.demo.command import demo_key_file
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say
from api.http.logs import library_logging, open_log
from api.http.metrics import DIRECTORY_VARIABLE, make_directory
from api.http.placement import PROCESSORS_VARIABLE, processors_to_keep_to
from api.http.readiness import Report
from api.http.turns import PORT_VARIABLE, SECONDS_VARIABLE, WAITING
from api.workers.server import Server
from gate.errors import OperatorError
from gate.instance.instance import create_metrics_token
from gate.ledger.access.limits import replace_damaged_limits

app = typer.Typer(add_completion=False)

_START_SECONDS: Final = 60
_ANALYTICS_SECONDS: Final = 8


@app.command()
def serve(
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many processes answer requests.")] = 2,
    pin_workers: Annotated[
        bool, typer.Option(help="Keep each worker to one processor, where there are as many workers as processors.")
    ] = True,
    request_seconds: Annotated[
        int, typer.Option(min=1, max=60, help="How long a request may take to arrive, its head and then its body.")
    ] = 30,
    analytics: Annotated[
        bool, typer.Option(help="Keep the lake and compute reports, in a process beside the workers.")
    ] = True,
    demo: Annotated[bool, typer.Option("--demo", help="Offer a demo scope and print a first request.")] = False,
    as_json: Json = False,
) -> None:
    """Serve the HTTP API. The first start creates the instance: settings, signing keys and the ledger."""
    url = f"http://{_reachable(host)}:{port}"
    _check_port(host, port)
    with instance_at(home, database_url, create=True, base_url=url) as instance:
        replace_damaged_limits(instance.ledger.store)
        create_metrics_token(home)
        key_file = demo_key_file(instance) if demo else None
        ledger_url, base_url = instance.settings.ledger_url, instance.settings.base_url
        log = open_log(instance.settings.log_level)
    if base_url != url and not as_json:
        say(f"Records cite {base_url}, as base_url in {home / 'settings.toml'} says.")
    os.environ[HOME_VARIABLE] = str(home.absolute())
    os.environ["GATE_DATABASE_URL"] = ledger_url
    os.environ[SERVER_VARIABLE] = str(os.getpid())
    os.environ[PROCESSORS_VARIABLE] = processors_to_keep_to(workers) if pin_workers else ""
    os.environ[SECONDS_VARIABLE] = str(request_seconds)
    os.environ[PORT_VARIABLE] = str(port)
    metrics = make_directory()
    os.environ[DIRECTORY_VARIABLE] = str(metrics)
    os.environ[ADDRESS_VARIABLE] = ""
    if analytics and not is_installed() and not as_json:
        say("Reports about policies need the extra `workbench`, which is not installed; everything else works.")
    # A forked worker would inherit this process's locks and descriptors; a spawned one starts clean.
    multiprocessing.set_start_method("spawn", force=True)
    server = Server(
        "api.http.turns:worker",
        directory=metrics,
        log=log,
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=workers,
        blocking_threads=WAITING,
        # HTTP/2 would let one connection keep hundreds of requests waiting; proxies speak HTTP/1.1 to what they serve.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=1000 * request_seconds),
        workers_kill_timeout=DRAIN_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig=library_logging(),
    )
    computes = analytics and is_installed()
    listens = metrics / SOCKET if computes else None
    server.on_startup(lambda: _announce_when_ready(url, key_file, listens, log, as_json))
    server.on_shutdown(lambda: None if as_json else say("Stopped. Everything acknowledged is in the ledger."))
    # It warns of more threads than processors can serve at once; here they wait for their turn.
    logging.getLogger("_granian").addFilter(lambda record: "Configuration allows spawning" not in record.getMessage())
    try:
        with analytics_process(home.absolute(), metrics, os.getpid()) if computes else nullcontext("") as address:
            os.environ[ADDRESS_VARIABLE] = address
            server.serve()
    finally:
        shutil.rmtree(metrics, ignore_errors=True)


def first_request(url: str, key_file: Path) -> str:
    """A curl command, on one line, that makes a first decision in the demo scope."""
    body = {
        "mode": "rulebook",
        "rulebook_ref": {"rulebook_id": "pricing_exception", "version": "2026-06-11"},
        "context": {
            "requested_action": "approve_discount",
            "target_system": "crm",
            "target_object_id": "deal-1042",
            "inputs": {"discount_percent": 10, "margin_percent": 22},
        },
    }
    return (
        f"curl -s -w '\\n' {url}/api/decide"
        f' -H "x-api-key: $(cat {shlex.quote(str(key_file))})"'
        f" -H 'content-type: application/json'"
        f" -d '{orjson.dumps(body).decode()}'"
    )


def tell_of_adapters(report: Report, log: FilteringBoundLogger) -> bool:
    """Logs that trusted adapters cannot run, where a report on readiness says so.

    Args:
        report: The report.
        log: The log.

    Returns:
        Whether the report knows; not as long as that is being tried, or the ledger cannot be opened.
    """
    part = report.get("trusted_adapters")
    if part is None or "in_force" not in part:
        return False
    if not part["ready"]:
        log.warning("adapters_not_ready", reason=part["reason"], required=part["required"], in_force=part["in_force"])
    return True


def _reachable(host: str) -> str:
    """The name under which this machine reaches a listening address, as a URL writes it."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"


def _announce_when_ready(
    url: str, key_file: Path | None, listens: Path | None, log: FilteringBoundLogger, as_json: bool
) -> None:
    threading.Thread(target=_announce, args=(url, key_file, listens, as_json), daemon=True).start()
    threading.Thread(target=_tell_of_adapters, args=(url, log), daemon=True).start()


def _tell_of_adapters(url: str, log: FilteringBoundLogger) -> None:
    status = _first_status(url)
    deadline = time.monotonic() + _START_SECONDS
    while status is not None and not tell_of_adapters(status.json(), log) and time.monotonic() < deadline:
        time.sleep(0.5)
        status = _first_status(url)


def _announce(url: str, key_file: Path | None, listens: Path | None, as_json: bool) -> None:
    status = _first_status(url)
    # The reports' process loads longer, and whoever hears that the service is ready may ask for one at once.
    deadline = time.monotonic() + _ANALYTICS_SECONDS
    while listens is not None and not listens.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if status is None or not status.is_success:
        say(f"The service at {url} is not ready; {url}/api/decision/status says why.", style="red")
        return
    command = None if key_file is None else first_request(url, key_file)
    if as_json:
        print_json({"url": url, "first_request": command})
        return
    say(f"Decision Gate is ready at {url} (Ctrl-C stops it); {url}/docs describes it.")
    if command is not None:
        for line in ("", "A first decision, to paste into another shell:", "", command, ""):
            say(line)
        say("A year of made-up decisions to look at, in an instance of its own: make demo.")


def _first_status(url: str) -> httpx.Response | None:
    """What the service answers first when it is asked for its status; None where it does not answer."""
    deadline = time.monotonic() + _START_SECONDS
    # One client for all tries: each loads the authorities of TLS, which takes 18 ms.
    with httpx.Client(timeout=10, trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                return client.get(f"{url}/api/decision/status")
            except httpx.TransportError:
                time.sleep(0.1)
    return None


def _check_port(host: str, port: int) -> None:
    """Refuses a port that is taken: workers share theirs, so that two servers would quietly split the requests."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise _no_address(host, error.strerror) from error
    except UnicodeError as error:
        raise _no_address(host, "no name that can be looked up") from error
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host, error.strerror) from error
        raise OperatorError(
            "ADDRESS_UNAVAILABLE",
            f"Nothing can listen on {host}:{port} ({error.strerror}); stop what does, or choose another --port "
            f"(with make: make run PORT=8081).",
        ) from error


def _no_address(host: str, why: str | None) -> OperatorError:
    return OperatorError(
        "ADDRESS_UNAVAILABLE",
        f"{host} is no address of this machine ({why}); choose another --host, such as 127.0.0.1.",
    )
