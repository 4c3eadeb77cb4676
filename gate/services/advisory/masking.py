"""Masking: credentials and the usual numbers of persons and cards leave a context before it leaves the machine.

    mask({"customer": {"apiKey": "k-1", "tier": "gold"}})     # {"customer": {"apiKey": "[masked]", "tier": "gold"}}

A name applies to everything below it, at any depth, also in lists. Under every name, text is masked as a whole if it
has the form of a credential, or says `the PIN is 4711`. So is text with a card number or an IBAN with a right checksum.
Null, true, false, and empty values stay. A count also stays, which is a number under a plural: `tokens: 512`.

Names are read in English, in any spelling: `apiKey`, `api-key`, `API_KEY`. Masking cannot recognize a secret that is an
ordinary word under an ordinary name, a secret in an encoding, or the name of a person.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from gate.encoding.credentials import is_secret_text, names_a_secret
from gate.encoding.folding import folded, words
from gate.encoding.strict_json import Json
from gate.services.advisory.numbers import holds_account_number

MASKED: Final = "[masked]"
"""Stands for everything that was withheld."""

# Each as the last words of a name, in addition to those that name a credential in the product's other texts.
_NAMES: Final = (
    # What opens something.
    "creds?",
    "(?:app|auth|client|consumer|decryption|deploy|gpg|hmac|license|master|pass|pgp|root|shared|storage|webhook)_key",
    "passkey",
    "pass_(?:word|phrase|code)",
    "password_(?:hash|digest|salt)",
    "auth(?:orization)?_(?:header|code)",
    "(?:access|backup|m?fa|one_time|otp|pin|recovery|security|sms|verification)_code",
    "totp",
    "(?:seed|recovery)_phrase",
    "mnemonic",
    "(?:secret|security)_answer",
    "conn(?:ection)?_str(?:ing)?",
    "dsn",
    "[cx]srf",
    # What identifies a person.
    "ssn(?:_last(?:_four)?)?",
    "social_(?:security|insurance)(?:_(?:number|num|no))?",
    "(?:national|national_insurance|passport|tax|taxpayer|medical_record)_(?:id|number|num|no)",
    "national_id_(?:number|num|no)",
    "(?:drivers?|driving)_licen[cs]e(?:_(?:number|num|no))?",
    "nino",
    "itin",
    "date_of_birth",
    "birth_?da(?:te|y)",
    "dob",
    # What pays.
    "iban(?:_(?:number|num|no))?",
    "bban",
    "bank_account",
    "(?:account|acct|card|cc|pan|routing)_(?:number|num|no)",
    "sort_code",
    "(?:credit|debit)_card",
    "card_pan",
    "cvv",
    "cvc",
    "card_verification_value",
    "track_data",
)
# Whole names: there are other pans, and two-factor auth may be a fact.
_WHOLE: Final = ("pan", "(?:(?:basic|db|http|proxy|smtp|x)_)?auth")
# Long enough to be known without a mark between words.
_JOINED: Final = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "credential",
    "accountnumber",
    "cardnumber",
    "creditcard",
    "passportnumber",
    "socialsecuritynumber",
    "dateofbirth",
)
_SENSITIVE: Final = re.compile(rf"(?:^|_)(?:{'|'.join(_NAMES)})s?(?:_(?:value|text))?\Z|\A(?:{'|'.join(_WHOLE)})\Z")
_SENSITIVE_JOINED: Final = re.compile(rf"(?:{'|'.join(_JOINED)})s?[^a-z]*\Z")
# What the name says of something, and not the thing itself.
_ASKS: Final = re.compile(r"\A(?:has|is|needs|requires)_")
_ONE_WORD: Final = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")
# A number under these counts them; tests that pass are counted too.
_COUNTED: Final = re.compile(
    r"(?:tokens|secrets|keys|credentials|creds|cookies|jwts|ibans|bank_?accounts|(?:credit|debit)_?cards|\Apass)\Z",
    re.IGNORECASE,
)
_USUAL_NAME: Final = 64

# A pair of a name and a value, as lists of headers, of fields and of variables hold them.
_NAMING: Final = ("name", "key", "id", "field", "header", "label", "param", "parameter", "variable")
_NAMED: Final = ("value", "values", "val", "content", "data", "text")

# A name and what is assigned to it in a text; the value has a digit, as all numbers of persons and cards have.
_ASSIGNMENT: Final = re.compile(r"""(?<![\w.-])([\w.-]++)["']?\s{0,8}+[=:]\s{0,8}+["']?[^\s"',;&:=]*[0-9]""")
# What a sentence gives away: `the PIN is 4711`, `API key: k-1`, `SSN 123-45-6789`. The word after it has a digit, or is
# long.
_TOLD: Final = re.compile(
    r"\b(?:(?:pass(?:word|wd|phrase|code)|pwd|pin|otp|token|secret)\s{1,8}(?:is|was)\s{1,8}|"
    r"(?:(?:access|api|encryption|private|secret|session|signing|ssh)\skey|"
    r"(?:2fa|access|authentication|backup|login|mfa|one[\s-]time|recovery|security|sign-?in|verification)\scode)"
    r"(?:\s{1,8}(?:is|was)\s{1,8}|\s{0,8}[:=#]\s{0,8})|"
    r"(?:ssn|social\ssecurity\s(?:number|no)|(?:account|card|passport|routing)\s(?:number|no)|date\sof\sbirth|dob|cv[cv])"
    r"(?:\s{1,8}(?:is|was)\s{1,8}|\s{0,8}\.?[:=#]\s{0,8}|\s{1,8}))[\"'(<\[]?(?=\S{0,19}[0-9]|\S{20})"
)


def mask(value: Json) -> Json:
    """A JSON value with everything masked that looks sensitive; the value itself stays as it is."""
    return _masked(value, "")


def is_sensitive_name(name: str) -> bool:
    """Whether everything under a name is masked."""
    return _read(name).sensitive


def is_sensitive_text(text: str) -> bool:
    """Whether a text is masked under every name."""
    plain = folded(text)
    return (
        is_secret_text(text, plain)
        or holds_account_number(plain)
        or bool(_TOLD.search(plain.lower()))
        or any(map(_assigns, set(_ASSIGNMENT.findall(plain))))
    )


def _assigns(name: str) -> bool:
    # Credentials have rules of their own for what is assigned to them in a text.
    read = _read(name)
    return read.sensitive and not names_a_secret(read.words) and not _COUNTED.search(name)


class _Name(NamedTuple):
    """What a member's name says: whether it is sensitive, and its words, or the last ones of a long name."""

    sensitive: bool
    words: str


def _read(name: str) -> _Name:
    # A long name is no question, wherever it is cut.
    return _read_usual(name if len(name) <= _USUAL_NAME else f"x{name[-_USUAL_NAME:]}")


# The names of one request are nearly always those of the request before it.
@lru_cache(4096)
def _read_usual(name: str) -> _Name:
    plain = folded(name)
    said = words(plain)
    return _Name(
        not _ASKS.match(said)
        and (names_a_secret(said) or bool(_SENSITIVE.search(said)) or bool(_SENSITIVE_JOINED.search(plain.lower()))),
        said,
    )


def _masked(value: Json, above: str) -> Json:
    """`above` is the name that the value stands under; none at the root."""
    if isinstance(value, dict):
        return _masked_object(value, above)
    if isinstance(value, list):
        # Of cards, each is a card.
        one = above[:-1] if above.endswith(("s", "S")) else above
        return [_masked(item, one) for item in value]
    if isinstance(value, str):
        return MASKED if is_sensitive_text(value) else value
    # A card number may be sent as a number.
    return MASKED if _is_number(value) and holds_account_number(str(value).removesuffix(".0")) else value


def _masked_object(value: dict[str, Json], above: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    pair = any(
        isinstance(item, str) and _read(name).words in _NAMING and is_sensitive_name(item)
        for name, item in value.items()
    )
    hidden = 0
    for name, item in value.items():
        if is_sensitive_text(name):
            # A name can be the credential. Each gets a name of its own, so that none takes another's place.
            hidden += 1
            while (other := f"{MASKED} {hidden}") in value:
                hidden += 1
            found[other] = MASKED
        elif (pair and _read(name).words in _NAMED) or is_sensitive_name(name) or _is_sensitive_beneath(above, name):
            # Nothing beneath is shown, for its names can be the secrets.
            found[name] = item if _is_open(name, item) else MASKED
        else:
            found[name] = _masked(item, name)
    return found


def _is_sensitive_beneath(above: str, name: str) -> bool:
    """Whether a name is sensitive by the one above it: the number of a card."""
    return above != "" and bool(_ONE_WORD.fullmatch(name)) and is_sensitive_name(f"{above}_{name}")


def _is_open(name: str, value: Json) -> bool:
    """Whether a value under a sensitive name is shown all the same."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return True
    return _is_number(value) and bool(_COUNTED.search(name))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
