"""An agent that asks the gate over MCP before it acts, with the official client, version 2 (`pip install mcp`).

It acts only on a verified, binding yes for the target that it wants to change. It acts once per order and reports what
it did. Everything else holds the action: an error, a no, a review, an advisory record, another target, an order that
began before, or a missing response.

    GATE_KEY=... python mcp_agent.py http://127.0.0.1:8080/api/mcp request.json order-1 crm deal-1042 approve_discount
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

ARGUMENTS = "URL REQUEST_FILE ORDER SYSTEM RESOURCE ACTION"


class Wanted(NamedTuple):
    """The action that this program would perform."""

    system: str
    resource: str
    proposed_action: str


def may_act(decided: Any, wanted: Wanted) -> bool:
    """Whether the result of `decide` is a binding yes to the wanted action."""
    record = decided.structured_content
    if decided.is_error or not isinstance(record, dict):
        return False
    if record.get("verdict") != "yes" or "decision_contract" in record:
        return False
    binding = record.get("action_binding", {})
    return all(wanted) and wanted == Wanted(*(binding.get(name) for name in Wanted._fields))


def why_not(decided: Any) -> list[str]:
    """The gate's notes on a decision that does not permit the action; for a yes without notes, its action binding."""
    record = decided.structured_content
    notes = [str(part.text) for part in decided.content[1:]]
    if not notes and record["verdict"] == "yes":
        bound = ", ".join(f"{name} {record['action_binding'].get(name)}" for name in Wanted._fields)
        notes.append(f"The record binds: {bound}.")
    return notes


def begin(orders: Path, order: str) -> bool:
    """Marks an order as begun. Returns False if it began before. All processes that may act share this file."""
    with closing(sqlite3.connect(orders)) as store, store:
        store.execute("CREATE TABLE IF NOT EXISTS begun (name TEXT PRIMARY KEY)")
        return store.execute("INSERT OR IGNORE INTO begun VALUES (?)", (order,)).rowcount == 1


def act(wanted: Wanted) -> str:
    """Performs the action; this example only returns a sentence."""
    return f"performed {wanted.proposed_action} on {wanted.system}/{wanted.resource}"


def attempt(wanted: Wanted) -> tuple[str, str]:
    """Acts, and returns the status for the report and the result."""
    try:
        return "executed", act(wanted)
    except Exception as error:  # noqa: BLE001 - the owner of the action reads any error in the report
        return "failed", f"failed: {error}"


async def run(url: str, key: str, request: dict[str, Any], order: str, wanted: Wanted, orders: Path) -> str:
    """Runs an action. Returns `held` with the reason, or the result, followed by the gate's notes, one per line.

    Args:
        url: The address of the gate.
        key: The API key.
        request: The Decision Request.
        order: The id of this action; retries use the same id.
        wanted: The action.
        orders: The file with the orders that have begun.
    """
    became, notes = "held: there was no usable answer", list[str]()
    statuses: list[int] = []

    async def keep_status(response: httpx2.Response) -> None:
        # The client's errors do not contain the status.
        statuses.append(response.status_code)

    hooks = {"response": [keep_status]}
    try:
        async with (
            httpx2.AsyncClient(headers={"x-api-key": key}, event_hooks=hooks, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            decided = await client.call_tool("decide", {"request": request, "idempotency_key": order})
            record = decided.structured_content
            if decided.is_error:
                return f"held: {record['message']}"
            verified = await client.call_tool("verify", {"record": record})
            became = "held: nothing was done"
            if not may_act(decided, wanted):
                notes = why_not(decided)
                said = f"{record['verdict']} ({record['reason_code']})"
                status = "skipped"
                became = f"held: {said} does not permit {wanted.proposed_action} on {wanted.system}/{wanted.resource}"
            elif verified.is_error or not verified.structured_content["verified"]:
                status, became = "skipped", "held: the record does not verify"
            elif not begin(orders, order):
                return f"held: {order} was begun before; find out whether it was performed"
            else:
                status, became = attempt(wanted)
            report = {"execution_status": status, "execution_result": became, "action_binding": wanted._asdict()}
            arguments = {"decision_id": record["decision_id"], "report": report, "idempotency_key": f"{order}-{status}"}
            became, done = f"{became}, not reported", became
            reported = await client.call_tool("report_execution", arguments)
            became = f"{became}: {reported.content[0].text}" if reported.is_error else f"{done}, reported"
    except Exception as error:  # noqa: BLE001 - the result of the action is known, whatever failed
        # The client raises exception groups; the first error says what happened.
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        said = f"{type(error).__name__}: {error}"
        if 401 in statuses:
            said = "status 401: the gate does not know the key in GATE_KEY"
        became = f"{became} ({said})"
    return "\n".join([became, *notes])


def main(url: str, file: str, order: str, *wanted: str) -> str:
    """Runs with the command line's arguments; the file of begun orders is next to the request."""
    key, path = os.environ.get("GATE_KEY"), Path(file)
    if not key:
        return "held: GATE_KEY is not set; set it to the API key of this agent"
    try:
        request = json.loads(path.read_text())
    except OSError as error:
        return f"held: {file} cannot be read: {error.strerror}"
    except ValueError as error:
        return f"held: {file} is not JSON: {error}"
    return asyncio.run(run(url, key, request, order, Wanted(*wanted), path.with_name("begun.db")))


if __name__ == "__main__":
    if len(sys.argv[1:]) != len(ARGUMENTS.split()):
        sys.exit(f"usage: GATE_KEY=... python mcp_agent.py {ARGUMENTS}")
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
