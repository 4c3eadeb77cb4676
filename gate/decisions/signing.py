"""The moment at which something is signed, and the keys that sign it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from gate.errors import ServiceUnavailable
from gate.ids import timestamp
from gate.records.record import Signers

_HELD: Final = timedelta(seconds=1)


class Signing:
    """Says what signs now, and when now is: `signers, now = signing()`."""

    def __init__(self, signers: Callable[[], Signers], clock: Callable[[], datetime]) -> None:
        """Takes the source of signers, which raises `ServiceUnavailable` where it has none, and the clock, in UTC."""
        self._signers = signers
        self._clock = clock

    def __call__(self) -> tuple[Signers, datetime]:
        """What signs now, and the moment.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`.
        """
        # The moment is read second, so that no record is older than the key that signed it.
        signers = self._signers()
        now = self._clock()
        moment = timestamp(now)
        for signer in signers:
            if signer is not None and signer.not_before is not None and moment < signer.not_before:
                raise ServiceUnavailable(
                    "SVC_SIGNING_UNAVAILABLE",
                    f"The server's clock says {moment}, which is before its key {signer.key_id} became valid "
                    f"({signer.not_before}). The gate decides nothing until the operator corrects the clock.",
                )
        return signers, now

    def for_many(self) -> Signing:
        """The same for many records, one after the other. The signers are looked up once a second instead of before
        each record.
        """
        return _SigningForMany(self._signers, self._clock)

    def now(self) -> datetime:
        """The current moment, even if nothing can be signed."""
        return self._clock()


class _SigningForMany(Signing):
    _held: tuple[Signers, datetime] | None = None

    def __call__(self) -> tuple[Signers, datetime]:
        now = self._clock()
        # A moment before the one of the look-up may be before what signs became valid.
        if self._held is None or not timedelta() <= now - self._held[1] < _HELD:
            self._held = super().__call__()
            return self._held
        return self._held[0], now
