"""Masking: credentials and the usual numbers of persons and cards leave a context before it leaves the machine.

    mask({"customer": {"apiKey": "k-1", "tier": "gold"}})     # {"customer": {"apiKey": "[masked]", "tier": "gold"}}

A name decides for everything beneath it, at any depth, in lists too. Text that has the form of a credential is masked
under every name. It cannot recognize a secret that is an ordinary word under an ordinary name, nor a person's name.
"""

from __future__ import annotations

import re
from typing import Final

from gate.encoding.credentials import is_secret_text, names_a_secret
from gate.encoding.strict_json import Json

MASKED: Final = "[masked]"
"""Stands for everything that was withheld."""

# Beside credentials: numbers that identify a person, or that pay.
_PERSONAL: Final = (
    "ssn",
    "social_security_number",
    "national_id",
    "tax_id",
    "passport_number",
    "iban",
    "card_number",
    "account_number",
    "cvv",
    "cvc",
    "date_of_birth",
    "birth_date",
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PERSONAL_NAME: Final = re.compile(rf"(?:^|_)(?:{'|'.join(_PERSONAL)})s?\Z")


def mask(value: Json) -> Json:
    """A JSON value with everything masked that looks sensitive; the value itself stays as it is."""
    return _masked(value, sensitive=False)


def is_sensitive_name(name: str) -> bool:
    """Whether everything under a name is masked."""
    return names_a_secret(name) or bool(_PERSONAL_NAME.search("_".join(_WORD.findall(name)).lower()))


def _masked(value: Json, *, sensitive: bool) -> Json:
    if isinstance(value, dict):
        return _masked_object(value, sensitive=sensitive)
    if isinstance(value, list):
        return [_masked(item, sensitive=sensitive) for item in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    hidden = sensitive or (isinstance(value, str) and is_secret_text(value))
    return MASKED if hidden else value


def _masked_object(value: dict[str, Json], *, sensitive: bool) -> dict[str, Json]:
    found: dict[str, Json] = {}
    hidden = 0
    for name, item in value.items():
        if is_secret_text(name):
            # A name can be the credential. Each gets a name of its own, so that none takes another's place.
            hidden += 1
            found[f"{MASKED} {hidden}"] = MASKED
        else:
            found[name] = _masked(item, sensitive=sensitive or is_sensitive_name(name))
    return found
