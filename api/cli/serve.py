"""`gate serve`: run the HTTP service."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shutil
import socket
from contextlib import nullcontext
from ipaddress import ip_address
from typing import Annotated

import typer
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from api import dashboard
from api.analytics.client import ADDRESS_VARIABLE, SOCKET, analytics_process, is_installed
from api.app import DRAIN_SECONDS, HOME_VARIABLE, SERVER_VARIABLE
from api.cli.announcement import announce_when_ready
from api.cli.demo.command import demo_key_file
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import say
from api.expiry import Expiry
from api.http.logs import library_logging, open_log
from api.http.metrics import DIRECTORY_VARIABLE, make_directory
from api.http.turns import PORT_VARIABLE, SECONDS_VARIABLE, WAITING
from api.keeper import STATE_VARIABLE, Keeper
from api.webhooks.starting import webhook_process
from api.workers.placement import PROCESSORS_VARIABLE, processors_to_keep_to
from api.workers.server import Server
from gate.errors import OperatorError
from gate.instance.advisory import open_advisor
from gate.instance.instance import create_metrics_token
from gate.instance.pilots import create_pilot_secret
from gate.ledger.access.limits import replace_damaged_limits

app = typer.Typer(add_completion=False)


@app.command()
def serve(
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, max=64, help="The number of worker processes, 1 to 64.")] = 2,
    pin_workers: Annotated[
        bool,
        typer.Option(
            help="On Linux, bind each worker to one processor if there are as many workers as processors. Turn it off "
            "if the machine has other work."
        ),
    ] = True,
    request_seconds: Annotated[
        int,
        typer.Option(
            min=1,
            max=60,
            help="The seconds in which the head of a request must arrive, and then its body, 1 to 60. "
            "On Linux, a connection that completes no request in three times as long is closed.",
        ),
    ] = 30,
    analytics: Annotated[
        bool,
        typer.Option(
            help="Update the lake and compute reports in a separate process. Without it, reports and alerts answer 503."
        ),
    ] = True,
    webhooks: Annotated[bool, typer.Option(help="Deliver events to webhook endpoints in a separate process.")] = True,
    workbench: Annotated[
        bool, typer.Option("--workbench", help="Also serve the dashboard, in a separate process, on this machine only.")
    ] = False,
    workbench_port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the dashboard.")] = 5006,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Create the scope demo with a key in demo.key, register the sample rulebooks, and print a first "
            "request.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Serve the HTTP API. The first start creates the instance: settings, signing keys, and the ledger.

    SIGTERM or Ctrl-C stops the service. Workers finish their requests first, for at most 15 seconds. A worker that dies
    is restarted, after a pause that grows to 10 seconds if it keeps dying. Several services may share a ledger:
    an SQLite file on one machine, or a PostgreSQL database.

    The service speaks plain HTTP. Put a proxy with TLS in front of it, because API keys travel in a header. Keep the
    clock of the host synchronized: it dates records, and a clock before the start of a signing key stops decisions.
    """
    url = f"http://{_reachable(host)}:{port}"
    _check_port(host, port)
    with instance_at(home, database_url, create=True, base_url=url) as instance:
        replace_damaged_limits(instance.ledger.store)
        create_metrics_token(home)
        create_pilot_secret(home)
        # A worker would only close the advisory modes.
        open_advisor(instance.settings)
        key_file = demo_key_file(instance) if demo else None
        settings, ledger_url, base_url = instance.settings, instance.settings.ledger_url, instance.settings.base_url
        log = open_log(instance.settings.log_level)
    if base_url != url and not as_json:
        say(f"Records cite {base_url}, the base_url in {home / 'settings.toml'}.")
    os.environ[HOME_VARIABLE] = str(home.absolute())
    os.environ["GATE_DATABASE_URL"] = ledger_url
    os.environ[SERVER_VARIABLE] = str(os.getpid())
    os.environ[PROCESSORS_VARIABLE] = processors_to_keep_to(workers) if pin_workers else ""
    os.environ[SECONDS_VARIABLE] = str(request_seconds)
    os.environ[PORT_VARIABLE] = str(port)
    metrics = make_directory()
    os.environ[DIRECTORY_VARIABLE] = str(metrics)
    os.environ[STATE_VARIABLE] = str(metrics / "checkpoints.json")
    os.environ[ADDRESS_VARIABLE] = ""
    if analytics and not is_installed() and not as_json:
        say("Policy reports are off, because the extra `workbench` is not installed. Everything else works.")
    if workbench and not dashboard.is_installed():
        raise OperatorError(
            "EXTRA_MISSING",
            "--workbench needs the extra `workbench`. Install it in a checkout with: pip install '.[server,workbench]'",
        )
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
    server.on_startup(lambda: announce_when_ready(url, key_file, listens, log, as_json))
    server.on_shutdown(lambda: None if as_json else say("Stopped. Everything acknowledged is in the ledger."))
    # It warns of more threads than processors can serve at once; here they wait for their turn.
    logging.getLogger("_granian").addFilter(lambda record: "Configuration allows spawning" not in record.getMessage())
    beside = (
        dashboard.dashboard_process(home.absolute(), workbench_port, os.getpid(), demo=demo, as_json=as_json)
        if workbench
        else nullcontext()
    )
    delivers = webhook_process(home.absolute(), os.getpid()) if webhooks else nullcontext()
    try:
        with (
            delivers,
            analytics_process(home.absolute(), metrics, os.getpid()) if computes else nullcontext("") as address,
        ):
            os.environ[ADDRESS_VARIABLE] = address
            # Its last round comes after the workers have answered their last requests.
            with Keeper(settings, metrics / "checkpoints.json", log), Expiry(settings, log), beside:
                server.serve()
    finally:
        shutil.rmtree(metrics, ignore_errors=True)


def _reachable(host: str) -> str:
    """The name under which this machine reaches a listening address, as a URL writes it."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"


def _check_port(host: str, port: int) -> None:
    """Refuses a port that is taken: workers share theirs, so that two servers would quietly split the requests."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise _no_address(host, error.strerror) from error
    except UnicodeError as error:
        raise _no_address(host, "the name cannot be resolved") from error
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host, error.strerror) from error
        raise OperatorError(
            "ADDRESS_UNAVAILABLE",
            f"The service cannot listen on {host}:{port} ({error.strerror}). Stop the process that uses the port, or "
            f"choose another --port (with make: make run PORT=8081).",
        ) from error


def _no_address(host: str, why: str | None) -> OperatorError:
    return OperatorError(
        "ADDRESS_UNAVAILABLE",
        f"{host} is not an address of this machine ({why}); choose another --host, such as 127.0.0.1.",
    )
