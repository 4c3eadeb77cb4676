"""A caller without the guard: it lets an action proceed only after a verified yes about this very action.

    python docs/examples/careful_caller.py http://127.0.0.1:8080 KEYS FOLDER

It asks the service of `make run` about two discounts, verifies the answers with the public keys in the file KEYS, and
stores them in the folder. It does not stop a second run of the action after a crash: the guard does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import httpx

from gate.client import Client

RULEBOOK_HASH: Final = "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee"
KEY_FILE: Final = Path("var/demo.key")
FURTHER: Final = ("mutation", "actor", "subject", "amount", "currency")
"""Fields that are in the action binding if they are in the context."""


def may_proceed(service: str, keys: Path, request: dict[str, Any], idempotency_key: str, store: Path) -> bool:
    """Whether the action may happen now. If not, hold it; to ask again, call with the same key."""
    headers = {"x-api-key": KEY_FILE.read_text().strip(), "x-idempotency-key": idempotency_key}
    try:
        response = httpx.post(f"{service}/api/decide", json=request, headers=headers, timeout=10)
        record = response.json()
    except (httpx.HTTPError, ValueError):
        return False
    if response.status_code != 200 or not isinstance(record, dict):
        return False
    store.mkdir(parents=True, exist_ok=True)
    (store / f"{idempotency_key}.json").write_bytes(response.content)
    context = request["context"]
    binding = {
        "system": context["target_system"],
        "resource": context["target_object_id"],
        "proposed_action": context["requested_action"],
        **{name: context[name] for name in FURTHER if name in context},
    }
    with Client(service, registry=keys) as client:
        verified = client.verify(record, request=request).verified
    return (
        verified
        and record.get("verdict") == "yes"
        and "decision_contract" not in record
        and record.get("action") == "approve_discount"
        and record.get("rulebook", {}).get("hash") == RULEBOOK_HASH
        and record.get("action_binding") == binding
    )


def discount(percent: int) -> dict[str, Any]:
    """A request for a discount on deal-1042."""
    return {
        "mode": "rulebook",
        "rulebook_ref": {"rulebook_id": "pricing_exception", "version": "2026-06-11"},
        "context": {
            "target_system": "crm",
            "target_object_id": "deal-1042",
            "requested_action": "approve_discount",
            "actor": "rosa",
            "inputs": {"discount_percent": percent, "margin_percent": 22},
        },
    }


if __name__ == "__main__":
    service, keys, folder = sys.argv[1:4]
    for number, percent in enumerate((10, 40), start=1):
        allowed = may_proceed(service, Path(keys), discount(percent), f"deal-1042-discount-{number}", Path(folder))
        print(f"a discount of {percent}%: {allowed}")
