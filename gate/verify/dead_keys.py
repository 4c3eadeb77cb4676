"""Why a grant of a held decision opens nothing once a signing key was rotated, or marked as compromised."""

from __future__ import annotations

from collections.abc import Mapping

from gate.proof.signing import ED25519, KeyRegistry


def dead_key(
    record: Mapping[str, object], resolution: Mapping[str, object] | None, keys: KeyRegistry | None
) -> str | None:
    """Why a grant opens nothing, as a sentence and what the caller has to do; None where no key stands against it.

    A guard acts on a grant only where the record and the grant verify, and nothing does that a compromised key signed;
    and the grant's own key has to be active, for the holder of a retired one can date a grant at will.

    Args:
        record: The record of the held decision.
        resolution: Its resolution; None where it has none yet.
        keys: The receipt keys of the service, which sign resolutions as well; None where they are not known.
    """
    signed = [("record", record.get("receipt_key_id"))] if record.get("receipt_signature_algorithm") == ED25519 else []
    if resolution is not None:
        signed.append(("grant", resolution.get("key_id")))
    for what, key_id in signed:
        known = keys.find(key_id) if keys is not None and isinstance(key_id, str) else None
        if known is not None and known.status == "compromised":
            return (
                f"The key {known.key_id} is compromised, and it signed the {what}, so that a grant opens nothing. The "
                f"caller has to ask anew, with another `intent`."
            )
        if known is not None and known.status == "retired" and what == "grant":
            return (
                f"The key {known.key_id} was retired after it signed the grant, so that the grant opens nothing. The "
                f"caller has to enter its guard again, which asks for a new review."
            )
    return None
