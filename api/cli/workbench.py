"""`gate workbench`: serve the dashboard, in a separate process."""

from __future__ import annotations

import logging.config
import os
import re
import secrets
import threading
import time
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, Final

import typer
from structlog.typing import FilteringBoundLogger

from api.cli.demo.command import SCOPE, WHOLE
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, progress, say
from api.http.logs import library_logging, open_log, places
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.origins import LOOPBACK
from workbench.charts.inline.renderers import Renderers
from workbench.dashboard.app.server import dashboard
from workbench.dashboard.app.warming import warm_up
from workbench.dashboard.store.store import Store
from workbench.lake.entries import Personal
from workbench.lake.lease import BUSY, lease
from workbench.lake.manifest import load
from workbench.lake.upkeep import bring_up

app = typer.Typer(add_completion=False)

DEMO_USER: Final = "demo"

_SERVER_SECONDS: Final = 1.0

_PUBLIC: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


@app.command()
def workbench(
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 5006,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The address under which browsers reach the dashboard through a proxy, such as "
            "https://workbench.example.com.",
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address of a proxy that appends to X-Forwarded-For, if it is not on this machine. Repeatable.",
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Create a demo user, and print a link that signs this user in once.")
    ] = False,
    ends_with: Annotated[int | None, typer.Option(hidden=True, help="The process that this one ends with.")] = None,
    as_json: Json = False,
) -> None:
    """Serve the dashboard to the users that `gate users add` created."""
    if public_url is not None and _PUBLIC.fullmatch(public_url) is None:
        raise OperatorError(
            "USAGE_INVALID",
            f"--public-url {public_url!r} is not an address; write scheme and host, such as "
            f"https://workbench.example.com.",
        )
    proxies = _proxies(trusted_proxy, public_url)
    if ends_with is not None:
        threading.Thread(target=_end_with, args=(ends_with,), daemon=True).start()
    log = open_log("warning")
    # Tornado and Bokeh quote addresses, whose filters may name persons, and the token of a link that still signs in.
    logging.config.dictConfig(library_logging(messages=False))
    with instance_at(home, database_url) as instance, Renderers() as renderers:
        personal = Personal.of(instance.settings.personal_fields)
        user = _demo_user(instance) if demo else None
        _catch_up(instance, personal, as_json=as_json)
        warm_up(renderers.draw)
        store = Store(instance, personal, utc_now, tells_paths=public_url is None and _is_loopback(host))
        try:
            served = dashboard(
                store,
                instance.ledger.users,
                _Logged(log),
                host=host,
                port=port,
                public_url=public_url,
                trusted_proxies=proxies,
                demo_user=user,
                draw=renderers.draw,
                clock=utc_now,
            )
        except OSError as error:
            raise OperatorError(
                "PORT_UNAVAILABLE",
                f"The dashboard cannot listen on {host}, port {port}: {error.strerror}. Choose another with --port.",
            ) from error
        _announce(instance, public_url or f"http://{host}:{port}", served.link, as_json=as_json)
        served.run()
        if ends_with is None and not as_json:
            say("Stopped.")


def _proxies(named: list[str] | None, public_url: str | None) -> Sequence[str]:
    """The proxies to trust.

    Raises:
        OperatorError: USAGE_INVALID: one is no address, or there is no public URL that they would serve.
    """
    if not named:
        return LOOPBACK
    if public_url is None:
        raise OperatorError("USAGE_INVALID", "--trusted-proxy needs --public-url, the address that the proxy serves.")
    for proxy in named:
        try:
            ip_address(proxy)
        except ValueError as error:
            raise OperatorError(
                "USAGE_INVALID", f"--trusted-proxy {proxy!r} is not an IP address; write one such as 10.0.0.5."
            ) from error
    return named


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _end_with(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_SERVER_SECONDS)
    # It holds nothing that is not in the ledger.
    os._exit(0)


class _Logged:
    """Writes what fails into the log; of what is unexpected the type and the places, and no message."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def failed(self, what: str, error: BaseException) -> None:
        self._log.error(f"dashboard_{what}_failed", error_type=type(error).__qualname__, places=places(error))


def _demo_user(instance: Instance) -> str:
    """The demo's user, who may see the scopes of a demo, and has no password that anybody knows: the link signs in.

    Raises:
        OperatorError: NO_DEMO: the instance is not a demo.
    """
    whole = (instance.settings.home / WHOLE).is_file()
    scopes = [scope for scope in instance.ledger.directory.scopes() if whole or scope.name == SCOPE]
    if not scopes:
        raise OperatorError(
            "NO_DEMO",
            f"{instance.settings.home} is not a demo. With --demo, everyone with the link could open it. Add a user "
            f"with `gate users add`, or create a demo with `make demo` or `gate serve --demo`.",
        )
    users, now = instance.ledger.users, utc_now()
    if DEMO_USER not in {user.name for user in users.users()}:
        users.add(DEMO_USER, secrets.token_urlsafe(32), scopes, "approver", None, now)
    known = users.user(DEMO_USER).roles
    for scope in scopes:
        if scope.scope_id not in known:
            users.grant(DEMO_USER, scope, "approver", now)
    return DEMO_USER


def _catch_up(instance: Instance, personal: Personal, *, as_json: bool) -> None:
    """Exports what the lake lacks, unless a service does; pages read a short tail from the ledger themselves."""
    lake, ledger = instance.settings.lake_directory, instance.ledger
    scopes = {scope.scope_id: scope.head.size for scope in ledger.tail.scopes()}
    held = {scope_id: found.position for scope_id in scopes if (found := load(lake, scope_id)) is not None}
    missing = sum(max(0, size - held.get(scope_id, 0)) for scope_id, size in scopes.items())
    if not missing:
        return
    done = 0
    try:
        with lease(lake, patience=0), progress("Exporting", missing, as_json=as_json) as tell:
            for scope_id in scopes:
                reached = before = held.get(scope_id, 0)
                for manifest in bring_up(ledger, lake, scope_id, personal):
                    reached = max(reached, manifest.position)
                    tell(done + reached - before)
                done += reached - before
    except OperatorError as error:
        if error.code != BUSY:
            raise


def _announce(instance: Instance, url: str, link: str | None, *, as_json: bool) -> None:
    once = None if link is None else f"{url}{link}"
    if as_json:
        print_json({"url": url, "sign_in_once": once})
        return
    say(f"The dashboard is ready at {url} (Ctrl-C stops it).")
    if once is not None:
        say(f"Open it as the demo user; the link works once: {once}")
    elif not instance.ledger.users.users():
        say("Nobody can sign in yet: add a user with `gate users add NAME --scope SCOPE --role viewer`.")
