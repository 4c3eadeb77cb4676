"""What several tests need: the sample rulebook, requests over it, records made from fixed keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gate import chain, resources
from gate.attestation import registration
from gate.canonical import content_hash
from gate.decide import link_material
from gate.envelope import input_material
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.sqlite import SqliteStore
from gate.record import Identity, Signers, build_record
from gate.request import read_request
from gate.rulebook import load
from gate.signing import Ed25519Signer, KeyRegistry, PublicKey
from gate.strict_json import parse
from gate.verify import Trust

CASES: Final = Path(__file__).parent / "cases"
VECTORS: Final = Path(__file__).parent / "vectors"

NOW: Final = datetime(2026, 6, 11, 12, 30, 45, 678_000, UTC)
SCHEMA_URL: Final = "https://gate.example/schemas/rulebook-v1.schema.json"
RECEIPT_SIGNER: Final = Ed25519Signer("receipt_test", bytes(range(32)))
REGISTRY_SIGNER: Final = Ed25519Signer("registry_test", bytes(range(32, 64)))


def cases(name: str) -> list[Any]:
    """The cases of tests/cases/<name>.json."""
    found: list[Any] = json.loads((CASES / f"{name}.json").read_text())
    return found


def sample_rulebook() -> dict[str, Any]:
    """A fresh copy of the sample rulebook."""
    body: dict[str, Any] = parse(resources.path("data", "rulebooks", "pricing_exception.json").read_bytes())
    return body


def sample_request(**inputs: Any) -> dict[str, Any]:
    """A Decision Request over the sample rulebook; by default its facts are approved."""
    return {
        "mode": "rulebook",
        "rulebook": sample_rulebook(),
        "context": {
            "workflow": "pricing",
            "source_record_id": "opp-77",
            "requested_action": "approve_discount",
            "target_system": "crm",
            "target_object_id": "deal-1042",
            "mutation": "discount.update",
            "actor": {"type": "agent", "id": "a-1"},
            "subject": "customer-9",
            "amount": 1200.50,
            "currency": "EUR",
            "inputs": inputs or {"discount_percent": 10, "margin_percent": 22},
        },
    }


def sqlite_file(ledger: Ledger) -> Path:
    """The file of a ledger that is kept in SQLite."""
    assert isinstance(ledger.store, SqliteStore)
    return ledger.store.database


def ledger_url(ledger: Ledger) -> str:
    """The URL under which other processes open the same ledger."""
    return ledger.store.engine.url.render_as_string(hide_password=False).replace("+psycopg", "")


def public_key(signer: Ed25519Signer, *, status: str = "active", not_after: str | None = None) -> PublicKey:
    """The registry entry of a test signer."""
    return PublicKey(signer.key_id, "ed25519", signer.public_key, status, "2026-01-01T00:00:00.000Z", not_after)


RECEIPT_KEYS: Final = KeyRegistry((public_key(RECEIPT_SIGNER),), RECEIPT_SIGNER.key_id)
ATTESTATION_KEYS: Final = KeyRegistry((public_key(REGISTRY_SIGNER),), REGISTRY_SIGNER.key_id)
TRUST: Final = Trust(receipt_keys=RECEIPT_KEYS, attestation_keys=ATTESTATION_KEYS, source="registry")
SIGNERS: Final = Signers(RECEIPT_SIGNER, REGISTRY_SIGNER)


def make_record(
    request: dict[str, Any] | None = None,
    *,
    signers: Signers = SIGNERS,
    idempotency_key: str | None = "order-1",
    serial: int = 1,
) -> dict[str, Any]:
    """A full record over fixed ids, date and keys, the first link of its chain."""
    body = sample_request() if request is None else request
    read = read_request(body, content_hash(input_material(body)))
    rulebook = load(read.rulebook)
    registered = registration(rulebook.reference, "scope-1", timestamp(NOW), signers.registry)
    identity = Identity(f"dec_{serial:032x}", f"req_{serial:032x}", idempotency_key, timestamp(NOW))
    explained = rulebook.evaluator.explain(read.inputs)
    record = build_record(read, rulebook, registered, explained, identity, signers, schema_url=SCHEMA_URL)
    link = chain.append(chain.Head("chain_test"), link_material(record))
    return {**record, "audit_chain": chain.record_link(link)}
