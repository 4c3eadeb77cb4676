"""A session of the second line of the official client: discovers or initializes, lists the tools, calls some.

Reads {url, headers, modes, calls: [{name, arguments}]} from standard input, and writes a session for each mode: `auto`,
which asks for the newest version first, or `legacy`, which opens with `initialize`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def session(job: dict[str, Any], mode: str) -> dict[str, Any]:
    """What a session found."""
    replies: list[dict[str, Any]] = []

    async def keep(response: httpx2.Response) -> None:
        sent = json.loads(response.request.content or b"{}")
        body = await response.aread()
        replies.append(
            {"method": sent.get("method"), "status": response.status_code, "reply": json.loads(body) if body else None}
        )

    async with (
        httpx2.AsyncClient(headers=job["headers"], event_hooks={"response": [keep]}, trust_env=False) as http,
        Client(streamable_http_client(job["url"], http_client=http), mode=mode) as client,
    ):
        tools = await client.list_tools()
        results = [await client.call_tool(call["name"], call["arguments"]) for call in job["calls"]]
        server = client.server_info
        return {
            "version": client.protocol_version,
            "server": None if server is None else server.model_dump(mode="json", exclude_none=True),
            "instructions": client.instructions,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools],
            "results": [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in results],
            "replies": replies,
        }


if __name__ == "__main__":
    read = json.loads(sys.stdin.read())
    json.dump({mode: asyncio.run(session(read, mode)) for mode in read["modes"]}, sys.stdout)
