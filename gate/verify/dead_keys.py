"""Explains why a grant permits nothing after a signing key was retired or marked as compromised."""

from __future__ import annotations

from collections.abc import Mapping

from gate.proof.signing import ED25519, KeyRegistry


def dead_key(
    record: Mapping[str, object], resolution: Mapping[str, object] | None, keys: KeyRegistry | None
) -> str | None:
    """Why a grant permits nothing, and what the caller must do; None if its keys are valid.

    A guard acts on a grant only if the record and the grant verify, and a compromised key verifies nothing. The key of
    the grant must also be active, because the holder of a retired key can date a grant freely.

    Args:
        record: The record of the held decision.
        resolution: Its resolution, or None before there is one.
        keys: The receipt keys of the service, which also sign resolutions; None if they are unknown.
    """
    signed = [("record", record.get("receipt_key_id"))] if record.get("receipt_signature_algorithm") == ED25519 else []
    if resolution is not None:
        signed.append(("grant", resolution.get("key_id")))
    for what, key_id in signed:
        known = keys.find(key_id) if keys is not None and isinstance(key_id, str) else None
        if known is not None and known.status == "compromised":
            return (
                f"The key {known.key_id} is compromised, and it signed the {what}, so a grant permits nothing. The "
                f"caller must ask again with a different `intent`."
            )
        if known is not None and known.status == "retired" and what == "grant":
            return (
                f"The key {known.key_id} was retired after it signed the grant, so the grant permits nothing. The "
                f"caller must enter its guard again, which asks for a new review."
            )
    return None
