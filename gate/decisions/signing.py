"""The moment at which something is signed, and the keys that sign it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from gate.errors import ServiceUnavailable
from gate.ids import timestamp
from gate.records.record import Signers

_HELD_SECONDS: Final = 1.0


class Signing:
    """Says what signs now, and when now is: `signers, now = signing()`."""

    def __init__(self, signers: Callable[[], Signers], clock: Callable[[], datetime]) -> None:
        """Takes the source of signers, which raises ServiceUnavailable where it has none, and the clock, in UTC."""
        self._signers = signers
        self._clock = clock

    def __call__(self) -> tuple[Signers, datetime]:
        """What signs now, and the moment.

        Raises:
            ServiceUnavailable: SVC_SIGNING_UNAVAILABLE.
        """
        # The moment is read second, so that no record is older than the key that signed it.
        signers = self._signers()
        now = self._clock()
        moment = timestamp(now)
        for signer in signers:
            if signer is not None and signer.not_before is not None and moment < signer.not_before:
                raise ServiceUnavailable(
                    "SVC_SIGNING_UNAVAILABLE",
                    f"The server's clock says {moment}, which is before its key {signer.key_id} became"
                    f" valid ({signer.not_before}). Nothing is decided until the operator corrects the clock.",
                )
        return signers, now

    def for_many(self) -> Signing:
        """The same for many records that are made one after the other: what signs is looked up once a second, and not
        before each signature.
        """
        signers: Signers | None = None
        until = 0.0

        def held() -> Signers:
            nonlocal signers, until
            if signers is None or time.monotonic() >= until:
                signers, until = self._signers(), time.monotonic() + _HELD_SECONDS
            return signers

        return Signing(held, self._clock)

    def now(self) -> datetime:
        """The moment, whether or not anything can be signed."""
        return self._clock()
