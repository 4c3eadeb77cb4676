"""`gate verify`: verify an exported record without its ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from api.cli.options import DatabaseUrl, Json, read_file, read_json
from api.cli.output import note, print_json, say
from gate.encoding.canonical import with_integers
from gate.encoding.strict_json import Json as JsonValue
from gate.encoding.strict_json import JsonObject, parse
from gate.errors import MaterialRefused, OperatorError
from gate.instance.keys import read_hmac_secret
from gate.proof.signing import KeyRegistry, load_registry, raw_public_key
from gate.records.advisory import is_advisory
from gate.verify import Trust, Verification, verify_record
from gate.verify.material import RECORDS, Material, Subject, read_material
from gate.verify.result import MAX_UNKNOWN

app = typer.Typer(add_completion=False)

RECEIPT_KEYS_PATH = "/api/decision/receipt-keys"
ATTESTATION_KEYS_PATH = "/.well-known/rulebook-attestation-keys.json"


Input = Annotated[
    Path | None, typer.Option("--input", help="The original Decision Request, whose hashes are then checked too.")
]
Registry = Annotated[
    str | None, typer.Option(help="The key registry of the publisher: the address of the service, or a saved file.")
]
PublicKeyFile = Annotated[Path | None, typer.Option(help="The receipt key of the publisher, as PEM.")]
HmacSecretFile = Annotated[Path | None, typer.Option(help="The file with the secret of hmac-sha256 receipts.")]
TrustedHome = Annotated[
    Path | None, typer.Option("--home", envvar="GATE_HOME", help="Trust the keys of the instance in this directory.")
]


@app.command()
def verify(
    context: typer.Context,
    record: Annotated[Path, typer.Argument(help="A full Decision Record as JSON. Use - for stdin.")],
    input_: Input = None,
    registry: Registry = None,
    public_key: PublicKeyFile = None,
    hmac_secret_file: HmacSecretFile = None,
    home: TrustedHome = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Verify an exported decision record: 0 verified, 1 not verified, 2 the command failed.

    Give one source of keys: `--registry`, `--public-key`, `--hmac-secret-file` or `--home`. The address of the service,
    such as http://host:8080, has both receipt and attestation keys. The other options win over GATE_HOME.
    Without keys, the command still checks all hashes, and the result is SIGNING_KEY_UNKNOWN.

    The file may also be an object with `record`, and optionally `input` or `public_key`.
    """
    given = given_material(record, RECORDS, input_)
    trust = trusted(context, registry, public_key, hmac_secret_file, home)
    result = verify_record(given.subject, trust, request_body=given.input, untrusted_key=given.public_key)
    if as_json:
        print_json(result.to_dict())
    else:
        print_verdict(result)
        print_authority(given.subject)
        print_differences(result, "record")
        print_skipped(result, trust, has_input=given.input is not None)
        advise(trust)
    raise typer.Exit(0 if result.verified else 1)


def read_document(path: Path) -> JsonValue:
    """Reads the JSON value to verify from a file, or from stdin for `-`.

    A double without a fraction becomes an integer. Other programs may have written one for the other, and both are the
    same JSON number.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    return with_integers(read_json(path))


def given_material(path: Path, of: Subject, input_: Path | None) -> Material:
    """Reads the material to verify from a file, and optionally the request from another file.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID` or `PUBLIC_KEY_INVALID`.
        RequestRefused: `SVC_API_REQUEST_INVALID`: the file is a wrapper with a forbidden field.
    """
    document = read_document(path)
    # Anything but an object is not verified, like anything that is not a record; wrappers have rules of their own.
    given = read_material(document, of) if isinstance(document, dict) else Material(cast("JsonObject | None", document))
    return given if input_ is None else replace(given, input=read_document(input_))


def trusted(
    context: typer.Context, registry: str | None, public_key: Path | None, secret_file: Path | None, home: Path | None
) -> Trust:
    """Loads the trusted keys from the options of a verification.

    Raises:
        OperatorError: `TRUST_AMBIGUOUS`, `INSTANCE_MISSING`, `FILE_UNREADABLE` or `REGISTRY_UNREACHABLE`.
        MaterialRefused: A key, a registry or a secret is unusable.
    """
    # A home in the environment is meant for every command, and yields to what this one was given.
    source = context.get_parameter_source("home")
    told = home if source is not None and source.name == "COMMANDLINE" else None
    given = [source for source in (registry, public_key, secret_file, told) if source is not None]
    if len(given) > 1:
        raise OperatorError(
            "TRUST_AMBIGUOUS", "Give only one of --registry, --public-key, --hmac-secret-file and --home."
        )
    if registry is not None:
        receipt_keys, attestation_keys = _registries(registry)
        return Trust(receipt_keys=receipt_keys, attestation_keys=attestation_keys, source="registry")
    if public_key is not None:
        pem = read_file(public_key).decode("utf-8", "replace")
        raw_public_key(pem)
        return Trust(public_key=pem, source="public_key")
    if secret_file is not None:
        return Trust(hmac_secret=read_hmac_secret(secret_file), source="hmac_secret")
    if home is not None:
        keys = home / "keys"
        if not keys.is_dir():
            raise OperatorError("INSTANCE_MISSING", f"There is no instance in {home}; give the directory of one.")
        return Trust(
            receipt_keys=load_registry(read_json(keys / "receipt.json")),
            attestation_keys=load_registry(read_json(keys / "registry.json")),
            source="registry",
        )
    return Trust()


def _registries(source: str) -> tuple[KeyRegistry, KeyRegistry | None]:
    if not source.startswith(("http://", "https://")):
        if not Path(source).exists():
            raise OperatorError(
                "FILE_UNREADABLE",
                f"There is no file {source}. The address of a service starts with http:// or https://.",
            )
        return load_registry(read_json(Path(source))), None
    if source.endswith(RECEIPT_KEYS_PATH):
        return load_registry(_fetch(source)), None
    base = source.rstrip("/")
    return load_registry(_fetch(base + RECEIPT_KEYS_PATH)), load_registry(_fetch(base + ATTESTATION_KEYS_PATH))


def _fetch(url: str) -> object:
    # Half of all that this command would load, needed only where an address is given.
    import httpx

    try:
        response = httpx.get(url, timeout=10, follow_redirects=False, trust_env=bool(os.environ.get("HTTPS_PROXY")))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OperatorError("REGISTRY_UNREACHABLE", f"The key registry {url} cannot be fetched: {error}.") from error
    if not response.is_success:
        raise OperatorError(
            "REGISTRY_UNREACHABLE",
            f"{url} answered {response.status_code}; give the address of the service, or a saved registry.",
        )
    try:
        return parse(response.content)
    except MaterialRefused as error:
        why = error.message.replace("The body", "Its answer", 1)
        raise OperatorError("REGISTRY_UNREACHABLE", f"The answer of {url} is not a key registry. {why}") from error


def print_verdict(result: Verification, *, whole: bool = True) -> None:
    """Prints the verdict: verified as a whole, only the record verified, or not verified with the reason."""
    if result.verified:
        what = "verified" if whole else "verified, THE RECORD ONLY"
        style = "green" if whole else "yellow"
        say(f"{what}: unchanged since a trusted key signed it (key from: {result.key_source})", style=style)
        if result.message is not None:
            say(f"  {result.message} ({result.error})")
    else:
        say(f"NOT VERIFIED: {result.message} ({result.error})", style="red")


def print_authority(record: object) -> None:
    """Prints a warning for an advisory record, because people could take a verified one for an approval."""
    if isinstance(record, dict) and is_advisory(record):
        say("ADVISORY: a model gave this answer. It authorizes nothing, with any verdict.", style="yellow")


def print_differences(result: Verification, what: str) -> None:
    """Prints each differing value of a record or packet with the recomputed one, and the unknown fields."""
    for name in result.expected:
        for path, expected, actual in _differences(name, result.expected[name], result.actual[name]):
            say(f"  {path}: the {what} says {actual}; recomputed: {expected}")
    # Nothing of a document that is incomplete, or of another kind, is authenticated.
    if result.unknown and result.error not in ("RECORD_INCOMPLETE", "PACKET_INCOMPLETE"):
        more = " and others" if len(result.unknown) == MAX_UNKNOWN else ""
        say(f"  not authenticated, because this release does not know them: {', '.join(result.unknown)}{more}")


def print_skipped(result: Verification, trust: Trust, *, has_input: bool, told: Collection[str] = ()) -> None:
    """Prints the checks that could not be made, each with the reason or the option that makes it possible.

    Args:
        result: The verification.
        trust: The keys that were given.
        has_input: Whether the original request was given.
        told: Checks that were reported before.
    """
    reasons: dict[str, list[str]] = {}
    for name, holds in result.checks.items():
        if holds is None and name not in told and not name.endswith("unknown_members"):
            reasons.setdefault(_why_skipped(name, trust, has_input=has_input), []).append(name)
    for reason, names in reasons.items():
        say(f"  skipped ({reason}): {', '.join(names)}")


def _why_skipped(name: str, trust: Trust, *, has_input: bool) -> str:
    check = name.rpartition(".")[2]
    if check in _OF_INPUT and not has_input:
        return "no --input given"
    if check == "rulebook_hash":
        return "the request has only a reference to its rulebook"
    if check in _OF_ATTESTATIONS and trust.attestation_keys is None:
        return "no attestation keys given: --registry with the address of the service has them"
    if check in _OF_KEYS and trust == Trust():
        return "no key given"
    return _WITHOUT_OPTION.get(check, "not in the file")


_OF_INPUT: Final = frozenset({"input_hash", "facts_hash", "adapter_input_hash", "rulebook_hash"})
_OF_ATTESTATIONS: Final = frozenset({"attestation_signature", "registry_attestation_signature"})
_OF_KEYS: Final = frozenset({"receipt_signature", "receipt_key", "signature", "key"})
_WITHOUT_OPTION: Final = {
    "erasure": "only a packet shows it",
    "evaluation": "erased",
    "links": "its link is not in the packet",
    "occurred_at": "only the request of the outcome binds it; gate chain check compares them",
    "checkpoint": "the packet has no checkpoint",
    "exported_at": "no checkpoint signs it",
    "complete": "no signed checkpoint covers it",
    **dict.fromkeys(_OF_ATTESTATIONS, "unsigned, or signed by an unknown or compromised key"),
}


def advise(trust: Trust) -> None:
    """Suggests the options for keys if none was given, because nothing verifies without a key."""
    if trust == Trust():
        note("No key was given. Give one with --registry, --public-key, --hmac-secret-file or --home.")


def _differences(path: str, expected: object, actual: object) -> Iterator[tuple[str, str, str]]:
    """The innermost members in which two JSON values differ: their path and both texts."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in {**expected, **actual}:
            if name not in expected or name not in actual or expected[name] != actual[name]:
                yield from _differences(f"{path}.{name}", expected.get(name), actual.get(name))
    else:
        yield path, json.dumps(expected), json.dumps(actual)
