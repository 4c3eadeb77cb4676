"""Finds values and names that look like credentials.

A text is a credential if its name, or a name above it, ends in a word such as `password`, or if its form is that of a
known key. A number is a credential only under a name for something that people type, such as a password or a PIN:
`tokens` is a metric.

Reports are stored forever and shown to auditors, so nobody could remove a password from them.

The time of each pattern is proportional to the length of the text, because bodies may be hostile, and a search blocks
all other threads.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from gate.encoding.folding import folded, words
from gate.errors import FieldError, member


class _Secret(IntEnum):
    """The values under a name that are credentials."""

    NOTHING = 0
    TEXT = 1
    TEXT_AND_NUMBERS = 2


class _Name(NamedTuple):
    """The meaning of a field's name: which values under it are credentials, and whether it is one itself."""

    holds: _Secret
    is_credential: bool


def credentials(body: object) -> Iterator[FieldError]:
    """The parts of a report's body that look like credentials, by their paths."""
    yield from _credentials(body, "", _Secret.NOTHING)


def _credentials(value: object, path: str, holds: _Secret) -> Iterator[FieldError]:
    """`holds`: which values are credentials because of the names above."""
    if isinstance(value, dict):
        for name, item in value.items():
            read = _read_name(name)
            if read.is_credential:
                # Its path would give it away.
                yield FieldError(path, "credential", "A name in it looks like a credential; remove that field.")
            elif name == "observed_metrics" and not path:
                # Schemas make these numbers, whatever their names suggest.
                yield from _credentials(dict.fromkeys(item), name, _Secret.NOTHING)
            else:
                yield from _credentials(item, member(path, name), max(holds, read.holds))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _credentials(item, f"{path}[{index}]", holds)
    elif _is_credential(value, holds):
        yield FieldError(path, "credential", "It looks like a credential, which is never stored; remove it.")


def names_a_secret(said: str) -> bool:
    """Whether the value under a name is a credential, from the name's words as `folding.words` returns them."""
    return bool(_SECRET_NAME.search(said) or _PASS.fullmatch(said))


def is_secret_text(text: str, plain: str) -> bool:
    """Whether a text is a credential, or contains one with a known form.

    Args:
        text: The text.
        plain: The same, folded.
    """
    # A key stands out in the text as it is, where a letter with an accent is no part of it.
    return _holds_a_key(text) or (plain != text and _holds_a_key(plain)) or _gives_a_secret_away(plain)


def _is_credential(value: object, holds: _Secret) -> bool:
    if isinstance(value, str):
        return value != "" and (holds is not _Secret.NOTHING or is_secret_text(value, folded(value)))
    return holds is _Secret.TEXT_AND_NUMBERS and isinstance(value, int | float) and not isinstance(value, bool)


# The last words of a name that says what it holds; token_count and keyboard end otherwise.
_TYPED: Final = ("password", "passwd", "passphrase", "passcode", "pwd", "otp")
_SECRETS: Final = (
    *_TYPED,
    "secret",
    "token",
    "bearer",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
    "secret_key",
    "signing_key",
    "encryption_key",
    "session_key",
    "ssh_key",
    "credential",
    "authorization",
    "cookie",
    "session_id",
    "sessionid",
    "jwt",
)
# Boarding passes and test passes are not credentials.
_PASS: Final = re.compile(r"(?:(?:db|user|smtp|ftp)_)?pass")
_USUAL_NAME: Final = 64


def _ending_in(last: Iterable[str]) -> re.Pattern[str]:
    # Pins are also found on maps.
    return re.compile(rf"(?:^|_)(?:(?:{'|'.join(last)})s?|pin)(?:_(?:value|text|pem))?\Z")


_SECRET_NAME: Final = _ending_in(_SECRETS)
_TYPED_NAME: Final = _ending_in(_TYPED)


def _read_name(name: str) -> _Name:
    return _read_usual_name(name) if len(name) <= _USUAL_NAME else _read_usual_name.__wrapped__(name)


# A request's names are nearly always those of the request before it. Long ones are not kept.
@lru_cache(4096)
def _read_usual_name(name: str) -> _Name:
    return _Name(_held_by(name), is_secret_text(name, folded(name)))


def _held_by(name: str) -> _Secret:
    return _held_by_usual(name) if len(name) <= _USUAL_NAME else _held_by_usual.__wrapped__(name)


@lru_cache(4096)
def _held_by_usual(name: str) -> _Secret:
    said = words(folded(name))
    if not names_a_secret(said):
        return _Secret.NOTHING
    return _Secret.TEXT_AND_NUMBERS if _TYPED_NAME.search(said) else _Secret.TEXT


def _beginning(first: str, rest: str) -> str:
    """A pattern for text without a letter or digit before it. A search for a plain first character is five times as
    fast as one that begins with a lookbehind.
    """
    return rf"{first}(?<![A-Za-z0-9]{first})(?:{rest})"


# In lower case.
_SECRET_TEXT: Final = re.compile(
    "|".join(
        (
            # Keys of this service, GitHub, GitLab, Stripe, Slack, OpenAI, Anthropic and OpenRouter, Hugging Face, npm,
            # webhooks of Stripe, and Google's OAuth.
            _beginning("d", r"gk_[0-9a-f]++_\w"),
            _beginning("g", r"h[opsur]_\w{8}|ithub_pat_\w{8}|lpat-[\w-]{8}"),
            _beginning("[rs]", r"k_(?:live|test)_\w{8}"),
            _beginning("x", r"ox[abp]-[\w-]{8}"),
            _beginning("s", r"k-(?:(?:proj|ant|or-v1)-[\w-]{8}|[a-z0-9]{32})"),
            _beginning("h", r"f_[a-z0-9]{20}"),
            _beginning("n", r"pm_[a-z0-9]{20}"),
            _beginning("w", r"hsec_[a-z0-9+/]{16}"),
            _beginning("y", r"a29\.[\w-]{8}"),
            # A private key, a webhook of Slack, an account's key of Azure.
            r"-----begin [a-z ]{0,40}private key",
            r"hooks\.slack\.com/(?:services|workflows|triggers)/\w",
            r"accountkey=[a-z0-9+/]{16}",
            # The header Authorization, with one long word or one with a digit; without the header's name, only alone.
            r"authorization\W{1,8}(?:bearer|basic)\s{1,8}(?=\S*[0-9]|\S{20})",
            # A URL with a password, or a web address with a user.
            r":(?<=\w:)//(?:[^\s/?#@:]*+:[^\s/?#@]++@|(?:(?<=\bhttp://)|(?<=\bhttps://))[^\s/?#@]++@)",
        )
    )
)
# Keys of AWS, Google, SendGrid and PyPI, and a JSON Web Token, recognized by its middle: a search from its beginning
# would start again at each eyJ of a long text.
_CASED: Final = re.compile(
    "|".join(
        (
            _beginning("A", r"(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])|Iza[\w-]{30}"),
            _beginning("S", r"G\.[\w-]{16,32}\.[\w-]{16}"),
            _beginning("p", r"ypi-AgE[\w-]{16}"),
            r"\.(?<=[\w-]{8}\.)eyJ[\w-]++\.",
        )
    )
)
_CURL_USER: Final = re.compile(r"""-(?<=\s-)(?:u|-user)[\s=]{1,4}+["']?[^\s:"'/]{1,64}+:[^\s"'$<{]""")
# A whole text.
_BEARER: Final = re.compile(r"\s*+bearer\s++(?=\S*[0-9]|\S{20})\S++\s*+", re.IGNORECASE)
_BASIC: Final = re.compile(r"\s*+(?:authorization\s*+:\s*+)?basic\s++([A-Za-z0-9+/]{4,}+={0,2})\s*+", re.IGNORECASE)
# Each run is matched from its beginning only: none contains the beginning of another. A value may contain the next
# assignment (`note: password=hunter2`), so only its beginning is matched, and the search continues within it.
_PARAMETER: Final = re.compile(r"[?&#;]([^?=&#;\s]++)=[^&#;\s]")
_ASSIGNED: Final = re.compile(r"""(?<![\w.-])([\w.-]++)["']?\s{0,8}+[=:]""")
_ASSIGNMENT: Final = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]++)["']?\s{0,8}+(?P<sign>[=:])\s{0,8}+["']?(?=(?P<value>[^\s"',;&:=][^\s"',;&]{0,31}+))"""
)
_NUMBER: Final = re.compile(r"[0-9]++(?:\.[0-9]*+)?")
# A word that nobody would write in a sentence, or the end of what is assigned.
_NO_PROSE: Final = re.compile(r"\S*[0-9]|\S{20}")
_END: Final = re.compile(r"""["']?[ \t]{0,8}+(?:[\r\n,;&})\]]|\Z)""")


def _holds_a_key(text: str) -> bool:
    return bool(_SECRET_TEXT.search(text.lower()) or _CASED.search(text))


def _gives_a_secret_away(text: str) -> bool:
    """Whether a text contains a credential in one of the ways in which people, forms, and programs send them."""
    if _BEARER.fullmatch(text):
        return True
    if basic := _BASIC.fullmatch(text):
        return _is_user_and_password(basic[1])
    if (curl := text.find("curl ")) >= 0 and _CURL_USER.search(text, curl):
        return True
    if "://" in text and any(map(_held_by, map(unquote_plus, set(_PARAMETER.findall(text))))):
        return True
    # The names alone first: hardly any text assigns to one that holds a credential.
    return any(map(_held_by, set(_ASSIGNED.findall(text)))) and any(map(_assigns_a_secret, _ASSIGNMENT.finditer(text)))


def _assigns_a_secret(found: re.Match[str]) -> bool:
    """Whether it is like password=hunter2 or api-key: "k-1", and not like tokens: 512 or password: to be changed."""
    value, holds = found["value"], _held_by(found["name"])
    if holds is _Secret.NOTHING or (holds is _Secret.TEXT and _NUMBER.fullmatch(value)):
        return False
    if found["sign"] == "=":
        return True
    # `Second pass: done` is not about a password.
    named = found["name"].lower() != "pass"
    return named and bool(_NO_PROSE.match(value) or _END.match(found.string, found.end("value")))


def _is_user_and_password(encoded: str) -> bool:
    try:
        return b":" in base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return False
