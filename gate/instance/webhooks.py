"""The webhooks of an instance: the key file that secrets are derived from, endpoints, a test, and one-time events.

    endpoint = instance.webhooks.add(scope, url, types, now)
    instance.webhooks.secrets(endpoint, now)          # the newest first; two during a rotation
    instance.webhooks.test(endpoint, now)             # sends a webhook.test at once

The key is 256 random bits in a file of mode 0600. It lies with the signing keys, is in backups, and every host of an
instance needs the same one. The ledger holds no secret.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from gate.clock import new_id
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.keys import write_private
from gate.instance.settings import Settings
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.webhooks.endpoints import Endpoint
from gate.records.webhooks.events import chain_broken, checkpoint_made, event_body, webhook_test
from gate.records.webhooks.types import BROKEN, CHECKPOINT, EVENT_TYPES, mask_of
from gate.services.webhooks.addresses import Rules, read_url
from gate.services.webhooks.deliverer import Deliverer, Observer
from gate.services.webhooks.secrets import ROTATION, endpoint_secret, signed_headers
from gate.services.webhooks.transport import Answer, Transport

KEY_FILE: Final = "keys/webhooks.secret"
"""Where the key lies in the instance's directory."""

_KEY_BYTES: Final = 32


class Webhooks:
    """The webhooks of an instance."""

    def __init__(self, ledger: Ledger, settings: Settings) -> None:
        """Takes the ledger and the settings."""
        self._ledger = ledger
        self._home = settings.home
        self.rules: Final = rules_of(settings)
        self._key: bytes | None = None

    def add(self, scope: Scope, url: str, types: Sequence[str], now: datetime) -> Endpoint:
        """Adds an endpoint to a scope; the first one of an instance makes its key.

        Args:
            scope: The scope.
            url: Where its events go.
            types: The types of events that it subscribes to.
            now: The current moment.

        Raises:
            OperatorError: `WEBHOOK_URL_INVALID`, `WEBHOOK_ADDRESS_REFUSED`, `WEBHOOK_EVENTS_INVALID`,
                `WEBHOOK_KEY_UNUSABLE`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        read_url(url, self.rules)
        if unknown := [each for each in types if each not in EVENT_TYPES]:
            raise _no_type(f"{unknown[0]!r} is not an event type")
        if not types:
            raise _no_type("No event type is given")
        if not (self._home / KEY_FILE).exists() and not self._ledger.endpoints.all():
            create_key(self._home)
        # Before there is an endpoint that nobody could verify.
        self._read_key()
        return self._ledger.endpoints.add(scope, url, mask_of(types), now)

    def secrets(self, endpoint: Endpoint, now: datetime) -> list[str]:
        """The secrets of an endpoint that sign now, the newest first.

        Raises:
            OperatorError: `WEBHOOK_KEY_UNUSABLE`.
        """
        key = self._read_key()
        of = endpoint.scope_id, endpoint.endpoint_id
        return [endpoint_secret(key, *of, generation) for generation in endpoint.generations(now)]

    def rotate(self, endpoint: Endpoint, now: datetime) -> Endpoint:
        """Gives an endpoint a new secret; the one before signs as well for a day.

        Raises:
            OperatorError: `WEBHOOK_KEY_UNUSABLE`, `WEBHOOK_ROTATION_OPEN`, `WEBHOOK_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self._read_key()
        return self._ledger.endpoints.rotate(endpoint, ROTATION, now)

    def test(self, endpoint: Endpoint, now: datetime) -> Answer:
        """Sends an endpoint a `webhook.test` at once, before waiting events, even if the endpoint is disabled.

        It changes nothing in the ledger: an endpoint that answers 410 stays as it is.

        Raises:
            OperatorError: `WEBHOOK_KEY_UNUSABLE`.
        """
        body = event_body(webhook_test(endpoint.endpoint_id), timestamp(now))
        headers = signed_headers(self.secrets(endpoint, now), new_id("evt", now), body, now)

        async def sent() -> Answer:
            transport = Transport(self.rules)
            try:
                return await transport.post(endpoint.url, headers, body)
            finally:
                await transport.close()

        return asyncio.run(sent())

    def deliverer(self, observer: Observer) -> Deliverer:
        """What delivers the outbox."""
        return Deliverer(self._ledger.deliveries, self.secrets, lambda: Transport(self.rules), observer)

    def tell_checkpoints(self, kept: Iterable[Mapping[str, Any]], now: datetime) -> None:
        """Tells of the last kept checkpoints of chains, each size once, to those who subscribe.

        Args:
            kept: The checkpoints.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        scopes = self._ledger.tidings.scopes(CHECKPOINT)
        for checkpoint in kept:
            chain_id = checkpoint["chain_id"]
            if chain_id in scopes:
                event, size = checkpoint_made(checkpoint), checkpoint["chain_size"]
                self._ledger.tidings.tell_once(scopes[chain_id], event, chain_id, now, size=size)

    def tell_broken(self, found: Iterable[tuple[str, str, int | None]], now: datetime) -> None:
        """Tells of broken chains, each finding once a day, to those who subscribe.

        Args:
            found: For each chain its id, the check that failed, and the chain position if that can be said.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        scopes = self._ledger.tidings.scopes(BROKEN)
        for chain_id, check, position in found:
            if chain_id in scopes:
                event = chain_broken(chain_id, check, position, timestamp(now))
                key = f"{timestamp(now)[:10]} {check} {position or ''}"
                self._ledger.tidings.tell_once(scopes[chain_id], event, key, now)

    def _read_key(self) -> bytes:
        if self._key is None:
            file = self._home / KEY_FILE
            try:
                key = bytes.fromhex(file.read_text("ascii").strip())
            except (OSError, ValueError) as error:
                raise _unusable(file) from error
            if len(key) < _KEY_BYTES:
                raise _unusable(file)
            self._key = key
        return self._key


def rules_of(settings: Settings) -> Rules:
    """The URLs and addresses that the settings allow."""
    return Rules(settings.webhook_http == "allowed", tuple(map(ip_network, settings.webhook_networks)))


def kept_for(settings: Settings) -> timedelta:
    """How long events are kept."""
    return timedelta(days=settings.webhook_kept_days)


def create_key(home: Path) -> None:
    """Makes the key where an instance has none.

    Raises:
        OperatorError: `INSTANCE_UNWRITABLE`.
    """
    file = home / KEY_FILE
    scratch = file.with_name(f".webhooks.{secrets.token_hex(4)}")
    try:
        write_private(scratch, f"{secrets.token_hex(_KEY_BYTES)}\n".encode())
        try:
            # A link fails where another command made the key meanwhile, and a rename would replace it.
            with suppress(FileExistsError):
                file.hardlink_to(scratch)
        finally:
            scratch.unlink()
    except OSError as error:
        raise OperatorError("INSTANCE_UNWRITABLE", f"The key {file} cannot be created: {error.strerror}.") from error


def _no_type(what: str) -> OperatorError:
    return OperatorError("WEBHOOK_EVENTS_INVALID", f"{what}; the types are {', '.join(EVENT_TYPES)}.")


def _unusable(file: Path) -> OperatorError:
    return OperatorError(
        "WEBHOOK_KEY_UNUSABLE",
        f"The key of the webhooks, {file}, cannot be read. Restore it from a backup, or copy it from another "
        "host of this instance. The secrets that receivers have are derived from this key.",
    )
