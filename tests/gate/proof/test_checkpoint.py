"""Checkpoints and epochs: what their signatures cover, and what a checkpoint shows of a chain."""

from __future__ import annotations

from typing import Any

from gate.proof import chain
from gate.proof.chain import Head
from gate.proof.checkpoint import contradicts, sign_checkpoint, sign_epoch, signed_payload
from gate.proof.signing import verify_ed25519
from gate.verify.checkpoint import judge_epoch
from tests.gate.proof.test_chain import entry, links
from tests.independent import verifier
from tests.support.samples import RECEIPT_KEYS, RECEIPT_SIGNER, TRUST

ISSUED_AT = "2026-06-11T13:00:00.000Z"


def made_checkpoint() -> Any:
    return sign_checkpoint(chain.head_of(links(5)[-1]), ISSUED_AT, RECEIPT_SIGNER)


def test_a_checkpoint_is_signed_over_all_of_its_members() -> None:
    made = made_checkpoint()
    assert set(made) == {
        "checkpoint_version",
        "chain_id",
        "chain_size",
        "merkle_root",
        "link_hash",
        "issued_at",
        "key_id",
        "signature",
    }
    assert verifier.checkpoint_failures(made, RECEIPT_KEYS.to_dict()) == []
    for name in set(made) - {"signature"}:
        changed = made | {name: 6 if name == "chain_size" else f"{made[name]}0"}
        payload = signed_payload(changed)
        assert not verify_ed25519(RECEIPT_SIGNER.public_key, payload, made["signature"]), name
        assert verifier.checkpoint_failures(changed, RECEIPT_KEYS.to_dict()) != [], name


def test_a_checkpoint_shows_a_rewritten_and_a_shortened_chain() -> None:
    made = made_checkpoint()
    whole = links(5)
    assert contradicts(made, chain.head_of(whole[4])) == []
    assert contradicts(made, None) == ["chain_size"]
    head = chain.head_of(whole[3])
    rewritten = chain.append(head, entry(9))
    assert contradicts(made, chain.head_of(rewritten)) == ["merkle_root", "link_hash"]
    assert contradicts(sign_checkpoint(Head("c"), ISSUED_AT, RECEIPT_SIGNER), None) == []


def test_an_epoch_is_signed_over_all_of_its_members() -> None:
    made: Any = sign_epoch(
        "Restored from the backup of Tuesday.", ISSUED_AT, [chain.head_of(links(5)[-1])], RECEIPT_SIGNER
    )
    assert set(made) == {
        "checkpoint_epoch_version",
        "reason",
        "begun_at",
        "chains",
        "heads_hash",
        "key_id",
        "signature",
    }
    assert verifier.epoch_failures(made, RECEIPT_KEYS.to_dict()) == []
    for name in made:
        changed = made | {name: 2 if name == "chains" else f"{made[name]}0"}
        assert judge_epoch(changed, TRUST).holds is not True, name
        assert verifier.epoch_failures(changed, RECEIPT_KEYS.to_dict()) != [], name
