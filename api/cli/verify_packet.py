"""`gate verify-packet`: verify an exported packet without its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from api.cli.checkpoint import read_checkpoint
from api.cli.options import DatabaseUrl, Json
from api.cli.output import print_json, say
from api.cli.verify import (
    HmacSecretFile,
    Input,
    PublicKeyFile,
    Registry,
    TrustedHome,
    advise,
    given_material,
    print_authority,
    print_differences,
    print_skipped,
    print_verdict,
    trusted,
)
from gate.verify import PacketVerification, verify_packet
from gate.verify.material import PACKETS, unusable
from gate.verify.packets.packet_result import flags_check, unlinked_check

app = typer.Typer(add_completion=False)


@app.command()
def verify(
    context: typer.Context,
    packet: Annotated[Path, typer.Argument(help="A Decision Packet as JSON. Use - for stdin.")],
    input_: Input = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A checkpoint of the chain that you saved. The packet must agree with it."),
    ] = None,
    require_signed_reports: Annotated[
        bool,
        typer.Option(
            "--require-signed-reports", help="Verify the packet only if a signed checkpoint covers every report."
        ),
    ] = False,
    registry: Registry = None,
    public_key: PublicKeyFile = None,
    hmac_secret_file: HmacSecretFile = None,
    home: TrustedHome = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Verify an exported packet in four steps: 0 verified, 1 not verified, 2 the command failed.

    Give one source of keys: `--registry`, `--public-key`, `--hmac-secret-file` or `--home`. The address of the service,
    such as http://host:8080, has both receipt and attestation keys. The other options win over GATE_HOME.
    Without keys, the command still checks all hashes, and the result is SIGNING_KEY_UNKNOWN.

    The file may also be an object with `packet`, and optionally `input` or `public_key`.
    """
    given = given_material(packet, PACKETS, input_)
    if given.checkpoint is not None:
        raise unusable(
            "checkpoint",
            "It came with the packet, so it proves nothing; give the checkpoint that you kept with --checkpoint.",
        )
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    trust = trusted(context, registry, public_key, hmac_secret_file, home)
    result = verify_packet(
        given.subject,
        trust,
        request_body=given.input,
        untrusted_key=given.public_key,
        checkpoint=kept,
        require_signed_reports=require_signed_reports,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_verdict(result, whole=bool(result.checks.get("reports_signed")))
        print_authority(given.subject.get("decision_record") if isinstance(given.subject, dict) else None)
        _print_steps(result)
        _print_flags(given.subject)
        _print_noted(result.unlinked, "its link is not in the packet; only its own hash protects it")
        _print_noted(result.unflagged, "action_taken is not the decided action, and the flag for that is missing")
        noted = [*map(unlinked_check, result.unlinked), *map(flags_check, result.unflagged)]
        print_differences(result, "packet")
        print_skipped(result, trust, has_input=given.input is not None, told={"reports_signed", *noted})
        advise(trust)
    raise typer.Exit(0 if result.verified else 1)


_NOTED_SHOWN: Final = 10
_HOLDS: Final = {True: "holds", False: "FAILS", None: "not checked"}


def _print_steps(result: PacketVerification) -> None:
    for number, (name, step) in enumerate(result.steps.items(), start=1):
        where = f": {', '.join(step.failed)}" if step.failed else ""
        say(f"  step {number}, {name}: {_HOLDS[step.holds]}{where}")


def _print_flags(packet: object) -> None:
    """Prints what the receipts of a packet are flagged with: they verify, and their actions were not as decided."""
    receipts = packet.get("execution_receipts") if isinstance(packet, dict) else None
    flagged: dict[str, list[str]] = {}
    for number, receipt in enumerate(receipts if isinstance(receipts, list) else ()):
        flags = receipt.get("flags") if isinstance(receipt, dict) else None
        for flag in flags if isinstance(flags, list) else ():
            flagged.setdefault(str(flag), []).append(f"execution_receipts[{number}]")
    for flag, places in list(flagged.items())[:_NOTED_SHOWN]:
        say(f"  flagged {flag}: {', '.join(places[:_NOTED_SHOWN])}{' ...' if len(places) > _NOTED_SHOWN else ''}")


def _print_noted(places: list[str], note: str) -> None:
    for place in places[:_NOTED_SHOWN]:
        say(f"  {place}: {note}")
    if len(places) > _NOTED_SHOWN:
        say(f"  and {len(places) - _NOTED_SHOWN} more reports like these")
