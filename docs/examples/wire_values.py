"""Exact values of the wire format, for testing an implementation: run it from the project's root.

It needs only rfc8785 and PyNaCl, and nothing of this project. Replace `digest`, `canonical`, and the signatures by your
implementation, and every comparison must still hold.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import sys
from pathlib import Path
from typing import Any

import rfc8785
from nacl.signing import SigningKey

canonical = rfc8785.dumps


def sha256(data: bytes) -> str:
    """SHA-256 as lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """The SHA-256 of canonical JSON: H in the wire format."""
    return sha256(canonical(value))


def require(name: str, computed: object, expected: object) -> None:
    """Ends the program where a value is not the expected one."""
    if computed != expected:
        sys.exit(f"{name}: computed {computed!r}, expected {expected!r}")


def check_canonical_json() -> None:
    """The table of docs/reference/wire-format/json.md: a value as sent, and its canonical form."""
    page = Path("docs/reference/wire-format/json.md").read_text()
    rows = re.findall(r"^\| `([{\[].*)` \| `(.*)` \|$", page, re.MULTILINE)
    require("rows of the table", len(rows), 5)
    for sent, expected in rows:
        require(sent, canonical(json.loads(sent)), expected.encode())


def check_hashes() -> None:
    """Hashes of values, of a rulebook, of facts, of a bundle, and of an output."""
    require("{}", digest({}), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
    value = {"b": 1.0, "a": [True, None]}
    require("b, a", digest(value), "51705a2c9eb3e7e410a58f696a770c3ac3885a0cf43eb7fc88f5e47c11d4d30d")
    rulebook_hash = digest(json.loads(Path("data/rulebooks/pricing_exception.json").read_text()))
    require("rulebook", rulebook_hash, "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee")
    facts = {"discount_percent": 10, "margin_percent": 22}
    require("facts", digest(facts), "7bf6d37013a2e6dbdd6133995dbb0cb196fadf93b46277d09874916e8b3e3e4e")
    bundle = {
        "id": "pricing_exception",
        "version": "2026-06-11",
        "hash": rulebook_hash,
        "hash_algorithm": "sha256",
        "canonicalization": "json.sort_deep.v1",
    }
    require("policy bundle", digest(bundle), "4f147613c89e33467db85039a6777531fb6cf5f8249eb7dd33331fdc7853f43f")
    output = {
        "status": "ok",
        "verdict": "yes",
        "application_verdict": "APPROVE",
        "action": "approve_discount",
        "reason_code": "STANDARD_EXCEPTION_ALLOWED",
        "matched_rule_id": "approve_standard_exception",
        "evidence": ["STANDARD_EXCEPTION_ALLOWED", "rule:approve_standard_exception"],
    }
    require("output", digest(output), "4b915c356417ff96b88cb4c0822a274dee9fd6309dfcd4a51746db60ae3bb44f")


def links() -> list[dict[str, Any]]:
    """The links of two decisions in the chain `chain_example`."""
    made: list[dict[str, Any]] = []
    for position, (record, receipt) in enumerate([("1" * 64, "2" * 64), ("3" * 64, "4" * 64)], start=1):
        before = made[-1] if made else {"link_hash": None, "merkle_root": None}
        entry = {
            "decision_chain_version": "decision_chain_v1",
            "entry_type": "decision",
            "decision_id": f"dec_example_{position}",
            "record_hash": record,
            "receipt_hash": receipt,
        }
        leaf = digest(entry)
        pair = {
            "strategy": "rolling_sha256_pair_v1",
            "previous_merkle_root": before["merkle_root"],
            "leaf_hash": leaf,
            "chain_position": position,
        }
        link = entry | {
            "chain_id": "chain_example",
            "chain_position": position,
            "previous_link_hash": before["link_hash"],
            "previous_merkle_root": before["merkle_root"],
            "leaf_hash": leaf,
            "merkle_root": digest(pair) if made else leaf,
            "merkle_strategy": "rolling_sha256_pair_v1",
            "policy_id": "pricing_exception",
            "policy_version": "2026-06-11",
            "created_at": f"2026-01-31T12:00:0{position - 1}.000Z",
        }
        made.append(link | {"link_hash": digest(link)})
    return made


def check_chain() -> None:
    """The leaves, roots, and link hashes of two links."""
    first, second = links()
    require("leaf 1", first["leaf_hash"], "50c906f61393d665d8000bfc98f496ef5968b7d1bf1ceb2a9aab0ac43ff44deb")
    require("root 1", first["merkle_root"], first["leaf_hash"])
    require("link 1", first["link_hash"], "95bf9a8522ff00dfdde2f7e9b38ef2e699dc0a12e96cf171512886dd7e4fa56e")
    require("leaf 2", second["leaf_hash"], "17f2bdb7c4ef0641f3e612137a53e3c887a1ad0411e2010afca85d91cc6c9b3b")
    require("root 2", second["merkle_root"], "6e909cbd4ee05e7a89209ce5104c77941f13cec071f62f469fb4a5861b3c7585")
    require("link 2", second["link_hash"], "0ea5308947fc2505a6d9e7074e32e52bbfb1dc330a4972395032747fe371e641")


def check_receipt() -> None:
    """The signed bytes of the first decision's receipt, and both kinds of signature."""
    signed = {"decision_id": "dec_example_1", "key_id": "receipt_example"}
    payload = canonical(signed | {"receipt_hash": "2" * 64, "record_hash": "1" * 64})
    text = (
        '{"decision_id":"dec_example_1","key_id":"receipt_example",'
        '"receipt_hash":"2222222222222222222222222222222222222222222222222222222222222222",'
        '"record_hash":"1111111111111111111111111111111111111111111111111111111111111111"}'
    )
    require("payload", payload, text.encode())
    require("length", len(payload), 221)
    require("hash", sha256(payload), "046c976d89f04201725f51e5732d029422d3c296734742f22f2781ee2d7e3b19")
    secret = b"0123456789abcdef0123456789abcdef"
    require(
        "HMAC",
        f"hmac-sha256:{hmac.new(secret, payload, 'sha256').hexdigest()}",
        "hmac-sha256:cc653cdf8e45ee22aaa9b009bd1730fd508e35e624b7314f2e829d63cb4daa14",
    )
    # The seed is 00 01 02 .. 1f.
    key = SigningKey(bytes(range(32)))
    signature = base64.urlsafe_b64encode(key.sign(payload).signature).rstrip(b"=").decode()
    require(
        "Ed25519",
        f"ed25519:{signature}",
        "ed25519:uQoWDYu0xROF08135xJNBhpH8XqweBJpSWF3Wj8uF4pVmq0ehDS4zLH3t6nwo_zPAkwq4hiAz05ZpVsfjHyZDw",
    )
    key_text = "MCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
    pem = f"-----BEGIN PUBLIC KEY-----\n{key_text}\n-----END PUBLIC KEY-----"
    require("public key", base64.b64decode(pem.splitlines()[1])[-32:], bytes(key.verify_key))
    require("fingerprint", sha256(pem.encode()), "ae8e7d3bbb0cd5b6885b6646bea8b310e16701c1cd71f4d0ded1d241d29ed3cd")


def main() -> None:
    """Checks every value."""
    for check in (check_canonical_json, check_hashes, check_chain, check_receipt):
        check()
    print("All values match.")


if __name__ == "__main__":
    main()
