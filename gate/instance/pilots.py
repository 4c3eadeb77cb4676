"""The intake of pilots: submissions taken, confirmed by a token, and listed for the operator.

    pilot_id = instance.pilots.submit(body, now)
    token = instance.pilots.token(pilot_id)      # the operator sends it to the person
    instance.pilots.confirm({"pilot_id": pilot_id, "token": token}, now)

A token is the HMAC of the submission's id under a secret of the instance: 256 bits in a file of mode 0600. The operator
can therefore see it at any time. The ledger and its backups, also on other hosts, contain no tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, cast

from gate.clock import new_id
from gate.encoding.shapes import FORMATS, shape, to_mend
from gate.errors import FieldError, LimitReached, NotFound, RequestRefused, ServiceUnavailable
from gate.ids import parse_timestamp, timestamp
from gate.instance.keys import write_private
from gate.ledger.access.pilots import Pilot, Pilots

TOKEN_DAYS: Final = 14
"""How many days after its submission a token ends."""

KEPT_DAYS: Final = 30
"""How many days a submission is kept that is not confirmed."""

MAX_PENDING: Final = 10_000
"""How many submissions may wait to be confirmed."""

PILOT_FILE: Final = "keys/pilot.secret"
"""Where the secret lies in the instance's directory: with the keys, which every host of an instance has a copy of."""

_SECRET_BYTES: Final = 32
_FULL_SECONDS: Final = 24 * 3600
# So that no other use of the secret makes a token.
_PURPOSE: Final = b"pilot_confirmation_v1\0"
_TEXTS: Final = ("name", "email", "company", "use")


class PilotIntake:
    """The intake of an instance."""

    def __init__(self, pilots: Pilots, home: Path) -> None:
        """Takes the stored submissions, and the instance's directory."""
        self._pilots = pilots
        self._secret_file = home / PILOT_FILE

    def submit(self, body: object, now: datetime) -> str:
        """Stores a submission; its id.

        Args:
            body: The parsed body of the request.
            now: The current moment.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`.
            LimitReached: `SVC_PILOT_INTAKE_FULL`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        texts = read_submission(body)
        pilot = Pilot(new_id("plt", now), submitted_at=timestamp(now), **texts)
        if not self._pilots.add(pilot, kept_since=now - timedelta(days=KEPT_DAYS), most=MAX_PENDING):
            raise LimitReached(
                "SVC_PILOT_INTAKE_FULL",
                f"{MAX_PENDING:,} submissions are waiting for the operator, which is the limit. Nothing was "
                "stored. Try again another day, or write to the operator.",
                details={"retry_after": _FULL_SECONDS},
            )
        return pilot.pilot_id

    def confirm(self, body: object, now: datetime) -> None:
        """Confirms a submission; one that was confirmed before stays so.

        Args:
            body: The parsed body of the request.
            now: The current moment.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`.
            NotFound: `SVC_PILOT_NOT_FOUND`: the token is wrong or at its end, or there is no such submission.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if errors := shape("pilot-confirmation-request").errors(body):
            raise _invalid("The body is not a valid confirmation of a pilot", errors)
        asked = cast("Mapping[str, str]", body)
        # Both are done for every request, so that the time tells nothing of either.
        pilot = self._pilots.find(asked["pilot_id"])
        same = hmac.compare_digest(_digest(asked["token"]), _digest(self.token(asked["pilot_id"])))
        if not same or pilot is None or _ended(pilot, now) or not self._is_confirmed(pilot, now):
            raise NotFound(
                "SVC_PILOT_NOT_FOUND",
                "No submission matches this token. Check pilot_id and token as the operator sent them. A token "
                f"expires {TOKEN_DAYS} days after its submission; submit again to get a new one.",
            )

    def _is_confirmed(self, pilot: Pilot, now: datetime) -> bool:
        """Whether a submission is confirmed, by now or before; not where it was erased a moment ago."""
        return pilot.confirmed_at is not None or self._pilots.confirm(pilot.pilot_id, now)

    def token(self, pilot_id: str) -> str:
        """The token that confirms a submission.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the secret cannot be read.
        """
        try:
            secret = bytes.fromhex(self._secret_file.read_text("ascii").strip())
        except (OSError, ValueError) as error:
            raise _unreadable() from error
        if len(secret) < _SECRET_BYTES:
            raise _unreadable()
        digest = hmac.digest(secret, _PURPOSE + pilot_id.encode(), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def pages(self) -> Iterator[list[Pilot]]:
        """All submissions, oldest first, some at a time; one page at least.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._pilots.pages()


def create_pilot_secret(home: Path) -> None:
    """Makes the secret of the tokens, where an instance has none: 256 random bits in a file of mode 0600.

    Raises:
        OSError: It cannot be written.
    """
    file = home / PILOT_FILE
    if not file.exists():
        write_private(file, f"{secrets.token_hex(_SECRET_BYTES)}\n".encode())


def status_of(pilot: Pilot, now: datetime) -> str:
    """pending, confirmed, or expired where its token ended before it was confirmed."""
    if pilot.confirmed_at is not None:
        return "confirmed"
    return "expired" if _ended(pilot, now) else "pending"


def read_submission(body: object) -> dict[str, str]:
    """The texts of a submission, without white space around them.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`.
    """
    errors = shape("pilot-request").errors(body)
    if not errors:
        given = cast("Mapping[str, str]", body)
        errors = [fault for name in _TEXTS for fault in _faults(name, given[name])]
    if errors:
        raise _invalid("The body is not a valid request for a pilot", errors)
    return {name: given[name].strip() for name in _TEXTS}


def _faults(name: str, text: str) -> Iterator[FieldError]:
    if not text.strip():
        yield FieldError(name, "too_short", "It must contain more than white space.")
    elif refused := next((each for each in text if _is_refused(each)), None):
        message = f"It contains U+{ord(refused):04X}, an invisible character. Remove it."
        yield FieldError(name, "character", message)
    elif name == "email" and not is_email(text.strip()):
        yield FieldError(name, "format", f"It must be {FORMATS['email']}, such as ada@example.com.")


# Those that turn the direction of what follows: a name could show another text than it has. Marks of direction and
# joiners, which some languages write with, stay.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Control characters, line and paragraph separators.
_UNSEEN: Final = frozenset({"Cc", "Zl", "Zp"})


def _is_refused(character: str) -> bool:
    return character in _TURNING or unicodedata.category(character) in _UNSEEN


_IN_LOCAL_PART: Final = frozenset("!#$%&'*+-/=?^_`{|}~.")
_LONGEST_LOCAL_PART: Final = 64
_LONGEST_LABEL: Final = 63


def is_email(text: str) -> bool:
    """Whether a text has the form of an e-mail address: name@example.com. No more than that is known of it."""
    local, at, domain = text.rpartition("@")
    labels = domain.split(".")
    return (
        bool(at)
        and 1 <= len(local) <= _LONGEST_LOCAL_PART
        and all(each.isalnum() or each in _IN_LOCAL_PART for each in local)
        and all(local.split("."))
        and len(labels) > 1
        and all(map(_is_label, labels))
    )


def _is_label(text: str) -> bool:
    return (
        1 <= len(text) <= _LONGEST_LABEL
        and all(each.isalnum() or each == "-" for each in text)
        and not text.startswith("-")
        and not text.endswith("-")
    )


def _ended(pilot: Pilot, now: datetime) -> bool:
    return now >= parse_timestamp(pilot.submitted_at) + timedelta(days=TOKEN_DAYS)


def _digest(token: str) -> bytes:
    # Hashes have one length, so that comparing them tells nothing of a token's.
    return hashlib.sha256(token.encode()).digest()


def _invalid(what: str, errors: list[FieldError]) -> RequestRefused:
    return RequestRefused("SVC_API_REQUEST_INVALID", to_mend(what, errors), errors)


def _unreadable() -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The service cannot read the secret for pilots, {PILOT_FILE} in its directory. The operator must "
        "restore the file, or remove it and restart the service, which then creates a new secret.",
    )
