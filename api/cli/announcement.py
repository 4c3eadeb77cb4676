"""What `gate serve` prints and logs once it is ready."""

from __future__ import annotations

import shlex
import threading
import time
from pathlib import Path
from typing import Final

import httpx
import orjson
from structlog.typing import FilteringBoundLogger

from api.cli.output import print_json, say
from api.http.readiness import Report

_START_SECONDS: Final = 60
_ANALYTICS_SECONDS: Final = 8


def announce_when_ready(
    url: str, key_file: Path | None, listens: Path | None, log: FilteringBoundLogger, as_json: bool
) -> None:
    """Waits in the background until the service answers, then prints its address and a first request.

    It also logs a warning if trusted adapters cannot run.

    Args:
        url: The address of the service.
        key_file: The file with the demo scope's key; None without a demo scope.
        listens: The socket of the analytics process; None without one.
        log: The log.
        as_json: Whether to print JSON.
    """
    threading.Thread(target=_announce, args=(url, key_file, listens, as_json), daemon=True).start()
    threading.Thread(target=_tell_of_adapters, args=(url, log), daemon=True).start()


def first_request(url: str, key_file: Path) -> str:
    """Returns a curl command, on one line, that makes a first decision in the demo scope."""
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
    """Logs that trusted adapters cannot run, if a report on readiness says so.

    Args:
        report: The report.
        log: The log.

    Returns:
        Whether the report has the answer. It does not while the test still runs, or if the ledger cannot be opened.
    """
    part = report.get("trusted_adapters")
    if part is None or "in_force" not in part:
        return False
    if not part["ready"]:
        log.warning("adapters_not_ready", reason=part["reason"], required=part["required"], in_force=part["in_force"])
    return True


def _tell_of_adapters(url: str, log: FilteringBoundLogger) -> None:
    status = _first_status(url)
    deadline = time.monotonic() + _START_SECONDS
    while status is not None and not tell_of_adapters(status.json(), log) and time.monotonic() < deadline:
        time.sleep(0.5)
        status = _first_status(url)


def _announce(url: str, key_file: Path | None, listens: Path | None, as_json: bool) -> None:
    status = _first_status(url)
    # The reports' process takes longer to load, and a reader of the announcement may ask for a report at once.
    deadline = time.monotonic() + _ANALYTICS_SECONDS
    while listens is not None and not listens.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if status is None or not status.is_success:
        say(f"The service at {url} is not ready. {url}/api/decision/status shows the reason.", style="red")
        return
    command = None if key_file is None else first_request(url, key_file)
    if as_json:
        print_json({"url": url, "first_request": command})
        return
    say(f"Decision Gate is ready at {url} (Ctrl-C stops it); {url}/docs describes it.")
    if command is not None:
        for line in ("", "Make a first decision: paste this into another shell.", "", command, ""):
            say(line)
        say("`make demo` creates a separate instance with a year of made-up decisions to explore.")


def _first_status(url: str) -> httpx.Response | None:
    """The first answer to a request for the status; None if the service does not answer in time."""
    deadline = time.monotonic() + _START_SECONDS
    # One client for all tries: each loads the authorities of TLS, which takes 18 ms.
    with httpx.Client(timeout=10, trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                return client.get(f"{url}/api/decision/status")
            except httpx.TransportError:
                time.sleep(0.1)
    return None
