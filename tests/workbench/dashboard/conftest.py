"""Fixtures: a dashboard that listens, over an instance with two scopes and a user for each role."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from nacl.pwhash import argon2id

from gate.clock import utc_now
from gate.ledger.access import passwords
from gate.ledger.access.authority import FULL_ACCESS, Scope
from tests.support.samples import sample_rulebook
from tests.workbench.dashboard.serving import Site, served
from tests.workbench.support import Chain, Shared, bring_up, shared


class Quick:
    """Stands for argon2id, with the least work there is."""

    def str(self, password: bytes, opslimit: int, memlimit: int) -> bytes:
        return argon2id.str(password, argon2id.OPSLIMIT_MIN, argon2id.MEMLIMIT_MIN)

    def verify(self, password_hash: bytes, password: bytes) -> bool:
        return argon2id.verify(password_hash, password)


@pytest.fixture(scope="session")
def quick_passwords() -> Iterator[None]:
    """Real hashes take a tenth of a second each."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(passwords, "argon2id", Quick())
        yield


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """An instance whose scope acme has some of everything in its chain and in its lake; scope other has a decision."""
    with shared(tmp_path_factory.mktemp("dashboard") / "home") as made:
        chain = Chain(made.instance, made.authority)
        chain.grow()
        bring_up(made.instance, made.lake, made.scope)
        directory = made.instance.ledger.directory
        other = directory.create_scope("other", "unlimited", utc_now())
        key, _ = directory.create_key(other, FULL_ACCESS, None, utc_now())
        secret = Chain(made.instance, directory.authenticate(key, utc_now()))
        request = {"mode": "rulebook", "rulebook": {**sample_rulebook(), "rulebook_id": "secret_policy"}}
        secret.decide({**request, "context": {"inputs": {"discount_percent": 10, "margin_percent": 22}}})
        yield made


@pytest.fixture(scope="module")
def _site(decided: Shared, quick_passwords: None) -> Iterator[Site]:
    with served(decided.instance, demo_user="cem") as site:
        acme, other = decided.scope, decided.instance.ledger.directory.scope("other")
        site.add_user("ana", [acme])
        site.add_user("ben", [acme], "approver")
        site.add_user("eve", [other])
        site.add_user("cem", [acme, other], "author")
        yield site


@pytest.fixture
def site(_site: Site) -> Iterator[Site]:
    """The server, to which nothing happened for hours; nothing may happen to it that it does not foresee."""
    _site.clock.forward(timedelta(hours=2))
    yield _site
    _site.close_browsers()
    failures, _site.failures.seen = _site.failures.seen, []
    assert failures == []


@pytest.fixture
def acme(decided: Shared) -> Scope:
    """The scope of all users but eve."""
    return decided.scope


@pytest.fixture(autouse=True)
def _many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a few users open the pages of many tests, one soon after the other."""
    monkeypatch.setattr("workbench.dashboard.app.opened.MOST", 10_000)
