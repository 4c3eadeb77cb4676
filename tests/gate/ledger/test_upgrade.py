"""A ledger of an earlier release: refused as it is, brought up to this release, and whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from gate.clock import utc_now
from gate.errors import OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance.audit import check_chain
from gate.instance.instance import Instance, create_instance, open_instance, upgrade_ledger
from gate.instance.settings import Settings, load_settings
from gate.ledger import open_ledger, open_store, schema
from gate.ledger.access.authority import FULL_ACCESS, PLANS
from gate.ledger.chain.entries import Entries
from gate.ledger.chain.writer import Appended, Claim, Claimed
from gate.ledger.reads.decisions import Criteria, Decisions
from gate.ledger.stores.store import Store
from gate.ledger.tables import limits_metadata, metadata
from tests.support.entries import entry
from tests.support.postgres import empty_database_of
from tests.support.samples import copy_as_release, rows_of, sample_request

# Later than any key that a test makes: nothing is signed before its key is in use.
THIS_MONTH = datetime(2037, 6, 15, tzinfo=UTC)
NEXT_MONTH = datetime(2037, 7, 15, tzinfo=UTC)

# Its name in a home.
LEDGER = "ledger.db"


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an instance of this release with a scope on each plan, a key each, and decisions in two months."""
    home = tmp_path_factory.mktemp("laid out") / "source"
    create_instance(home)
    made = open_instance(load_settings(home))
    for plan in PLANS:
        scope = made.ledger.directory.create_scope(plan, plan, THIS_MONTH)
        key, _ = made.ledger.directory.create_key(scope, FULL_ACCESS, None, THIS_MONTH)
        (home / f"{plan}.key").write_text(key)
        for month, times in ((THIS_MONTH, 2), (NEXT_MONTH, 1)):
            for number in range(times):
                decide(made, key, f"{month:%Y-%m}-{number}", month)
    made.close()
    return home


@pytest.fixture
def source(laid_out: Path, tmp_path: Path) -> Iterator[Instance]:
    """That instance, in a copy of the test's own."""
    made = open_instance(load_settings(shutil.copytree(laid_out, tmp_path / "source")))
    yield made
    made.close()


def decide(instance: Instance, key: str, idempotency_key: str, now: datetime) -> tuple[str, Any]:
    authority = instance.ledger.directory.authenticate(key, now)
    decision = instance.gate(lambda: now).decide(
        authority, sample_request(), request_id="req_0", idempotency_key=idempotency_key
    )
    return decision.status, decision.record


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the earlier release makes its tables."""
    with empty_database_of(request) as url:
        yield url


@pytest.fixture(params=schema.OLDER)
def revision(request: pytest.FixtureRequest) -> str:
    """The schema of the earlier release."""
    return str(request.param)


@pytest.fixture(scope="module")
def laid_out_as(laid_out: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The same ledger as an earlier release kept it, in a SQLite file that nobody opens; made once for each release."""

    @cache
    def file_of(revision: str) -> Path:
        file = tmp_path_factory.mktemp(f"as {revision}") / LEDGER
        lay_out(laid_out, f"sqlite:///{file}", revision)
        return file

    return file_of


@pytest.fixture(scope="module")
def database_as(
    request: pytest.FixtureRequest, laid_out: Path
) -> Iterator[Callable[[str], AbstractContextManager[str]]]:
    """The same in a PostgreSQL database of the caller's own, a copy of one that nobody opens."""
    with ExitStack() as kept:

        @cache
        def template_of(revision: str) -> str:
            template = kept.enter_context(request.getfixturevalue("postgres").database())
            lay_out(laid_out, template, revision)
            return str(template)

        yield lambda revision: request.getfixturevalue("postgres").database(template_of(revision))


def lay_out(home: Path, url: str, revision: str) -> None:
    """Lays the ledger of an instance out in an empty database as an earlier release did."""
    source, old = open_store(f"sqlite:///{home / LEDGER}"), open_store(url, create=True)
    copy_as_release(source, old, revision)
    for opened in (source, old):
        opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(
    request: pytest.FixtureRequest,
    laid_out: Path,
    tmp_path: Path,
    revision: str,
    laid_out_as: Callable[[str], Path],
    database_as: Callable[[str], AbstractContextManager[str]],
) -> Iterator[Settings]:
    """The same instance as the earlier release kept it."""
    home = tmp_path / "home"
    shutil.copytree(laid_out, home, ignore=shutil.ignore_patterns(f"{LEDGER}*"))
    if request.param == "sqlite":
        shutil.copyfile(laid_out_as(revision), home / LEDGER)
        yield load_settings(home)
    else:
        with database_as(revision) as url:
            yield load_settings(home, database_url=url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """The old ledger's store, to look beneath."""
    opened = open_store(settings.ledger_url)
    yield opened
    opened.close()


def refusal_of(attempt: Callable[[], object]) -> str:
    with pytest.raises(OperatorError) as refusal:
        attempt()
    return refusal.value.code


def test_an_older_ledger_is_refused_until_it_is_upgraded(settings: Settings, store: Store) -> None:
    before = rows_of(store)
    with pytest.raises(OperatorError, match="gate db upgrade") as refusal:
        open_instance(settings)
    assert refusal.value.code == "LEDGER_OUTDATED"
    assert rows_of(store) == before


def test_an_upgraded_ledger_is_that_of_this_release(
    settings: Settings, store: Store, source: Instance, tmp_path: Path, revision: str
) -> None:
    before, expected = rows_of(store), rows_of(source.ledger.store)
    assert upgrade_ledger(settings, utc_now()) == revision
    after = rows_of(store)
    assert after["api_keys"] == before["api_keys"]
    # What was stored is left as it lies; of the confidence in old decisions nothing is known.
    unknown = () if revision >= "0003" else (None,)
    assert after["entries"] == [(*row, *unknown) for row in before["entries"]]
    for name in ("scopes", "chain_heads", "usage", "rulebooks", "decisions", "claims"):
        assert after[name] == expected[name], name
    for name in (
        "latest_outcomes",
        "outcome_counts",
        "benchmark_choices",
        "rulebook_annotations",
        "users",
        "user_scopes",
        "anomaly_dismissals",
        "changes",
        "migration_documents",
        "shadows",
        "user_sessions",
    ):
        assert after[name] == [], name
    assert after.keys() == expected.keys()
    instance = open_instance(settings)
    ledger = instance.ledger
    with ledger.store.read() as connection:
        tables: Any = [metadata, limits_metadata] if connection.dialect.name == "postgresql" else metadata
        assert compare_metadata(MigrationContext.configure(connection), tables) == []
    for scope in ledger.directory.scopes():
        assert (scope.plan, scope.monthly_cap) == (scope.name, PLANS[scope.name].records_per_month)
        assert check_chain(instance, scope.scope_id) == (3, None)
        used = [ledger.entries.used(scope.scope_id, timestamp(month)[:7]) for month in (THIS_MONTH, NEXT_MONTH)]
        assert used == ([0, 0] if scope.monthly_cap is None else [2, 1])
        key = (source.settings.home / f"{scope.name}.key").read_text()
        again, _ = decide(instance, key, f"{THIS_MONTH:%Y-%m}-0", THIS_MONTH)
        fresh, record = decide(instance, key, "fresh", THIS_MONTH)
        assert (again, fresh, record["audit_chain"]["chain_position"]) == ("replayed", "created", 4)
        page = ledger.decisions.search(scope.scope_id, Criteria(target_object_id="deal-1042"), limit=9)
        assert [found.position for found in page.found] == [4, 3, 2, 1]
    instance.close()


def test_a_long_chain_and_odd_targets_are_searched_after_an_upgrade_as_before(
    source: Instance, tmp_path: Path, database_url: str | None
) -> None:
    scope = source.ledger.directory.scope("unlimited")
    authority = source.ledger.directory.authenticate((source.settings.home / "unlimited.key").read_text(), THIS_MONTH)
    gate = source.gate(lambda: THIS_MONTH)
    for number in range(140):
        request = sample_request()
        request["context"]["target_object_id"] = ("\0\U0001f600" + "x" * 300)[: number * 2] + str(number)
        gate.decide(authority, request, request_id="req_0")
    store = open_store(database_url or f"sqlite:///{tmp_path / 'old.db'}", create=True)
    copy_as_release(source.ledger.store, store, "0002")
    schema.upgrade(store)
    after, expected = rows_of(store), rows_of(source.ledger.store)
    assert (after["decisions"], len(after["decisions"])) == (expected["decisions"], 149)
    page = Decisions(store).search(scope.scope_id, Criteria(policy_id="pricing_exception"), limit=1000)
    assert [found.position for found in page.found] == list(range(143, 0, -1))
    store.close()


def test_the_upgrade_is_logged_and_a_second_one_does_nothing(settings: Settings, store: Store, revision: str) -> None:
    upgrade_ledger(settings, utc_now())
    before = rows_of(store)
    assert upgrade_ledger(settings, utc_now()) == schema.HEAD
    assert rows_of(store) == before
    ledger = open_ledger(settings.ledger_url)
    (logged,) = ledger.operator_log.latest(1)
    assert (logged.action, logged.subject, logged.details) == ("ledger.upgraded", schema.HEAD, {"from": revision})
    assert ledger.operator_log.find_break() is None
    ledger.close()


def test_reports_do_not_count_as_records(source: Instance, tmp_path: Path, database_url: str | None) -> None:
    scope = source.ledger.directory.scope("starter")
    for number in range(3):
        report = entry(scope.scope_id, 0, entry_type="execution", created_at=timestamp(THIS_MONTH))
        source.ledger.entries.append(report._replace(entry_id=f"exe_{number:032x}"))
    url = database_url or f"sqlite:///{tmp_path / 'old.db'}"
    store = open_store(url, create=True)
    copy_as_release(source.ledger.store, store)
    schema.upgrade(store)
    after, expected = rows_of(store), rows_of(source.ledger.store)
    assert (after["usage"], after["decisions"]) == (expected["usage"], expected["decisions"])
    store.close()


def test_the_keys_of_reports_are_found_after_an_upgrade(
    source: Instance, tmp_path: Path, database_url: str | None
) -> None:
    scope_id = source.ledger.directory.scope("starter").scope_id
    # Two of the longest keys differ in their last character alone.
    claims = [Claim("execution", f"dec_{number:032x}", number % 2 * "x" * 299 + "k", "a" * 64) for number in range(99)]
    claims += [Claim("execution", "dec_1", f"{'x' * 298}{number}", "b" * 64) for number in range(2)]
    for number, claim in enumerate(claims):
        report = entry(scope_id, 0, claim, entry_type="execution", decision_id=claim.decision_id)
        assert isinstance(source.ledger.entries.append(report._replace(entry_id=f"exe_{number:032x}")), Appended)
    store = open_store(database_url or f"sqlite:///{tmp_path / 'old.db'}", create=True)
    copy_as_release(source.ledger.store, store, "0013")
    assert rows_of(store)["claims"] != rows_of(source.ledger.store)["claims"]
    schema.upgrade(store)
    assert rows_of(store)["claims"] == rows_of(source.ledger.store)["claims"]
    found = [Entries(store).claimed(scope_id, claim) for claim in claims]
    assert found == [Claimed(number, claim.input_hash) for number, claim in enumerate(claims, 4)]
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entries",
        "UPDATE entries SET body = ''",
        # That of another key.
        "UPDATE entries SET body = (SELECT body FROM entries AS other"
        " WHERE other.scope_id = entries.scope_id AND other.position = 1)",
    ],
)
def test_an_upgrade_refuses_keys_whose_entries_are_damaged(
    source: Instance, tmp_path: Path, database_url: str | None, damage: str
) -> None:
    """Left behind, such a key would be free for a second record."""
    store = open_store(database_url or f"sqlite:///{tmp_path / 'old.db'}", create=True)
    copy_as_release(source.ledger.store, store, "0013")
    with store.write() as connection:
        connection.execute(text(f"{damage} WHERE position = 2"))
    before = rows_of(store)
    with pytest.raises(OperatorError, match=r"position 2 of the scope .*gate chain check") as refusal:
        schema.upgrade(store)
    assert (refusal.value.code, rows_of(store), schema.revision(store)) == ("LEDGER_DAMAGED", before, "0013")
    store.close()


# The last steps make no table.
MAKING_TABLES = schema.OLDER[:-2]


@pytest.mark.parametrize("revision", MAKING_TABLES, indirect=True)
def test_an_upgrade_that_fails_leaves_the_ledger_as_it_was(settings: Settings, store: Store, revision: str) -> None:
    before = rows_of(store)
    # The last table that an upgrade makes.
    with store.write() as connection:
        connection.execute(text("CREATE TABLE webhook_told (in_the_way INTEGER)"))
    with pytest.raises(ServiceUnavailable):
        upgrade_ledger(settings, utc_now())
    with store.write() as connection:
        connection.execute(text("DROP TABLE webhook_told"))
    assert (schema.revision(store), rows_of(store)) == (revision, before)
    assert upgrade_ledger(settings, utc_now()) == revision


@pytest.mark.parametrize("revision", MAKING_TABLES, indirect=True)
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_on_postgresql_an_upgrade_takes_as_long_as_it_takes(settings: Settings, store: Store) -> None:
    """A request's statements end after seconds. Those that rewrite the tables of a large ledger need longer."""
    with store.write() as connection:
        for statement in (
            "CREATE TABLE seen (setting text)",
            "CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO seen VALUES (current_setting('statement_timeout')); END $$",
            "CREATE EVENT TRIGGER noting ON ddl_command_start EXECUTE FUNCTION note()",
        ):
            connection.execute(text(statement))
    upgrade_ledger(settings, utc_now())
    with store.read() as connection:
        assert {row.setting for row in connection.execute(text("SELECT setting FROM seen"))} == {"0"}


def test_a_newer_or_empty_ledger_is_not_upgraded(settings: Settings, store: Store) -> None:
    for version in ("UPDATE alembic_version SET version_num = '9999'", "DELETE FROM alembic_version"):
        with store.write() as connection:
            connection.execute(text(version))
        before = rows_of(store)
        assert refusal_of(lambda: upgrade_ledger(settings, utc_now())) == "LEDGER_SCHEMA_UNFIT"
        assert rows_of(store) == before


def test_where_there_is_no_instance_none_is_upgraded(tmp_path: Path) -> None:
    assert refusal_of(lambda: upgrade_ledger(load_settings(tmp_path), utc_now())) == "INSTANCE_MISSING"
    assert list(tmp_path.iterdir()) == []
