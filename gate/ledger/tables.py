"""The tables of the ledger. Every table and every key begins with the scope, so that a distributed PostgreSQL can shard
by it. The exceptions belong to the instance: the operator log, the workbench's users, the pilots, and the version of
Alembic.

Bodies are stored as bytes, and so is text that callers choose freely: U+0000 is legal JSON, and PostgreSQL's text
refuses it. Hashes are 64 characters of lower-case hex; dates are the protocol's UTC timestamps.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
    text,
)


class Utf8(TypeDecorator[str]):
    """Text stored as its UTF-8 bytes."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        """The bytes to store."""
        return None if value is None else value.encode()

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        """The text that was stored."""
        return None if value is None else bytes(value).decode()


metadata: Final = MetaData()

_HASH: Final = String(64)
_TIME: Final = String(24)
_ID: Final = String(64)
# SQLite knows one integer type, of 64 bits.
_BIG: Final = BigInteger().with_variant(Integer(), "sqlite")

scopes: Final = Table(
    "scopes",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("name", Utf8, nullable=False, unique=True),
    Column("created_at", _TIME, nullable=False),
)

api_keys: Final = Table(
    "api_keys",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("key_id", _ID, primary_key=True),
    Column("secret_hash", _HASH, nullable=False),
    Column("access", String(80), nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("expires_at", _TIME),
    Column("disabled_at", _TIME),
    Column("last_used_at", _TIME),
)

rulebooks: Final = Table(
    "rulebooks",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("rulebook_id", String(120), primary_key=True),
    Column("version", Utf8, primary_key=True),
    Column("hash", _HASH, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("registration", LargeBinary, nullable=False),
    Column("registered_at", _TIME, nullable=False),
    Index("rulebooks_by_hash", "scope_id", "hash", unique=True),
)

# The comments of a rulebook's author, as the operator last registered them. No hash or signature covers them.
rulebook_annotations: Final = Table(
    "rulebook_annotations",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("hash", _HASH, primary_key=True),
    Column("annotations", LargeBinary, nullable=False),
    Column("annotated_at", _TIME, nullable=False),
)

# The scope's head: locked by every append, in the transaction that writes. It gives out the positions, which are the
# order of everything; and it says what an append has to respect: the plan with its monthly cap, and the epochs of
# the scope's access and of its routes: every change of its keys and plan moves the first on, every route the second.
chain_heads: Final = Table(
    "chain_heads",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("chain_id", String(180), nullable=False),
    Column("chain_size", _BIG, nullable=False),
    Column("merkle_root", _HASH),
    Column("link_hash", _HASH),
    Column("plan", String(20), nullable=False),
    Column("monthly_cap", _BIG),
    Column("access_epoch", _BIG, nullable=False),
    Column("route_epoch", _BIG, nullable=False, server_default=text("0")),
    # The types of events that the scope's webhooks subscribe to, as bits, and the number of its last event.
    Column("webhook_events", _BIG, nullable=False, server_default=text("0")),
    Column("event_seq", _BIG, nullable=False, server_default=text("0")),
)

# Records made, by month. A row a month, so that a clock that was set wrong and back finds its count again.
usage: Final = Table(
    "usage",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("month", String(7), primary_key=True),
    Column("records", _BIG, nullable=False),
)

entries: Final = Table(
    "entries",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("position", _BIG, primary_key=True, autoincrement=False),
    Column("entry_type", String(20), nullable=False),
    Column("entry_id", _ID, nullable=False),
    Column("decision_id", _ID, nullable=False),
    Column("record_hash", _HASH, nullable=False),
    Column("receipt_hash", _HASH),
    Column("policy_id", String(120)),
    Column("policy_version", Utf8),
    Column("created_at", _TIME, nullable=False),
    Column("leaf_hash", _HASH, nullable=False),
    Column("merkle_root", _HASH, nullable=False),
    Column("link_hash", _HASH, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("request", LargeBinary),
    # A decision's decision_confidence: what the counts below said when it was appended.
    Column("confidence", LargeBinary),
    # Finds a decision and all that was reported about it, and refuses the same entry a second time. Both ids sort by
    # time, so that the index grows at its end.
    Index("entries_by_decision", "scope_id", "decision_id", "entry_id", unique=True),
)

# What decisions are searched by, in rows so narrow that thousands can be looked through at once. Derived from the
# records, and held against them whenever a chain is checked.
decisions: Final = Table(
    "decisions",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("position", _BIG, primary_key=True, autoincrement=False),
    Column("verdict", String(10), nullable=False),
    Column("policy_id", String(120), nullable=False),
    Column("policy_version", Utf8, nullable=False),
    Column("reason_code", String(80), nullable=False),
    Column("target_object_id", Utf8, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Index("decisions_by_verdict", "scope_id", "verdict", "position"),
    sqlite_with_rowid=False,
)

# The reviews: what holds a decision for its owner, and what became of it. A row for each binding decision whose verdict
# is review, written with it; its state follows from the chain's resolutions and receipts, and is held against them
# whenever a chain is checked. The owner and the time limit are those of the settings at that moment.
reviews: Final = Table(
    "reviews",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("decision_id", _ID, primary_key=True),
    Column("position", _BIG, nullable=False),
    # held, granted, refused, expired; or executed, once a receipt of a granted one says so.
    Column("state", String(10), nullable=False),
    # Empty where nobody was named.
    Column("owner", Utf8, nullable=False),
    Column("policy_id", String(120), nullable=False),
    Column("action", Utf8, nullable=False),
    Column("created_at", _TIME, nullable=False),
    # When it expires; null without a time limit.
    Column("due_at", _TIME),
    # How long a grant opens the action.
    Column("grant_seconds", _BIG, nullable=False),
    # Of the resolution; null while there is none.
    Column("resolved_position", _BIG),
    Column("resolved_at", _TIME),
    Index("reviews_by_state", "scope_id", "state", "position"),
    Index("reviews_by_owner", "scope_id", "owner", "state", "position"),
    # The service asks for what is due in all scopes at once.
    Index(
        "reviews_due",
        "due_at",
        "scope_id",
        sqlite_where=text("state = 'held' AND due_at IS NOT NULL"),
        postgresql_where=text("state = 'held' AND due_at IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

# Who owns the reviews of a scope: of a rulebook and action, of a rulebook, or, where both are empty, of all others.
review_owners: Final = Table(
    "review_owners",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("rulebook_id", String(120), primary_key=True),
    Column("action", Utf8, primary_key=True),
    Column("owner", Utf8, nullable=False),
    # How long the owner has; null for no limit.
    Column("within_seconds", _BIG),
    Column("grant_seconds", _BIG, nullable=False),
    Column("set_at", _TIME, nullable=False),
)

# The entries of the chain that change how a scope decides, by what they are about: a migration's id, or the rulebook
# of a route. Derived from the entries, and held against them whenever a chain is checked.
changes: Final = Table(
    "changes",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("position", _BIG, primary_key=True, autoincrement=False),
    Column("entry_type", String(20), nullable=False),
    Column("subject", String(160), nullable=False),
    Index("changes_by_subject", "scope_id", "entry_type", "subject", "position"),
    sqlite_with_rowid=False,
)

# What the entries of migrations cite by its hash: manifests, candidates and evidence.
migration_documents: Final = Table(
    "migration_documents",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("hash", _HASH, primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", _TIME, nullable=False),
)

# The shadows that run: migrations whose candidates decide new decisions again, next to the active version. The chain
# has nothing of them, because a shadow decides and changes nothing; its results are counted again as the chain grows.
shadows: Final = Table(
    "shadows",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("migration_id", String(160), primary_key=True),
    Column("started_at", _TIME, nullable=False),
    Column("started_by", Utf8, nullable=False),
    # The chain position at which it was started; it looks at the decisions after that.
    Column("from_position", _BIG, nullable=False),
    Column("found", LargeBinary),
    Column("found_at", _TIME),
    # Why the last look failed; null where it did not.
    Column("failure", Utf8),
)

# The last outcome of each decision in chain order, with what the decision is counted under.
latest_outcomes: Final = Table(
    "latest_outcomes",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("decision_id", _ID, primary_key=True),
    Column("position", _BIG, nullable=False),
    Column("outcome_status", String(10), nullable=False),
    Column("policy_id", String(120), nullable=False),
    Column("policy_version", Utf8, nullable=False),
    Column("verdict", String(10), nullable=False),
    Column("action", Utf8, nullable=False),
    # Of all its outcomes.
    Column("first_reported_at", _TIME, nullable=False),
    Column("last_reported_at", _TIME, nullable=False),
    Index("latest_outcomes_by_policy", "scope_id", "policy_id", "position"),
    sqlite_with_rowid=False,
)

# How many decisions have which latest outcome: for each policy, version, verdict and action, and, where one of these is
# empty, for all of them together.
outcome_counts: Final = Table(
    "outcome_counts",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("policy_id", String(120), primary_key=True),
    Column("policy_version", Utf8, primary_key=True),
    Column("verdict", String(10), primary_key=True),
    Column("action", Utf8, primary_key=True),
    Column("succeeded", _BIG, nullable=False),
    Column("partial", _BIG, nullable=False),
    Column("failed", _BIG, nullable=False),
    Column("reverted", _BIG, nullable=False),
    Column("pending", _BIG, nullable=False),
    Column("review", _BIG, nullable=False),
    Column("first_reported_at", _TIME, nullable=False),
    Column("last_reported_at", _TIME, nullable=False),
    sqlite_with_rowid=False,
)

# By what a claim is about, then its digest (`chain.writer.Claim.stored_as`).
claims: Final = Table(
    "claims",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("claim", LargeBinary, primary_key=True),
    Column("input_hash", _HASH, nullable=False),
    Column("position", _BIG, nullable=False),
    sqlite_with_rowid=False,
)

# Whether a scope takes part in benchmarks: a row for each time that an operator chose otherwise than before, numbered
# from 1 in each scope. Rows are only added, so that who took part at a moment can be told ever after.
benchmark_choices: Final = Table(
    "benchmark_choices",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("opted_in", Boolean, nullable=False),
    Column("chosen_at", _TIME, nullable=False),
)

# The people who sign in to the workbench: the instance's, for a person may see several scopes. Every change of password
# or of roles, disabling and signing out everywhere move the epoch on, and sessions of an earlier epoch end.
users: Final = Table(
    "users",
    metadata,
    Column("user_id", _ID, primary_key=True),
    Column("name", Utf8, nullable=False, unique=True),
    # An argon2id string, with its salt and parameters in it.
    Column("password_hash", String(128), nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("expires_at", _TIME),
    Column("disabled_at", _TIME),
    Column("last_sign_in_at", _TIME),
    Column("epoch", _BIG, nullable=False),
)

# Those who signed in on the command line, by the hash of the token in their file.
user_sessions: Final = Table(
    "user_sessions",
    metadata,
    Column("token_hash", _HASH, primary_key=True),
    Column("user_id", _ID, nullable=False),
    Column("epoch", _BIG, nullable=False),
    Column("expires_at", _TIME, nullable=False),
)

user_scopes: Final = Table(
    "user_scopes",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("user_id", _ID, primary_key=True),
    Column("role", String(10), nullable=False),
    # Every step in the workbench looks up what its user may see.
    Index("user_scopes_by_user", "user_id", "scope_id"),
)

# What users did with the anomalies that reports list: a row for each time that one was dismissed or reopened, numbered
# from 1 for each anomaly. Rows are only added.
anomaly_dismissals: Final = Table(
    "anomaly_dismissals",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("anomaly_id", _ID, primary_key=True),
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("policy_id", String(120), nullable=False),
    # False where it was reopened.
    Column("dismissed", Boolean, nullable=False),
    Column("note", Utf8, nullable=False),
    # As the report had them when the user acted.
    Column("severity", String(10), nullable=False),
    Column("score", Float, nullable=False),
    Column("acted_by", Utf8, nullable=False),
    Column("acted_at", _TIME, nullable=False),
)

# What authors draft in the workbench. `edition` counts every time that the text was saved.
drafts: Final = Table(
    "drafts",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("draft_id", _ID, primary_key=True),
    Column("name", Utf8, nullable=False),
    Column("edition", _BIG, nullable=False),
    # What it was made from, as JSON.
    Column("origin", LargeBinary, nullable=False),
    Column("created_by", Utf8, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("closed_at", _TIME),
)

# The text of a draft: a row for each sitting of an author, numbered from 1. The last one grows while they type.
draft_revisions: Final = Table(
    "draft_revisions",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("draft_id", _ID, primary_key=True),
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("edition", _BIG, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("saved_by", Utf8, nullable=False),
    Column("begun_at", _TIME, nullable=False),
    Column("saved_at", _TIME, nullable=False),
)

# The cases of a draft, numbered in the order in which they were added.
draft_cases: Final = Table(
    "draft_cases",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("draft_id", _ID, primary_key=True),
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("name", Utf8, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("saved_by", Utf8, nullable=False),
    Column("saved_at", _TIME, nullable=False),
)

# The policy tables that were active, numbered from 1 for each service. Rows are only added.
policy_tables: Final = Table(
    "policy_tables",
    metadata,
    Column("service", String(20), primary_key=True),
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("table_hash", _HASH, nullable=False),
    # The file as it was read.
    Column("body", LargeBinary, nullable=False),
    # operator, or release where the table came with the product.
    Column("origin", String(10), nullable=False),
    Column("in_force_at", _TIME, nullable=False),
)

# Where a scope's events are sent. The secrets are not here: they are made of the instance's key file.
webhook_endpoints: Final = Table(
    "webhook_endpoints",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("endpoint_id", _ID, primary_key=True),
    Column("url", Utf8, nullable=False),
    # The types of events that it subscribes to, as bits.
    Column("events", _BIG, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("disabled_at", _TIME),
    # Why: operator, or gone where the endpoint answered 410.
    Column("disabled_by", String(10)),
    # Every event up to this number was delivered, is in webhook_deliveries, or is not for this endpoint.
    Column("cursor", _BIG, nullable=False),
    # How often the secret was rotated, and until when the one before it signs as well.
    Column("generation", _BIG, nullable=False),
    Column("rotated_until", _TIME),
    Column("delivered_at", _TIME),
)

# The outbox: events as they are sent. The scope's locked head numbers them, so that their order is that of commits.
webhook_events: Final = Table(
    "webhook_events",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("seq", _BIG, primary_key=True, autoincrement=False),
    Column("event_id", _ID, nullable=False),
    Column("type", String(40), nullable=False),
    Column("subject", String(180), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", _TIME, nullable=False),
    sqlite_with_rowid=False,
)

# Events that an endpoint did not take, and those that wait behind one of the same subject. What was delivered has none.
webhook_deliveries: Final = Table(
    "webhook_deliveries",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("endpoint_id", _ID, primary_key=True),
    Column("seq", _BIG, primary_key=True, autoincrement=False),
    Column("subject", String(180), nullable=False),
    # pending or dead.
    Column("state", String(10), nullable=False),
    Column("attempts", _BIG, nullable=False),
    # Null while it waits behind another one, and once it is dead.
    Column("next_at", _TIME),
    Column("last_at", _TIME),
    Column("last_status", _BIG),
    Column("last_error", Utf8),
    Index("webhook_deliveries_due", "scope_id", "endpoint_id", "state", "next_at"),
    sqlite_with_rowid=False,
)

# Events that are sent only once: an anomaly, a broken chain on one day, a chain's checkpoint up to a size.
webhook_told: Final = Table(
    "webhook_told",
    metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("type", String(40), primary_key=True),
    Column("key", String(180), primary_key=True),
    Column("size", _BIG, nullable=False),
    Column("told_at", _TIME, nullable=False),
    sqlite_with_rowid=False,
)

# Those who ask for a pilot: the instance's, outside of every chain, and erased row by row.
pilots: Final = Table(
    "pilots",
    metadata,
    Column("pilot_id", _ID, primary_key=True),
    Column("name", Utf8, nullable=False),
    Column("email", Utf8, nullable=False),
    Column("company", Utf8, nullable=False),
    Column("use", Utf8, nullable=False),
    Column("submitted_at", _TIME, nullable=False),
    Column("confirmed_at", _TIME),
    # Those that wait are counted, and the old ones among them removed, whenever another one comes.
    Index("pilots_by_state", "confirmed_at", "submitted_at"),
)

# What operators did, each row bound to the one before it.
operator_log: Final = Table(
    "operator_log",
    metadata,
    Column("position", _BIG, primary_key=True, autoincrement=False),
    Column("created_at", _TIME, nullable=False),
    Column("operator", Utf8, nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", Utf8, nullable=False),
    Column("details", LargeBinary, nullable=False),
    Column("entry_hash", _HASH, nullable=False),
)

limits_metadata: Final = MetaData()

# The requests that each key made in the last minute. It survives no crash and need not: on SQLite it lives in a file of
# its own that never waits for the disk, on PostgreSQL in an unlogged table.
rate_windows: Final = Table(
    "rate_windows",
    limits_metadata,
    Column("scope_id", _ID, primary_key=True),
    Column("key_id", _ID, primary_key=True),
    Column("admitted", LargeBinary, nullable=False),
)
