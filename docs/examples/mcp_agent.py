"""An agent that asks the gate over MCP before it acts, with the official client, version 2 (`pip install mcp`).

It goes on only with a binding yes that verifies and names the target that it wants to change, acts once for an order,
and reports what it did. Everything else holds the action: an error, a no, a review, advice, another target, an order
that was begun before, and an answer that did not come.

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


class Wanted(NamedTuple):
    """What the agent wants to do, as the program knows it that would do it."""

    system: str
    resource: str
    proposed_action: str


def may_act(decided: Any, wanted: Wanted) -> bool:
    """Whether the result of `decide` is a binding yes to what is wanted."""
    record = decided.structured_content
    if decided.is_error or not isinstance(record, dict):
        return False
    if record.get("verdict") != "yes" or "decision_contract" in record:
        return False
    binding = record.get("action_binding", {})
    return all(wanted) and wanted == Wanted(*(binding.get(name) for name in Wanted._fields))


def begin(orders: Path, order: str) -> bool:
    """Whether an order was not begun before; it is begun then. Every process that may act needs this same file."""
    with closing(sqlite3.connect(orders)) as store, store:
        store.execute("CREATE TABLE IF NOT EXISTS begun (name TEXT PRIMARY KEY)")
        return store.execute("INSERT OR IGNORE INTO begun VALUES (?)", (order,)).rowcount == 1


def act(wanted: Wanted) -> str:
    """Performs the action; here it only says so."""
    return f"performed {wanted.proposed_action} on {wanted.system}/{wanted.resource}"


def attempt(wanted: Wanted) -> tuple[str, str]:
    """Acts: the status for the report, and what became of it."""
    try:
        return "executed", act(wanted)
    except Exception as error:  # noqa: BLE001 - whatever it is, the owner of the action reads it in the report
        return "failed", f"failed: {error}"


async def run(url: str, key: str, request: dict[str, Any], order: str, wanted: Wanted, orders: Path) -> str:
    """What became of an action: `held` and why, or what was done.

    Args:
        url: The address of the gate.
        key: The API key.
        request: The Decision Request.
        order: What tells this action from every other, and its retries from new ones.
        wanted: What is to be done.
        orders: The file that remembers which orders were begun.
    """
    became = "held: the gate did not answer"
    try:
        async with (
            httpx2.AsyncClient(headers={"x-api-key": key}, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            decided = await client.call_tool("decide", {"request": request, "idempotency_key": order})
            record = decided.structured_content
            if decided.is_error:
                return f"held: {record['message']}"
            verified = await client.call_tool("verify", {"record": record})
            if not may_act(decided, wanted):
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
    except Exception as error:  # noqa: BLE001 - whatever it is, what became of the action is known
        # The client raises groups; the first error in them says what happened.
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        became = f"{became} ({type(error).__name__}: {error})"
    return became


def main(url: str, file: str, order: str, *wanted: str) -> str:
    """Runs with what the command line says; the orders that were begun are remembered beside the request."""
    key, request = os.environ.get("GATE_KEY"), Path(file)
    if not key:
        return "held: GATE_KEY is not set; set it to the API key of this agent"
    orders = request.with_name("begun.db")
    return asyncio.run(run(url, key, json.loads(request.read_text()), order, Wanted(*wanted), orders))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
