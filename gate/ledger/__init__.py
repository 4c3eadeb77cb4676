"""The ledger: scopes and keys, registered rulebooks, and the chain of everything that was decided and reported.

    ledger = open_ledger("sqlite:////var/lib/gate/ledger.db")
    ledger.entries.append(entry)      # returns once the entry is durable

`open_ledger` is the one way in for the server, the command line and tests.

    tables, packing            every table, scope first; how bodies lie in them
    schema                     the version of this release (`HEAD`), and those that it upgrades (`OLDER`)
    schema_versions            one step up each
    rulebooks                  the registry of each scope
    review_owners              the owners of the held decisions of a scope
    reviews                    the states of reviews
    routes                     the routes of rulebook ids, as a process remembers them
    shadows                    migrations whose candidates decide new decisions again
    policy_tables              the policy tables that were active
    drafts                     rulebooks that authors write in the workbench, with their history
    stores                     SQLite and PostgreSQL behind the same methods
    chain                      the only writer: claims, caps, links and rows in one transaction
    webhooks                   the endpoints of webhooks, and their undelivered events
    access                     scopes, keys, limits, users, the operator log
    reads                      search, following a chain, checks of derived rows
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from gate.errors import OperatorError, ServiceUnavailable
from gate.ledger import schema
from gate.ledger.access.benchmark_choices import BenchmarkChoices
from gate.ledger.access.dismissals import Dismissals
from gate.ledger.access.operator_log import OperatorLog
from gate.ledger.access.pilots import Pilots
from gate.ledger.access.scopes import Directory
from gate.ledger.access.users import Users
from gate.ledger.chain.changes import Changes
from gate.ledger.chain.entries import Entries
from gate.ledger.chain.erasures import Erasures
from gate.ledger.chain.outcomes import OutcomeCounts
from gate.ledger.chain.reservations import Reservations
from gate.ledger.drafts.cases import DraftCases
from gate.ledger.drafts.drafts import Drafts
from gate.ledger.policy_tables import PolicyTables
from gate.ledger.reads.audited import AuditedLedger
from gate.ledger.reads.decisions import Decisions
from gate.ledger.reads.tail import Tail
from gate.ledger.review_owners import ReviewOwners
from gate.ledger.reviews import Reviews
from gate.ledger.rulebooks import RulebookRegistry
from gate.ledger.shadows import Shadows
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store, driver_error
from gate.ledger.webhooks.dead import DeadLetters
from gate.ledger.webhooks.deliveries import Deliveries
from gate.ledger.webhooks.endpoints import Endpoints
from gate.ledger.webhooks.tidings import Tidings


class Ledger:
    """An open ledger.

    Attributes:
        directory: Scopes and API keys.
        rulebooks: Registered rulebooks.
        entries: The chains' entries.
        decisions: The rows for searches of decisions.
        erasures: What takes personal data out of decisions.
        reviews: Who owns held decisions, and where their reviews stand.
        changes: The entries of the chains about migrations and routes, and the active routes.
        shadows: The migrations whose candidates decide new decisions again.
        audited: The ledger as its audit reads it.
        outcomes: The counts of latest outcomes.
        reservations: The idempotency keys in use.
        tail: The chains, for readers that follow them.
        operator_log: What operators did.
        benchmarks: Which scopes take part in benchmarks.
        users: The people who sign in to the workbench, and their roles in scopes.
        dismissals: The anomalies that they dismissed and reopened.
        drafts: The rulebooks that they draft.
        draft_cases: The cases that they hold their drafts to.
        policy_tables: The policy tables that were active.
        pilots: Those who ask for a pilot.
        endpoints: The endpoints of webhooks.
        deliveries: The deliveries to them.
        dead_letters: The events that were not delivered to them.
        tidings: One-time events about things outside the ledger's transactions.
        store: The database beneath them.
    """

    def __init__(self, store: Store) -> None:
        """Works on a store whose schema is current."""
        self.store: Final = store
        self.directory: Final = Directory(store)
        self.rulebooks: Final = RulebookRegistry(store)
        self.entries: Final = Entries(store)
        self.decisions: Final = Decisions(store)
        self.erasures: Final = Erasures(store)
        self.review_owners: Final = ReviewOwners(store)
        self.reviews: Final = Reviews(store)
        self.changes: Final = Changes(store)
        self.shadows: Final = Shadows(store)
        self.audited: Final = AuditedLedger(store)
        self.outcomes: Final = OutcomeCounts(store)
        self.reservations: Final = Reservations(store)
        self.tail: Final = Tail(store)
        self.operator_log: Final = OperatorLog(store)
        self.benchmarks: Final = BenchmarkChoices(store)
        self.users: Final = Users(store)
        self.dismissals: Final = Dismissals(store)
        self.drafts: Final = Drafts(store)
        self.draft_cases: Final = DraftCases(store)
        self.policy_tables: Final = PolicyTables(store)
        self.pilots: Final = Pilots(store)
        self.endpoints: Final = Endpoints(store)
        self.deliveries: Final = Deliveries(store)
        self.dead_letters: Final = DeadLetters(store)
        self.tidings: Final = Tidings(store)

    def close(self) -> None:
        """Closes every connection."""
        self.store.close()


def open_ledger(database_url: str, *, create: bool = False, upgrade: bool = False) -> Ledger:
    """Opens a ledger.

    Args:
        database_url: `sqlite:////absolute/path/ledger.db` or `postgresql://user:password@host/database`.
        create: Whether to create the database file, and the tables where there are none.
        upgrade: Whether to bring older tables to those of this release.

    Raises:
        OperatorError: `DATABASE_URL_INVALID`, `DATABASE_UNREACHABLE`, `DATABASE_NOT_DURABLE`, `LEDGER_OUTDATED` where
            the tables are those of an older release, or `LEDGER_SCHEMA_UNFIT` where there are none or those of a newer
            one.
    """
    store = open_store(database_url, create=create)
    try:
        found = _revision(store)
        if (found is None and create) or (found in schema.OLDER and upgrade):
            schema.upgrade(store)
            found = schema.revision(store)
        if found in schema.OLDER:
            raise OperatorError(
                "LEDGER_OUTDATED",
                f"The ledger {store.location} has schema {found}, but this release needs {schema.HEAD}. Stop the "
                "servers, make a backup with the release that created the ledger, and run `gate db upgrade`.",
            )
        if found != schema.HEAD:
            raise OperatorError("LEDGER_SCHEMA_UNFIT", _unfit(store, found))
    except BaseException:
        store.close()
        raise
    return Ledger(store)


def _revision(store: Store) -> str | None:
    try:
        return schema.revision(store)
    except ServiceUnavailable as error:
        if isinstance(driver_error(error), sqlite3.DatabaseError) and "not a database" in str(driver_error(error)):
            raise OperatorError(
                "LEDGER_SCHEMA_UNFIT",
                f"{store.location} is not a SQLite database. Give the path of the ledger's own file.",
            ) from error
        raise OperatorError(
            "DATABASE_UNREACHABLE",
            f"The ledger {store.location} cannot be read: {driver_error(error)}".strip().partition("\n")[0],
        ) from error


def _unfit(store: Store, found: str | None) -> str:
    if found is None:
        return (
            f"There is no ledger in {store.location}. Give the database of the instance's ledger, or create a "
            "new instance there with `gate serve --home NEW --database-url URL`."
        )
    return (
        f"The ledger {store.location} has schema {found}, which this release ({schema.HEAD}) does not know. Use "
        "the release that created it, or a later one."
    )


def open_store(database_url: str, *, create: bool = False) -> Store:
    """The store that a database URL names, whatever tables it has.

    Raises:
        OperatorError: `DATABASE_URL_INVALID`, `DATABASE_UNREACHABLE` or `DATABASE_NOT_DURABLE`.
    """
    try:
        # A name with bytes that are not UTF-8 reaches no database.
        database_url.encode()
        url = make_url(database_url)
    except (SQLAlchemyError, ValueError) as error:
        # Not the library's words: they repeat the URL, with a password that may be in it.
        raise OperatorError(
            "DATABASE_URL_INVALID",
            "The database URL cannot be read. Write sqlite:////absolute/path/ledger.db or "
            "postgresql://user:password@host/database.",
        ) from error
    backend = url.get_backend_name()
    if backend == "postgresql":
        # Loaded where it is used: its driver takes a while to import.
        from gate.ledger.stores.postgres import PostgresLedgerStore

        store = PostgresLedgerStore(url)
        store.require_durable()
        return store
    if backend != "sqlite" or not url.database or url.database == ":memory:":
        raise OperatorError(
            "DATABASE_URL_INVALID",
            f"The database URL {url.render_as_string()} is not for a SQLite file or a PostgreSQL database. Write "
            "sqlite:////absolute/path/ledger.db or postgresql://user:password@host/database.",
        )
    try:
        return SqliteLedgerStore(Path(url.database), create=create)
    except OSError as error:
        raise OperatorError(
            "DATABASE_UNREACHABLE",
            f"The ledger {url.database} cannot be opened: {error.strerror}. If the instance keeps its ledger "
            "elsewhere, give the location with --database-url. If the ledger was lost, restore it from a "
            "backup; the gate never creates a second one for an instance.",
        ) from error
