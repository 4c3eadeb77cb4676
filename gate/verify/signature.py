"""Judges a signature: whether it is valid, and whether its key is trusted for it."""

from __future__ import annotations

from dataclasses import dataclass

from gate.proof.signing import ED25519, HMAC_SHA256, verify_ed25519, verify_hmac
from gate.verify.result import Trust


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed document.

    Attributes:
        what: Its name in messages, such as record or checkpoint.
        key_id: The stated id of the signing key.
        algorithm: `ed25519` or `hmac-sha256`.
        signature: The signature in the protocol's text form.
        payload: The signed bytes.
        signed_at: The stated time of the signature.
    """

    what: str
    key_id: str
    algorithm: str
    signature: str
    payload: bytes
    signed_at: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgment of a signature.

    Attributes:
        holds: Whether the signature is valid for the available key; None without a key.
        trusted: Whether that key is trusted for it.
        key_source: The source of the key, as `Verification.key_source`.
        public_key: The key in PEM; None for HMAC or without a key.
        error: A code if the key is not trusted.
        message: A sentence about the code.
    """

    holds: bool | None
    trusted: bool
    key_source: str = "none"
    public_key: str | None = None
    error: str | None = None
    message: str | None = None


def judge(signed: Signed, trust: Trust, untrusted_key: str | None) -> Judgement:
    """Judges a signature.

    Args:
        signed: The signed document.
        trust: What the verifier trusts.
        untrusted_key: A PEM key that came with the document. It helps to find the cause if no trusted key is known.

    Raises:
        MaterialRefused: `PUBLIC_KEY_INVALID`: a key is unusable.
    """
    if signed.algorithm == HMAC_SHA256:
        return _judge_hmac(signed, trust)
    if signed.algorithm == ED25519:
        return _judge_ed25519(signed, trust, untrusted_key)
    return Judgement(holds=False, trusted=False)


def _judge_hmac(signed: Signed, trust: Trust) -> Judgement:
    if trust.hmac_secret is None or trust.hmac_key_id not in (None, signed.key_id):
        return _unknown(f"The {signed.what} is signed with HMAC; only a holder of the secret can verify it.")
    holds = verify_hmac(trust.hmac_secret, signed.payload, signed.signature)
    return Judgement(holds, trusted=True, key_source=trust.source)


def _judge_ed25519(signed: Signed, trust: Trust, untrusted_key: str | None) -> Judgement:
    known = trust.receipt_keys.find(signed.key_id) if trust.receipt_keys is not None else None
    trusted_key = known.public_key if known is not None else trust.public_key
    public_key = trusted_key or untrusted_key
    if public_key is None:
        given = trust.receipt_keys is not None
        why = f"is not in the given key registry: {signed.key_id}" if given else "was not given"
        return _unknown(f"The {signed.what}'s key {why}; verify with the publisher's key registry.")
    holds = verify_ed25519(public_key, signed.payload, signed.signature)
    if trusted_key is None:
        message = f"The only available key came with the {signed.what}; it can show integrity, but not the origin."
        return Judgement(holds, False, "request", public_key, "SIGNING_KEY_NOT_TRUSTED", message)
    objection = known.objection(signed.signed_at) if known is not None else None
    if objection is not None:
        return Judgement(holds, False, trust.source, public_key, "SIGNING_KEY_NOT_TRUSTED", objection)
    return Judgement(holds, True, trust.source, public_key)


def _unknown(message: str) -> Judgement:
    return Judgement(None, trusted=False, error="SIGNING_KEY_UNKNOWN", message=message)
