"""Fixtures: an instance on disk, its scope and key, and the HTTP application over it."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import certifi
import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings

from api.app import attach, unattached_app
from api.http.logs import open_log
from gate.clock import utc_now
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger
from gate.ledger.access import limits
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from tests.support import tiers, told
from tests.support.instances import InstanceInTurn
from tests.support.memory import in_memory
from tests.support.postgres import Postgres, postgres_server
from tests.support.samples import LimitClock
from tests.support.statements import share_compiled
from tests.support.torture import LONG, size
from workbench.analytics import Analytics
from workbench.lake.entries import Personal

# A shared machine may pause at any moment; how long an example takes proves nothing. The short form tries the same
# examples in each run, so that a change is refused for what it does and never for its luck; the long form tries others.
settings.register_profile(
    "gate",
    max_examples=size(60, 200),
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gate")


def pytest_configure(config: pytest.Config) -> None:
    """Watches what tests start, and tries properties on fewer examples in `make check` than in `make test`."""
    tiers.watch()
    told.shorten(config)
    share_compiled()
    # Nothing here speaks TLS with anyone, and each HTTP client would read all public authorities, which takes 18 ms.
    config.add_cleanup(_one_authority())
    if (memory := in_memory()) is not None:
        # Each commit waits for the disk, which takes a tenth of the run.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    if tiers.choose(config.option.markexpr):
        settings.register_profile("check", settings.get_profile("gate"), max_examples=30)
        settings.load_profile("check")


def _one_authority() -> Callable[[], None]:
    """Gives the HTTP clients of this process an authority that signed nothing; what gives them the others back."""
    patch = pytest.MonkeyPatch()
    patch.setattr(certifi, "where", lambda: str(Path(__file__).parent / "support" / "authority.pem"))
    return patch.undo


def pytest_collection() -> None:
    """Collects no garbage while tests are collected: next to nothing of it is any."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keeps the collected tests out of every later collection of garbage, and collects less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Puts every test into its tier, before -m chooses, and then those that were chosen in order."""
    tiers.mark(items)
    yield
    items[:] = tiers.order(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Holds every test to its tier."""
    with tiers.during(item):
        return (yield)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def database_url() -> str | None:
    """Where the instance keeps its ledger: in its home. Folders whose tests run on PostgreSQL as well override it."""
    return None


@pytest.fixture(scope="session")
def laid_out(_laid_out: Path) -> Path:
    """The home directory of an instance that nobody opens."""
    return _laid_out


@pytest.fixture(scope="session")
def _laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Modules that override the other lay out instances of their own.
    directory = tmp_path_factory.mktemp("laid-out") / "home"
    create_instance(directory, base_url="http://gate.example")
    return directory


@pytest.fixture
def home(tmp_path: Path, database_url: str | None, laid_out: Path) -> Path:
    """The home directory of a fresh instance with an empty ledger."""
    directory = tmp_path / "home"
    if database_url is None:
        # A tenth of the time that it takes to lay one out.
        shutil.copytree(laid_out, directory)
    else:
        create_instance(directory, base_url="http://gate.example", database_url=database_url)
    return directory


@pytest.fixture(scope="session")
def _in_turn(tmp_path_factory: pytest.TempPathFactory, _laid_out: Path) -> Iterator[InstanceInTurn]:
    """The instance that tests share."""
    shared = InstanceInTurn(lambda: Path(shutil.copytree(_laid_out, tmp_path_factory.mktemp("in-turn") / "home")))
    yield shared
    shared.close()


@pytest.fixture
def instance(request: pytest.FixtureRequest, database_url: str | None) -> Iterator[Instance]:
    """The open instance, with an empty ledger; one of the test's own where it asks for its `home` as well."""
    if "home" in request.fixturenames or database_url is not None:
        opened = open_instance(load_settings(request.getfixturevalue("home"), database_url=database_url))
        yield opened
        opened.close()
        return
    instance = request.getfixturevalue("_in_turn").take()
    yield instance
    if "adapters" in instance.__dict__:
        instance.adapters.close()
    instance.__dict__.pop("advisor", None)


@pytest.fixture
def ledger(instance: Instance) -> Ledger:
    """The instance's ledger."""
    return instance.ledger


@pytest.fixture
def scope(ledger: Ledger) -> Scope:
    """A scope on plan unlimited."""
    return ledger.directory.create_scope("acme", "unlimited", utc_now())


@pytest.fixture
def key(ledger: Ledger, scope: Scope) -> str:
    """A key of the scope with full access."""
    return ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0]


@pytest.fixture
def authority(ledger: Ledger, key: str) -> Authority:
    """The caller that the key stands for."""
    return ledger.directory.authenticate(key, utc_now())


@pytest.fixture
def log() -> BytesIO:
    """What the application of `client` logs."""
    return BytesIO()


@pytest.fixture(scope="session")
def _application() -> Flask:
    """The application that serves the tests of a process one after another; making one takes as long as a request."""
    return unattached_app()


@pytest.fixture
def client(instance: Instance, log: BytesIO, _application: Flask) -> FlaskClient:
    """An HTTP client of the application."""
    analytics = Analytics(instance.ledger, instance.settings.lake_directory, Personal(), instance.migrations())
    attach(_application, instance, log=open_log(stream=log), analytics=analytics)
    return _application.test_client()


@pytest.fixture
def limit_clock(monkeypatch: pytest.MonkeyPatch) -> LimitClock:
    """The clock that rate limits read on either database; it stands still until a test moves it."""
    clock = LimitClock()
    monkeypatch.setattr(limits, "time", clock)
    monkeypatch.setattr(limits, "_SERVER_TIME", clock)
    return clock
