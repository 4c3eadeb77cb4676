"""The measured samples: the sample rulebook, and requests as an integrator sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

ROOT: Final = Path(__file__).resolve().parent.parent

_RULEBOOK: Final = ROOT / "data" / "rulebooks" / "pricing_exception.json"


def rulebook_body() -> dict[str, Any]:
    """The sample rulebook."""
    body: dict[str, Any] = orjson.loads(_RULEBOOK.read_bytes())
    return body


def decide_request() -> bytes:
    """A Decision Request with the sample rulebook inline, about 1.2 KB."""
    return orjson.dumps(
        {
            "mode": "rulebook",
            "rulebook": rulebook_body(),
            "context": {
                "requested_action": "approve_discount",
                "target_system": "crm",
                "target_object_id": "deal-1042",
                "actor": "pricing-agent@example.com",
                "inputs": {"discount_percent": 10, "margin_percent": 22},
            },
        }
    )


def reference_request() -> bytes:
    """The same with a reference to the registered rulebook, for the shortest answer; about 0.3 KB."""
    request = orjson.loads(decide_request())
    rulebook = request.pop("rulebook")
    reference = {"rulebook_id": rulebook["rulebook_id"], "version": rulebook["version"]}
    return orjson.dumps({**request, "rulebook_ref": reference, "response_view": "minimal"})
