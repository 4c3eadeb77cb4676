"""A compromised key stands against a grant by the record or the grant it signed, and a retired one by the grant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gate.proof.signing import Ed25519Signer, KeyRegistry
from gate.verify.dead_keys import dead_key
from tests.support.samples import RECEIPT_SIGNER, make_record, make_resolution, public_key

RECORD: Any = make_record()
OTHER = Ed25519Signer("receipt_other", b"o" * 32)
RESOLUTION: Any = make_resolution(RECORD, signer=OTHER)


def registry(status: str, *signers: Ed25519Signer) -> KeyRegistry:
    return KeyRegistry(tuple(replace(public_key(each), status=status) for each in signers))


def test_the_sentence_names_the_key_and_what_it_signed() -> None:
    by_record = dead_key(RECORD, None, registry("compromised", RECEIPT_SIGNER))
    assert by_record is not None
    assert by_record.startswith(f"The key {RECEIPT_SIGNER.key_id} is compromised, and it signed the record, ")
    by_grant = dead_key(RECORD, RESOLUTION, registry("compromised", OTHER))
    assert by_grant is not None
    assert by_grant.startswith("The key receipt_other is compromised, and it signed the grant, ")


def test_a_key_that_was_retired_since_stands_against_its_grants_and_not_against_its_records() -> None:
    keys = registry("retired", RECEIPT_SIGNER, OTHER)
    assert dead_key(RECORD, None, keys) is None
    by_grant = dead_key(RECORD, RESOLUTION, keys)
    assert by_grant is not None
    assert by_grant.startswith("The key receipt_other was retired after it signed the grant, ")


@pytest.mark.parametrize("keys", [None, KeyRegistry(), registry("active", RECEIPT_SIGNER, OTHER)])
def test_no_other_key_stands_against_a_grant(keys: KeyRegistry | None) -> None:
    assert dead_key(RECORD, RESOLUTION, keys) is None


def test_what_no_key_pair_signed_has_no_compromised_key() -> None:
    keys = registry("compromised", RECEIPT_SIGNER, OTHER)
    by_secret = {**RECORD, "receipt_signature_algorithm": "hmac-sha256"}
    unsigned = {name: of for name, of in RESOLUTION.items() if name != "key_id"}
    assert dead_key(by_secret, unsigned, keys) is None
    assert dead_key({}, None, keys) is None
    assert dead_key(by_secret, RESOLUTION, keys) is not None
