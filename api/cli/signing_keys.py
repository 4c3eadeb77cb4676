"""`gate signing-keys`: the keys that sign receipts and attestations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from api.cli.confirmation import DryRun, Yes, confirm
from api.cli.keys import moment
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, minute, note, print_json, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.instance.keys import PURPOSES, KeyRing
from gate.ledger.reviews import OpenGrants
from gate.proof.signing import ED25519, PublicKey

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List, rotate, retire, and revoke signing keys. After a change, publish the new registry to everyone who "
    "verifies with a saved copy. A running service uses the change from its next signature on.",
)

Purpose = Annotated[
    str,
    typer.Option(
        help="receipt (signs receipts and checkpoints) or registry (signs rulebook attestations and registrations)."
    ),
]
KeyId = Annotated[str, typer.Argument(help="The id of the key, from `gate signing-keys list`.")]


# How many characters of a fingerprint tell keys apart; --json prints all of them.
_SHOWN = 8


@app.command("list")
def list_keys(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the public keys of both purposes."""
    with instance_at(home, database_url) as instance:
        registries = {purpose: instance.published_keys(purpose, utc_now()) for purpose in PURPOSES}
        settings = instance.settings
    if as_json:
        print_json({purpose: registry.to_dict() for purpose, registry in registries.items()})
        return
    table(
        ["purpose", "key_id", "status", "not before (UTC)", "not after (UTC)", "fingerprint"],
        [
            [
                purpose,
                key.key_id,
                key.status,
                minute(key.not_before),
                minute(key.not_after),
                f"{key.fingerprint[:_SHOWN]}...",
            ]
            for purpose, registry in registries.items()
            for key in registry.keys
        ],
    )
    for purpose, signing in (("receipt", settings.receipt_signing), ("registry", settings.registry_signing)):
        if signing != ED25519:
            say(f"The setting {purpose}_signing is {signing}, so no {purpose} key signs.")


@app.command()
def rotate(
    purpose: Purpose = "receipt", home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Create a new key that signs from now on. Signatures of the old key still verify.

    The old key is retired with `not_after` 5 minutes from now. Open grants of reviews stop opening actions once callers
    have the new registry: the command prints how many are open. Rotate when few are.
    """
    with instance_at(home, database_url) as instance:
        ring, now = _ring(instance, purpose), utc_now()
        with instance.ledger.operator_log.recording("signing_key.rotated", purpose, now) as details:
            key = ring.rotate(now)
            details["new_key_id"] = key.key_id
        opened = _open_grants(instance, purpose, now)
    _print(key, f"The {purpose} key {key.key_id} signs from now on. The previous key is retired.", as_json)
    _note_grants(opened)


@app.command()
def retire(
    key_id: KeyId,
    not_after: Annotated[
        str | None, typer.Option(help="The date until which its signatures are valid. Default: now.")
    ] = None,
    purpose: Purpose = "receipt",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Set the end of validity of a retired key. Records with a later date no longer verify with it. The active key
    cannot be retired: rotate it first.
    """
    with instance_at(home, database_url) as instance:
        ring, now = _ring(instance, purpose), utc_now()
        with instance.ledger.operator_log.recording("signing_key.retired", key_id, now) as details:
            key = ring.retire(key_id, moment(not_after) or now)
            details |= {"purpose": purpose, "not_after": key.not_after}
    _print(key, f"The key {key_id} is retired. Records dated after {key.not_after} do not verify with it.", as_json)


@app.command()
def compromise(
    key_id: KeyId,
    at: Annotated[
        str | None, typer.Option(help="The time since which others may have had the key. Default: now.")
    ] = None,
    purpose: Purpose = "receipt",
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Mark a key as compromised. Nothing that it signed verifies any more, of any date. This cannot be undone.

    If the key is active, a new key replaces it at once. Grants that it signed open nothing, and callers must ask again
    with another intent. Then take new checkpoints. The private key file stays; remove it yourself.
    """
    with instance_at(home, database_url) as instance:
        ring, now = _ring(instance, purpose), utc_now()
        known, since = ring.find(key_id), moment(at) or now
        if dry_run:
            _show_compromise(
                known, timestamp(since), is_active=ring.registry().active_key_id == key_id, as_json=as_json
            )
            return
        if known.status != "compromised":
            confirm(f"Marks the {purpose} key {key_id} as compromised: nothing it signed verifies any more.", yes=yes)
        is_active = ring.registry().active_key_id == key_id
        with instance.ledger.operator_log.recording("signing_key.compromised", key_id, now) as details:
            key = ring.compromise(key_id, since, now)
            details |= {"purpose": purpose, "since": key.not_after}
        opened = _open_grants(instance, purpose, now)
    _print(key, f"The key {key_id} is compromised. Nothing it signed verifies any more.", as_json)
    _note_shut(opened, is_active=is_active)


def _show_compromise(key: PublicKey, since: str, *, is_active: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "key_id": key.key_id, "status": key.status, "since": since, "active": is_active})
        return
    then = " A new key would sign from now on." if is_active else ""
    say(
        f"The key {key.key_id} ({key.status}) would be compromised since {since}: nothing it signed would verify.{then}"
    )
    say("Nothing was changed.")


def _open_grants(instance: Instance, purpose: str, now: datetime) -> OpenGrants:
    """The grants that a change of the active key of a purpose shuts."""
    signs = purpose == "receipt" and instance.settings.receipt_signing == ED25519
    return instance.ledger.reviews.open_grants(now) if signs else OpenGrants(0, None)


def _note_grants(opened: OpenGrants) -> None:
    if opened.number:
        unused = counted(opened.number, "unused grant of a held action is", "unused grants of held actions are")
        note(
            f"{unused} open until {minute(opened.until)} UTC at the latest. Callers refuse a grant once their registry "
            f"shows that its key is no longer active. Those actions then need a new review."
        )


def _note_shut(opened: OpenGrants, *, is_active: bool) -> None:
    """Notes which grants open nothing once a key is compromised: all of them where it was the active key, for only its
    grants were still open.
    """
    if not opened.number:
        return
    if is_active:
        opens = "opens" if opened.number == 1 else "open"
        unused = counted(opened.number, "unused grant of a held action", "unused grants of held actions")
        note(f"{unused} {opens} nothing from now on. Each caller must ask again with a different `intent`.")
    else:
        unused = counted(opened.number, "unused grant of a held action has", "unused grants of held actions have")
        note(
            f"{unused} not ended. If this key signed such a grant or its record, the grant opens nothing from now on, "
            f"and its caller must ask again with a different `intent`."
        )


def _ring(instance: Instance, purpose: str) -> KeyRing:
    if purpose not in PURPOSES:
        raise OperatorError("PURPOSE_UNKNOWN", f"The purpose {purpose!r} is not one of {', '.join(PURPOSES)}.")
    return instance.receipt_keys if purpose == "receipt" else instance.registry_keys


def _print(key: PublicKey, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(key.to_dict())
    else:
        say(sentence)
