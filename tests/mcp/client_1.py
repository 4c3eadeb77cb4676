"""A session of the first line of the official client: initializes, lists the tools, calls some.

Reads {url, headers, modes, calls: [{name, arguments}]} from standard input, and writes a session for each mode. This
line has one mode, `legacy`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def session(job: dict[str, Any]) -> dict[str, Any]:
    """What a session found."""
    replies: list[dict[str, Any]] = []

    async def keep(response: httpx.Response) -> None:
        sent = json.loads(response.request.content or b"{}")
        body = await response.aread()
        replies.append(
            {"method": sent.get("method"), "status": response.status_code, "reply": json.loads(body) if body else None}
        )

    async with (
        httpx.AsyncClient(headers=job["headers"], event_hooks={"response": [keep]}, trust_env=False) as http,
        streamable_http_client(job["url"], http_client=http) as (read, write, _),
        ClientSession(read, write) as client,
    ):
        opened = await client.initialize()
        await client.send_ping()
        tools = await client.list_tools()
        results = [await client.call_tool(call["name"], call["arguments"]) for call in job["calls"]]
    return {
        "version": opened.protocolVersion,
        "server": opened.serverInfo.model_dump(mode="json", exclude_none=True),
        "instructions": opened.instructions,
        "tools": [tool.model_dump(mode="json", exclude_none=True) for tool in tools.tools],
        "results": [result.model_dump(mode="json", exclude_none=True) for result in results],
        "replies": replies,
    }


if __name__ == "__main__":
    read = json.loads(sys.stdin.read())
    json.dump({"legacy": asyncio.run(session(read))}, sys.stdout)
