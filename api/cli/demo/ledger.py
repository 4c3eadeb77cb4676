"""Makes a demo instance: its keys, its scopes with their owners, and the scenario's year in their chains.

A scope's events are played one after the other, so its chain is in the order of time. A large demo divides the scopes
among processes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Final

from api.cli.demo.playing import Keys, play
from api.cli.demo.scenario import DemoScenario
from gate.adapters.registry import registered
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.errors import OperatorError
from gate.instance.instance import Instance, create_instance
from gate.instance.keys import write_private
from gate.instance.processes import WorkerPool
from gate.instance.settings import FILE_NAME, load_settings
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.access.scopes import Directory
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.rulebooks import bundles

_LEDGER: Final = "ledger.db"
_POLL_SECONDS: Final = 0.2
# Below it, starting another process takes longer than it saves.
_WORTH_A_PROCESS: Final = 3000


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """The parameters of a demo ledger.

    Attributes:
        decisions: The number of decisions of the large companies.
        seed: The seed of the random numbers; another seed gives another year.
        until: Midnight after the last day, in UTC.
        clean: Whether to leave out the planted incidents.
        peers: The number of additional, smaller companies with their own decisions. With peers, all companies take part
            in benchmarks.
    """

    decisions: int
    seed: int
    until: datetime
    clean: bool = False
    peers: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """How many decisions each scope makes."""
        year = scenario()
        scopes = (*year.scopes, *year.peers[: self.peers])
        return {scope: year.decisions(scope, self.decisions) for scope in scopes}

    @property
    def total(self) -> int:
        """How many decisions all scopes make."""
        return sum(self.sizes.values())

    @property
    def start(self) -> datetime:
        """Midnight of its first day, in UTC."""
        return self.until - timedelta(days=scenario().days)


@dataclass(frozen=True, slots=True)
class Made:
    """The result for one scope.

    Attributes:
        scope: Its name.
        entries: The number of entries of each type in its chain.
    """

    scope: str
    entries: dict[str, int]


@cache
def scenario() -> DemoScenario:
    """The scenario in `data/demo`. It is shared, so callers must not change it."""
    parameters = parse(resources.path("data", "demo", "scenario.json").read_bytes())
    return DemoScenario(parameters, [own.rulebook.body for own in bundles.own_rulebooks()], registered())


def key_file(home: Path, scope: str) -> Path:
    """The file with the key of a scope."""
    return home / f"{scope}.key"


def owner_key_file(home: Path, scope: str) -> Path:
    """The file with the key that resolves held decisions of a scope, if the scope has owners."""
    return home / f"{scope}.owner.key"


def make_ledger(
    home: Path, plan: DemoPlan, told: Callable[[int], None] = lambda decisions: None, *, processes: int | None = None
) -> list[Made]:
    """Creates a new instance in a directory, with a scope and a key for each company and its year in the ledger.

    Each scope is created with the first moment of the year as its date.

    Args:
        home: The directory, which must not contain an instance.
        plan: The parameters.
        told: Called at intervals with the number of decisions made so far.
        processes: The number of processes; by default up to one for each processor, and fewer for a small demo.

    Raises:
        OperatorError: `INSTANCE_EXISTS`, before anything is written, or `INSTANCE_UNWRITABLE`.
        ServiceUnavailable: The ledger or the keys could not be used. Everything written before that stays.
    """
    _require_free(home)
    sizes = plan.sizes
    create_instance(home, database_url=_ledger_url(home), now=plan.start)
    instance = _open(home)
    try:
        for scope in sizes:
            _create_scope(instance, scope, plan.start, compared=plan.peers > 0)
    finally:
        instance.close()
    if processes is None:
        processes = 1 + min(plan.total // _WORTH_A_PROCESS, (os.cpu_count() or 1) - 1)
    groups = _groups(sizes, processes)
    made = _in_processes(home, plan, groups, told) if len(groups) > 1 else _in_this_process(home, plan, groups[0], told)
    _sync(home)
    told(plan.total)
    return sorted(made, key=lambda each: list(sizes).index(each.scope))


def _require_free(home: Path) -> None:
    if any((home / name).exists() for name in (FILE_NAME, "keys", _LEDGER)):
        raise OperatorError(
            "INSTANCE_EXISTS",
            f"The directory {home} already contains an instance or part of one, and a demo is always a new instance. "
            f"Choose another directory with --home, or remove this one if it contains a demo that you no longer need.",
        )


def _ledger_url(home: Path) -> str:
    # Named, so that a database that the environment names for another instance gets no demo.
    return f"sqlite:///{home.absolute() / _LEDGER}"


def _open(home: Path) -> Instance:
    """The instance, with a ledger that does not wait for the disk: who has no whole demo makes another one."""
    settings = load_settings(home, database_url=_ledger_url(home))
    return Instance(settings, Ledger(SqliteLedgerStore(home / _LEDGER, durable=False)))


def _sync(home: Path) -> None:
    """Waits for the disk once, after everyone has closed the ledger."""
    with (home / _LEDGER).open("rb") as file:
        os.fsync(file.fileno())


def _create_scope(instance: Instance, name: str, now: datetime, *, compared: bool) -> None:
    home, directory = instance.settings.home, instance.ledger.directory
    scope = directory.create_scope(name, "unlimited", now)
    if compared:
        instance.ledger.benchmarks.choose(scope, now, opted_in=True)
    _create_key(directory, scope, FULL_ACCESS, key_file(home, name), now)
    owners = scenario().owners(name)
    for owner in owners:
        instance.ledger.review_owners.set(scope, owner.policy_id, owner.action, owner.terms, now)
    if owners:
        _create_key(directory, scope, {"resolve"}, owner_key_file(home, name), now)


def _create_key(directory: Directory, scope: Scope, access: Collection[str], file: Path, now: datetime) -> None:
    key, _ = directory.create_key(scope, access, None, now)
    try:
        write_private(file, f"{key}\n".encode())
    except OSError as error:
        raise OperatorError(
            "INSTANCE_UNWRITABLE", f"The key file {file} cannot be written: {error.strerror}."
        ) from error


def _groups(sizes: dict[str, int], number: int) -> list[list[str]]:
    """The scopes in so many groups of about the same size, or fewer."""
    groups: list[list[str]] = [[] for _ in range(min(number, len(sizes)))]
    for scope in sorted(sizes, key=lambda scope: -sizes[scope]):
        min(groups, key=lambda group: sum(sizes[each] for each in group)).append(scope)
    return groups


class _Shared:
    """What the processes tell the first one, and it them."""

    def __init__(self, context: BaseContext) -> None:
        self._made = context.Value("q", 0)
        self._stopped = context.Event()

    @property
    def made(self) -> int:
        return int(self._made.value)

    def add(self, decisions: int) -> bool:
        with self._made.get_lock():
            self._made.value += decisions
        return not self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()


# It reaches a process at its start, not with a task.
_shared: list[_Shared] = []


def _begin(shared: _Shared) -> None:
    _shared.append(shared)


def _make_shared(home: Path, plan: DemoPlan, scopes: Sequence[str]) -> list[Made]:
    return _make(home, plan, scopes, _shared[0].add)


def _in_processes(
    home: Path, plan: DemoPlan, groups: Sequence[Sequence[str]], told: Callable[[int], None]
) -> list[Made]:
    # A forked process would inherit locks and descriptors; a spawned one starts clean.
    context = multiprocessing.get_context("spawn")
    shared = _Shared(context)
    with WorkerPool(len(groups), _begin, shared) as pool:
        makers = [pool.submit(_make_shared, home, plan, group) for group in groups]
        try:
            while wait(makers, _POLL_SECONDS, FIRST_EXCEPTION).not_done:
                told(shared.made)
                for maker in makers:
                    if maker.done():
                        maker.result()
            return [made for maker in makers for made in maker.result()]
        except BaseException:
            # The others' work is of no use without this one's.
            shared.stop()
            raise


def _in_this_process(home: Path, plan: DemoPlan, scopes: Sequence[str], told: Callable[[int], None]) -> list[Made]:
    made = 0

    def add(decisions: int) -> bool:
        nonlocal made
        made += decisions
        told(made)
        return True

    return _make(home, plan, scopes, add)


def _make(home: Path, plan: DemoPlan, scopes: Sequence[str], add: Callable[[int], bool]) -> list[Made]:
    instance = _open(home)
    try:
        return [_make_scope(instance, plan, scope, add) for scope in scopes]
    finally:
        instance.close()


def _make_scope(instance: Instance, plan: DemoPlan, scope: str, add: Callable[[int], bool]) -> Made:
    """Makes a scope's year, for as long as `add` says to go on."""
    home, directory = instance.settings.home, instance.ledger.directory
    caller = directory.authenticate(key_file(home, scope).read_text().strip(), plan.start)
    owner = None
    if scenario().owners(scope):
        owner = directory.authenticate(owner_key_file(home, scope).read_text().strip(), plan.start)
    events = scenario().events(scope, decisions=plan.decisions, seed=plan.seed, start=plan.start, clean=plan.clean)
    return Made(scope, play(instance, scope, Keys(caller, owner), events, add))
