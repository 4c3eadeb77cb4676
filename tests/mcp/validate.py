"""Holds replies against the types that the protocol publishes for each version.

Reads [{version, method, reply}] from standard input, and writes what is wrong with each that does not fit, as a list of
[its number, a sentence].
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mcp_types import jsonrpc
from mcp_types.methods import validate_server_result
from pydantic import ValidationError


def fault(version: str, method: str, reply: dict[str, Any]) -> str | None:
    """What is wrong with a reply; None where nothing is."""
    try:
        if "error" in reply:
            jsonrpc.JSONRPCError.model_validate(reply)
            return None
        response = jsonrpc.JSONRPCResponse.model_validate(reply)
        validate_server_result(method, version, response.result)
    except (ValidationError, KeyError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    found = [fault(**each) for each in json.loads(sys.stdin.read())]
    json.dump([[number, wrong] for number, wrong in enumerate(found) if wrong is not None], sys.stdout)
