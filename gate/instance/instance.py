"""A running instance, composed: its settings, its ledger, its signing keys."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import damaged, registered
from gate.adapters.worker import Workers
from gate.clock import utc_now
from gate.contract.published import corpus_hash
from gate.decisions.decide import DecisionGate
from gate.decisions.drafts import DraftActs
from gate.decisions.lifecycle import Lifecycle
from gate.decisions.migrations.acts import MigrationActs
from gate.decisions.migrations.reading import Migrations
from gate.decisions.reviews.resolutions import Resolutions
from gate.decisions.signing import Signing
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.advisory import open_advisor
from gate.instance.checkpoints import Checkpoints
from gate.instance.keys import KeyRing, hmac_signer, write_private
from gate.instance.pilots import PilotIntake, create_pilot_secret
from gate.instance.settings import DEFAULT_BASE_URL, FILE_NAME, INITIAL_FILE, METRICS_FILE, Settings, load_settings
from gate.instance.webhooks import Webhooks
from gate.ledger import Ledger, open_ledger, open_store, schema
from gate.ledger.access.limits import RateLimiter, open_limits
from gate.proof.signing import ED25519, HMAC_SHA256, KeyRegistry
from gate.records.record import Signers
from gate.services.advisory.advisor import Advisor
from gate.services.policies.in_force import TablesInForce
from gate.verify import Trust


class Instance:
    """What every edge works with: the HTTP service and the command line alike.

    Attributes:
        settings: The settings.
        ledger: The open ledger.
        receipt_keys: The keys that sign receipts and checkpoints.
        registry_keys: The keys that sign attestations.
    """

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        """Composes an instance; `open_instance` is the way in."""
        self.settings: Final = settings
        self.ledger: Final = ledger
        self.receipt_keys: Final = KeyRing(settings.home / "keys", "receipt")
        self.registry_keys: Final = KeyRing(settings.home / "keys", "registry")
        signs_with_hmac = settings.receipt_signing == HMAC_SHA256
        self._hmac = hmac_signer(settings.receipt_hmac_secret_file) if signs_with_hmac else None

    @cached_property
    def limiter(self) -> RateLimiter:
        """What counts requests; opened when it is first asked for."""
        return open_limits(self.ledger.store)

    @cached_property
    def adapters(self) -> TrustedAdapters:
        """The trusted adapters of this release. Their workers start at the first call."""
        workers = Workers(registered(), required=self.settings.adapter_isolation)
        return TrustedAdapters(registered(), workers, damaged=damaged())

    @cached_property
    def advisor(self) -> Advisor:
        """What answers the advisory modes. Settings that cannot be used close these alone."""
        try:
            return open_advisor(self.settings)
        except OperatorError:
            return Advisor(None, unusable=True)

    @cached_property
    def policy_tables(self) -> TablesInForce:
        """The active policy tables, as this process sees them."""
        return TablesInForce(self.settings.policy_tables_directory, self.ledger.policy_tables, utc_now)

    def signers(self) -> Signers:
        """What signs a record made now.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`.
        """
        return Signers(
            receipt=self.receipt_keys.signer() if self.settings.receipt_signing == ED25519 else self._hmac,
            registry=self.registry_keys.signer() if self.settings.registry_signing == ED25519 else None,
        )

    def trust(self) -> Trust:
        """The trust of this instance when it verifies: all of its own keys, and its own secret.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`.
        """
        return Trust(
            receipt_keys=self.receipt_keys.registry(),
            hmac_secret=None if self._hmac is None else self._hmac.secret,
            hmac_key_id=None if self._hmac is None else self._hmac.key_id,
            attestation_keys=self.registry_keys.registry(),
            source="server",
        )

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints that this instance signs, and keeps on this host."""
        return Checkpoints(
            self.ledger,
            self.settings.checkpoint_log_file,
            lambda: self.signers().receipt,
            self.trust,
        )

    def published_keys(self, purpose: str, now: datetime) -> KeyRegistry:
        """The public keys of a purpose, as they are published and listed.

        Where the settings let none of them sign, with receipts under HMAC or signing off, none is active.

        Args:
            purpose: receipt or registry.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`.
        """
        receipts = purpose == "receipt"
        registry = (self.receipt_keys if receipts else self.registry_keys).registry()
        algorithm = self.settings.receipt_signing if receipts else self.settings.registry_signing
        return registry if algorithm == ED25519 else registry.unused(timestamp(now))

    def gate(self, clock: Callable[[], datetime] = utc_now) -> DecisionGate:
        """The gate over this instance's ledger and keys."""
        schema_url = self.settings.schema_url
        return DecisionGate(self.ledger, self.signers, clock, schema_url, self.adapters, lambda: self.advisor)

    def migrations(self) -> Migrations:
        """The stored migrations of this instance's scopes."""
        max_new_share = self.settings.migration_stale_percent / 100
        return Migrations(self.ledger, self.gate().sources, corpus_hash(), max_new_share)

    def migration_acts(self, clock: Callable[[], datetime] = utc_now) -> MigrationActs:
        """The acts of users on the migrations of this instance's scopes."""
        self_approval = self.settings.migration_approval == "author"
        sources = self.gate(clock).sources
        return MigrationActs(self.ledger, sources, clock, self.migrations(), self_approval=self_approval)

    def draft_acts(self, clock: Callable[[], datetime] = utc_now) -> DraftActs:
        """The acts of users on the drafts of this instance's scopes."""
        return DraftActs(self.ledger, clock)

    def resolutions(self, clock: Callable[[], datetime] = utc_now) -> Resolutions:
        """What resolves the held decisions of this instance's scopes."""
        return Resolutions(self.ledger, Signing(self.signers, clock), clock)

    def lifecycle(self, clock: Callable[[], datetime] = utc_now) -> Lifecycle:
        """What takes reports about this instance's decisions."""
        return Lifecycle(self.ledger, clock)

    @cached_property
    def pilots(self) -> PilotIntake:
        """The intake of pilots."""
        return PilotIntake(self.ledger.pilots, self.settings.home)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks of this instance's scopes."""
        return Webhooks(self.ledger, self.settings)

    def close(self) -> None:
        """Closes the ledger and the limits, and ends what runs adapters."""
        if "adapters" in self.__dict__:
            self.adapters.close()
        if "limiter" in self.__dict__:
            self.limiter.close()
        self.ledger.close()


def open_instance(settings: Settings) -> Instance:
    """Opens the instance that the settings describe.

    Raises:
        OperatorError: `INSTANCE_MISSING` where there is none, or what `open_ledger` and the HMAC secret raise.
    """
    require_instance(settings.home)
    return Instance(settings, open_ledger(settings.ledger_url))


def create_metrics_token(home: Path) -> None:
    """Makes the token that opens the metrics, where an instance has none: 256 random bits in a file of mode 0600.

    Raises:
        OSError: It cannot be written.
    """
    file = home / METRICS_FILE
    if not file.exists():
        write_private(file, f"{secrets.token_urlsafe(32)}\n".encode())


def require_instance(home: Path) -> None:
    """Requires that there is an instance in a directory.

    Raises:
        OperatorError: `INSTANCE_MISSING`.
    """
    if not (home / FILE_NAME).is_file():
        raise OperatorError(
            "INSTANCE_MISSING",
            f"There is no instance in {home}; create one with `gate serve --home {home}`, "
            f"or choose another directory with --home.",
        )


def upgrade_ledger(settings: Settings, now: datetime) -> str:
    """Brings the tables of an instance's ledger to this release's; the schema that it had.

    Raises:
        OperatorError: `INSTANCE_MISSING`, or what `open_ledger` raises.
    """
    require_instance(settings.home)
    store = open_store(settings.ledger_url)
    before = schema.revision(store) or "none"
    store.close()
    ledger = open_ledger(settings.ledger_url, upgrade=True)
    try:
        if before != schema.HEAD:
            with ledger.operator_log.recording("ledger.upgraded", schema.HEAD, now) as details:
                details["from"] = before
    finally:
        ledger.close()
    return before


def create_instance(
    home: Path, *, base_url: str = DEFAULT_BASE_URL, database_url: str | None = None, now: datetime | None = None
) -> bool:
    """Creates an instance in a directory: signing keys, the ledger, and settings. It does not change existing files.

    Only a new instance gets a new ledger: one that is missing later was lost, and an empty one in its place would hide
    that.

    Args:
        home: The directory.
        base_url: Where callers reach the service.
        database_url: The ledger; by default `ledger.db` in the directory.
        now: The moment from which its keys sign; by default the current one.

    Returns:
        Whether an instance was laid out.

    Raises:
        OperatorError: `INSTANCE_UNWRITABLE`, or what `open_ledger` raises.
    """
    file = home / FILE_NAME
    if file.is_file():
        return False
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for purpose in ("receipt", "registry"):
            KeyRing(home / "keys", purpose).create(now or utc_now())
        create_metrics_token(home)
        create_pilot_secret(home)
        open_ledger(load_settings(home, database_url=database_url).ledger_url, create=True).close()
        # Last, because it is what marks the instance as complete.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(INITIAL_FILE.format(base_url=base_url))
    except OSError as error:
        raise OperatorError(
            "INSTANCE_UNWRITABLE", f"An instance cannot be created in {home}: {error.strerror}."
        ) from error
    return True
