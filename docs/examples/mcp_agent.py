"""An agent that asks the gate over MCP before it acts, with the official client, version 2 (`pip install mcp`).

It goes on only with a binding yes that verifies, acts once, and reports what it did. Everything else holds the action:
an error, a no, a review, advice, and an answer that did not come.

    GATE_KEY=... python mcp_agent.py http://127.0.0.1:8080/api/mcp request.json order-1042
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


def may_act(decided: Any) -> bool:
    """Whether the result of `decide` is a binding yes."""
    record = decided.structured_content
    if decided.is_error or not isinstance(record, dict):
        return False
    return record.get("verdict") == "yes" and "decision_contract" not in record


def act(record: dict[str, Any]) -> str:
    """Performs the action on the target that the record binds; here it only says so."""
    binding = record["action_binding"]
    return f"performed {record['action']} on {binding['system']}/{binding['resource']}"


async def run(url: str, request: dict[str, Any], intent: str) -> str:
    """What became of an action: `held`, or what was done.

    Args:
        url: The address of the gate.
        request: The Decision Request.
        intent: What tells this action from every other, and its retries from new ones.
    """
    async with (
        httpx2.AsyncClient(headers={"x-api-key": os.environ["GATE_KEY"]}, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        decided = await client.call_tool("decide", {"request": request, "idempotency_key": intent})
        if not may_act(decided):
            return "held"
        record = decided.structured_content
        verified = await client.call_tool("verify", {"record": record})
        if verified.is_error or not verified.structured_content["verified"]:
            return "held"
        done = act(record)
        report = {"execution_status": "executed", "execution_result": done}
        arguments = {"decision_id": record["decision_id"], "report": report, "idempotency_key": intent}
        reported = await client.call_tool("report_execution", arguments)
        return f"{done}, reported" if not reported.is_error else f"{done}, not reported: {reported.content[0].text}"


if __name__ == "__main__":
    _, address, file, name = sys.argv
    sys.stdout.write(f"{asyncio.run(run(address, json.loads(Path(file).read_text()), name))}\n")
