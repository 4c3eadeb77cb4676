"""Masking: credentials and the usual numbers of persons and cards leave a context before it leaves the machine.

    mask({"customer": {"apiKey": "k-1", "tier": "gold"}})     # {"customer": {"apiKey": "[masked]", "tier": "gold"}}

A name decides for everything beneath it, at any depth, in lists too. Text that has the form of a credential, that
says `the PIN is 4711`, or that holds a card number or an IBAN with a right checksum, is masked as a whole under every
name. Null, true, false and empty values stay, and so does a count, which is a number under a plural: `tokens: 512`.

Names are read in English, however they are spelled: apiKey, api-key, API_KEY. Masking cannot recognize a secret that is
an ordinary word under an ordinary name, a secret in an encoding, or the name of a person.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from gate.encoding.credentials import is_secret_text, names_a_secret
from gate.encoding.strict_json import Json
from gate.services.advisory.numbers import holds_account_number

MASKED: Final = "[masked]"
"""Stands for everything that was withheld."""

# Each as the last words of a name, beside those that name a credential in the product's other texts.
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
_SENSITIVE: Final = re.compile(
    rf"(?:^|_)(?:{'|'.join(_NAMES)})s?(?:_(?:value|text))?\Z|\A(?:{'|'.join(_WHOLE)})\Z", re.IGNORECASE
)
_SENSITIVE_JOINED: Final = re.compile(rf"(?:{'|'.join(_JOINED)})s?[^a-z]*\Z", re.IGNORECASE)
# What the name says of something, and not the thing itself.
_ASKS: Final = re.compile(r"\A(?:has|is|needs|requires)_", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ONE_WORD: Final = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")
# SSNs and IBANs, whose last capital is no beginning of a word.
_PLURAL_OF_CAPITALS: Final = re.compile(r"(?<=[A-Z]{2})s(?![a-z])")
# A number under these counts them; tests that pass are counted too.
_COUNTED: Final = re.compile(
    r"(?:tokens|secrets|keys|credentials|creds|cookies|jwts|ibans|bank_?accounts|(?:credit|debit)_?cards|\Apass)\Z",
    re.IGNORECASE,
)
_USUAL_NAME: Final = 64

# A pair of a name and a value, as lists of headers, of fields and of variables hold them.
_NAMING: Final = ("name", "key", "field", "header", "label", "param", "parameter", "variable")
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
    r"(?:\s{1,8}(?:is|was)\s{1,8}|\s{0,8}\.?[:=#]\s{0,8}|\s{1,8}))[\"'(<\[]?(?=\S{0,19}[0-9]|\S{20})",
    re.IGNORECASE,
)


def mask(value: Json) -> Json:
    """A JSON value with everything masked that looks sensitive; the value itself stays as it is."""
    return _masked(value, "")


def is_sensitive_name(name: str) -> bool:
    """Whether everything under a name is masked."""
    return _is_sensitive_usual(name) if len(name) <= _USUAL_NAME else _is_sensitive_usual.__wrapped__(name)


def is_sensitive_text(text: str) -> bool:
    """Whether a text is masked under every name."""
    return (
        is_secret_text(text)
        or holds_account_number(text)
        or bool(_TOLD.search(text))
        or any(map(_assigns, _ASSIGNMENT.findall(text)))
    )


def _assigns(name: str) -> bool:
    # Credentials have rules of their own for what is assigned to them in a text.
    return is_sensitive_name(name) and not names_a_secret(name) and not _COUNTED.search(name)


# The names of one request are nearly always those of the request before it. Long ones are not kept.
@lru_cache(4096)
def _is_sensitive_usual(name: str) -> bool:
    folded = _folded(name)
    words = "_".join(_WORD.findall(folded))
    if _ASKS.match(words):
        return False
    return (
        names_a_secret(name)
        or names_a_secret(folded)
        or bool(_SENSITIVE.search(words))
        or bool(_SENSITIVE_JOINED.search(folded))
    )


def _folded(name: str) -> str:
    """A name without what only changes its looks: wide letters, accents, characters that are not seen."""
    if not name.isascii():
        apart = unicodedata.normalize("NFKD", name)
        name = "".join(char for char in apart if unicodedata.category(char) not in ("Mn", "Cf"))
    return _PLURAL_OF_CAPITALS.sub("", name)


def _masked(value: Json, above: str) -> Json:
    """`above` is the name that the value stands under; none at the root."""
    if isinstance(value, dict):
        return _masked_object(value, above)
    if isinstance(value, list):
        return [_masked(item, above) for item in value]
    if isinstance(value, str):
        return MASKED if is_sensitive_text(value) else value
    # A card number may be sent as a number.
    return MASKED if _is_number(value) and holds_account_number(str(value).removesuffix(".0")) else value


def _masked_object(value: dict[str, Json], above: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    pair = any(isinstance(named := value.get(name), str) and is_sensitive_name(named) for name in _NAMING)
    hidden = 0
    for name, item in value.items():
        if is_sensitive_text(name):
            # A name can be the credential. Each gets a name of its own, so that none takes another's place.
            hidden += 1
            while (other := f"{MASKED} {hidden}") in value:
                hidden += 1
            found[other] = MASKED
        elif (pair and name in _NAMED) or is_sensitive_name(name) or _is_sensitive_beneath(above, name):
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
