"""The passwords of users: what makes one acceptable, and their argon2id hashes.

A password has a person's few bits, unlike an API key, so it is hashed slowly. The same text typed on two keyboards may
reach the service as two sequences of code points: passwords are compared in Unicode's form NFC.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id

from gate.errors import OperatorError
from gate.ledger.stores.store import has_utf8

SHORTEST: Final = 12
LONGEST: Final = 256
"""Characters in form NFC, so at most 1,024 bytes."""

# Another form of the same text has at most so many characters for one of NFC; more are not even normalized.
_UNFOLDED: Final = 4

# A stored hash names its own parameters, so that these may change.
_OPERATIONS: Final = argon2id.OPSLIMIT_INTERACTIVE
_MEMORY: Final = argon2id.MEMLIMIT_INTERACTIVE


def hash_password(password: str, name: str) -> str:
    """The argon2id string of a new password, with a fresh salt. It takes a tenth of a second and 64 MiB.

    Args:
        password: The password.
        name: The name of its user.

    Raises:
        OperatorError: `PASSWORD_UNFIT`.
    """
    text = _normalized(password)
    if text is None or not SHORTEST <= len(text) <= LONGEST:
        raise OperatorError(
            "PASSWORD_UNFIT", f"The password must have {SHORTEST} to {LONGEST} characters. Choose another password."
        )
    if text.casefold() == name.casefold():
        raise OperatorError("PASSWORD_UNFIT", "The password is the user's name. Choose another password.")
    return _hash(text)


def matches(password: str, password_hash: str | None) -> bool:
    """Whether a password is that of a hash. It takes as long where there is none, as for an unknown user."""
    text = _normalized(password)
    if text is None or len(text) > LONGEST:
        # It is nobody's password.
        return False
    if password_hash is None:
        _hash(text)
        return False
    try:
        return argon2id.verify(password_hash.encode(), text.encode())
    except CryptoError:
        return False


def _normalized(password: str) -> str | None:
    """The form NFC; None for what is no text, or is far too long."""
    if len(password) > _UNFOLDED * LONGEST or not has_utf8(password):
        return None
    return unicodedata.normalize("NFC", password)


def _hash(text: str) -> str:
    return argon2id.str(text.encode(), _OPERATIONS, _MEMORY).decode()
