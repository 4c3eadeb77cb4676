"""The installed packages that the product runs on, and what the lock says of each.

All of it is read from the environment, pyproject.toml and requirements.lock, without the network.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
RUNTIME: Final = ("server", "workbench")
"""The extras of a service; with the dependencies of the base install, all that a running product loads."""

_LOCKED: Final = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE
)


class NotAsLocked(Exception):
    """The environment does not hold what requirements.lock says."""


@dataclass(frozen=True, slots=True)
class Locked:
    """A package in requirements.lock.

    Attributes:
        version: Its version.
        hashes: The SHA-256 of each of its files, in hex.
    """

    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package that the product runs on.

    Attributes:
        name: Its normalized name.
        installed: Its distribution.
        locked: Its entry in the lock file.
        requires: The normalized names of the packages that it needs here.
        needed_by: `base`, `server` or `workbench`: which parts of the product need it.
    """

    name: str
    installed: Distribution
    locked: Locked
    requires: frozenset[str]
    needed_by: frozenset[str]


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def entries(text: str) -> Iterator[tuple[str, str, Locked]]:
    """The normalized name, the marker and the rest of each entry of a lock; another Python may have another entry."""
    for name, version, marker, hashes in _LOCKED.findall(text):
        found = tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        yield str(canonicalize_name(name)), marker, Locked(version, found)


def lock() -> dict[str, Locked]:
    """The packages of requirements.lock that belong on this machine, by normalized name."""
    text = (ROOT / "requirements.lock").read_text()
    return {name: locked for name, marker, locked in entries(text) if not marker or Marker(marker).evaluate()}


def runtime() -> dict[str, Package]:
    """The packages that the base install and the extras of `RUNTIME` need on this machine, by normalized name.

    Raises:
        NotAsLocked: One of them is not installed, or not in the version of the lock.
    """
    about, locked = project(), lock()
    parts = {"base": about["dependencies"], **{name: about["optional-dependencies"][name] for name in RUNTIME}}
    needs = {part: _closure(map(Requirement, wanted)) for part, wanted in parts.items()}
    found = {}
    for name in sorted(set().union(*needs.values())):
        found[name] = Package(
            name,
            _as_locked(name, locked),
            locked[name],
            frozenset().union(*(need[name] for need in needs.values() if name in need)),
            frozenset(part for part, need in needs.items() if name in need),
        )
    return found


def development() -> dict[str, Distribution]:
    """The other packages of the lock, as they are installed: those of tests, notebooks, the site and releases.

    Raises:
        NotAsLocked: One of them is not installed, or not in the version of the lock.
    """
    locked = lock()
    return {name: _as_locked(name, locked) for name in sorted(locked.keys() - runtime().keys())}


def direct() -> frozenset[str]:
    """The normalized names of what pyproject.toml itself asks for at runtime."""
    about = project()
    wanted = [*about["dependencies"], *(each for name in RUNTIME for each in about["optional-dependencies"][name])]
    return frozenset(str(canonicalize_name(Requirement(each).name)) for each in wanted)


def _as_locked(name: str, locked: Mapping[str, Locked]) -> Distribution:
    if name not in locked:
        raise NotAsLocked(f"{name} is needed, but requirements.lock does not hold it. Run `make lock`.")
    try:
        installed = distribution(name)
    except PackageNotFoundError as error:
        raise NotAsLocked(f"{name} is not installed. Run `make install`.") from error
    if installed.version != locked[name].version:
        raise NotAsLocked(
            f"{name} is installed as {installed.version}, but requirements.lock has {locked[name].version}. "
            "Run `make install`."
        )
    return installed


def _closure(wanted: Iterable[Requirement]) -> dict[str, frozenset[str]]:
    """Each package that is needed, with the names of those that it needs itself."""
    found: dict[str, frozenset[str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name, extras = str(canonicalize_name(requirement.name)), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            stated = map(Requirement, distribution(name).requires or ())
        except PackageNotFoundError as error:
            raise NotAsLocked(f"{name} is not installed. Run `make install`.") from error
        needed = [each for each in stated if _applies(each, extras)]
        found[name] = found.get(name, frozenset()) | {str(canonicalize_name(each.name)) for each in needed}
        waiting.extend(needed)
    return found


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
