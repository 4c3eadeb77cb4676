"""gate verify: verify an exported record without its ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from api.cli.options import DatabaseUrl, Json, read_file, read_json
from api.cli.output import print_json, say
from gate.errors import OperatorError
from gate.keys import read_hmac_secret
from gate.signing import KeyRegistry, load_registry, raw_public_key
from gate.strict_json import parse
from gate.verify import Trust, Verification, verify_record

app = typer.Typer()

RECEIPT_KEYS_PATH = "/api/decision/receipt-keys"
ATTESTATION_KEYS_PATH = "/.well-known/rulebook-attestation-keys.json"


@app.command()
def verify(
    record: Annotated[Path, typer.Argument(help="A full Decision Record in JSON; - for stdin.")],
    input_: Annotated[
        Path | None, typer.Option("--input", help="The original Decision Request: its hashes are checked as well.")
    ] = None,
    registry: Annotated[
        str | None, typer.Option(help="The publisher's key registry: its address, or a saved file.")
    ] = None,
    public_key: Annotated[Path | None, typer.Option(help="The publisher's receipt key in PEM.")] = None,
    hmac_secret_file: Annotated[Path | None, typer.Option(help="The secret of hmac-sha256 receipts.")] = None,
    home: Annotated[
        Path | None, typer.Option(envvar="GATE_HOME", help="Trust the keys of the instance in this directory.")
    ] = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Verify an exported record: 0 verified, 1 not verified, 2 unusable.

    A registry's address may be the service itself (http://host:8080), which gives the receipt and the attestation keys.
    """
    document = read_json(record)
    body = document["record"] if isinstance(document, dict) and isinstance(document.get("record"), dict) else document
    request_body = None if input_ is None else read_json(input_)
    result = verify_record(body, _trust(registry, public_key, hmac_secret_file, home), request_body=request_body)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)
    raise typer.Exit(0 if result.verified else 1)


def _trust(registry: str | None, public_key: Path | None, secret_file: Path | None, home: Path | None) -> Trust:
    given = [source for source in (registry, public_key, secret_file) if source is not None]
    if len(given) > 1:
        raise OperatorError(
            "TRUST_AMBIGUOUS", "Give one of --registry, --public-key and --hmac-secret-file, not several."
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
        return Trust(
            receipt_keys=load_registry(read_json(keys / "receipt.json")),
            attestation_keys=load_registry(read_json(keys / "registry.json")),
            source="registry",
        )
    return Trust()


def _registries(source: str) -> tuple[KeyRegistry, KeyRegistry | None]:
    if not source.startswith(("http://", "https://")):
        return load_registry(read_json(Path(source))), None
    if source.endswith(RECEIPT_KEYS_PATH):
        return load_registry(_fetch(source)), None
    base = source.rstrip("/")
    return load_registry(_fetch(base + RECEIPT_KEYS_PATH)), load_registry(_fetch(base + ATTESTATION_KEYS_PATH))


def _fetch(url: str) -> Any:
    try:
        response = httpx.get(url, timeout=10, follow_redirects=False, trust_env=bool(os.environ.get("HTTPS_PROXY")))
        response.raise_for_status()
    except httpx.HTTPError as error:
        raise OperatorError("REGISTRY_UNREACHABLE", f"The key registry {url} cannot be fetched: {error}.") from error
    return parse(response.content)


def _print(result: Verification) -> None:
    if result.verified:
        say(f"verified: unchanged since a trusted key signed it (key from: {result.key_source})", style="green")
    else:
        say(f"NOT VERIFIED: {result.message} ({result.error})", style="red")
    for name in result.expected:
        for path, expected, actual in _differences(name, result.expected[name], result.actual[name]):
            say(f"  {path}: the record says {actual}; recomputed: {expected}")
    unchecked = [name for name, holds in result.checks.items() if holds is None]
    if unchecked:
        say(f"  not checked, for want of material: {', '.join(unchecked)}")


def _differences(path: str, expected: Any, actual: Any) -> Iterator[tuple[str, str, str]]:
    """The innermost members in which two JSON values differ: their path and both texts."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in {**expected, **actual}:
            if name not in expected or name not in actual or expected[name] != actual[name]:
                yield from _differences(f"{path}.{name}", expected.get(name), actual.get(name))
    else:
        yield path, json.dumps(expected), json.dumps(actual)
