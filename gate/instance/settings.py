"""An instance's settings: read once at start, passed in, never changed.

An instance lives in a home directory: `settings.toml`, the signing keys in `keys/`, and, by default, the ledger. Every
setting can be given in the file or as an environment variable `GATE_<NAME>`; the environment wins.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gate.adapters.containment import MEASURES
from gate.errors import OperatorError

FILE_NAME: Final = "settings.toml"
METRICS_FILE: Final = "metrics.token"
LOG_NAME: Final = "checkpoints.jsonl"
DEFAULT_BASE_URL: Final = "http://127.0.0.1:8080"

INITIAL_FILE: Final = """\
# Settings of this instance; docs/operating.md lists them all. GATE_<NAME> in the environment wins over this file.

# The address under which callers reach the service; records cite the rulebook schema beneath it.
base_url = "{base_url}"

# How receipts are signed: "ed25519", "hmac-sha256" (the secret from receipt_hmac_secret_file), or "off".
receipt_signing = "ed25519"

# How rulebook attestations and registrations are signed: "ed25519" or "off".
registry_signing = "ed25519"
"""

TAKES: Final[Mapping[str, tuple[str, str | list[str]]]] = {
    "database_url": ("the address of a ledger", "postgresql://gate@db.example.com/gate"),
    "base_url": (
        "an address that begins with http:// or https://, without white space and without a slash at the end",
        "https://gate.example.com",
    ),
    "receipt_signing": ("ed25519, hmac-sha256 or off", "ed25519"),
    "receipt_hmac_secret_file": ("the path of a file", "/etc/decision-gate/receipt.secret"),
    "registry_signing": ("ed25519 or off", "ed25519"),
    "metrics_token_file": ("the path of a file", "/etc/decision-gate/metrics.token"),
    "log_level": ("info, warning or error", "warning"),
    "lake": ("the path of a directory", "/srv/gate/lake"),
    "checkpoint_log": ("the path of a file", "/srv/gate-checkpoints/checkpoints.jsonl"),
    "personal_fields": ("a list of strings", ["inputs.customer.email", "target_object_id"]),
    "adapter_isolation": ("a list of strings", ["clock_stopped", "network_namespace"]),
}
"""What each setting takes, as a person is told, and an example."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one instance.

    Attributes:
        home: The instance's directory.
        database_url: The ledger; by default `ledger.db` in the home directory.
        base_url: Where callers reach the service, without a trailing slash.
        receipt_signing: ed25519, hmac-sha256 or off.
        receipt_hmac_secret_file: A file with the HMAC secret: at least 32 bytes, read without surrounding white space.
        registry_signing: ed25519 or off.
        metrics_token_file: A file with the token that opens the metrics; by default `metrics.token` in the home.
        log_level: info (every request), warning or error.
        lake: The directory that the ledger is exported to for reports; by default `lake` in the home directory.
        checkpoint_log: The file that the service keeps its signed checkpoints in; by default `checkpoints.jsonl` in the
            home directory. Each host needs its own.
        personal_fields: What the export leaves out: facts as `inputs.<path>`, or columns of the lake by their names.
        adapter_isolation: Measures without which no adapter runs, of those in gate/adapters/containment.py; the
            baseline is always required.
    """

    home: Path
    database_url: str = ""
    base_url: str = DEFAULT_BASE_URL
    receipt_signing: str = "ed25519"
    receipt_hmac_secret_file: Path | None = None
    registry_signing: str = "ed25519"
    metrics_token_file: Path | None = None
    log_level: str = "info"
    lake: Path | None = None
    checkpoint_log: Path | None = None
    personal_fields: tuple[str, ...] = ()
    adapter_isolation: tuple[str, ...] = ()

    @property
    def ledger_url(self) -> str:
        """The database URL in force."""
        return self.database_url or f"sqlite:///{self.home / 'ledger.db'}"

    @property
    def metrics_token(self) -> Path:
        """The file with the metrics token."""
        return self.metrics_token_file or self.home / METRICS_FILE

    @property
    def lake_directory(self) -> Path:
        """Where the lake lies."""
        return self.lake or self.home / "lake"

    @property
    def checkpoint_log_file(self) -> Path:
        """Where checkpoints are kept."""
        return self.checkpoint_log or self.home / LOG_NAME

    @property
    def schema_url(self) -> str:
        """Where the Rulebook v1 schema is published."""
        return f"{self.base_url}/schemas/rulebook-v1.schema.json"


class _Unfit(Exception):
    """A setting cannot take a value; with what is wrong, where that is more than what it takes."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Unfit
    return value


def _path(value: object) -> Path:
    return Path(_text(value))


def _address(value: object) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*[^\s/])?", _text(value)):
        raise _Unfit
    return _text(value)


def _one_of(*words: str) -> Callable[[object], str]:
    def chosen(value: object) -> str:
        if value not in words:
            raise _Unfit
        return _text(value)

    return chosen


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Unfit(f"is {_called(value)}, and must be a list of strings")
    for item in value:
        # Of several invalid items the first is enough to report.
        if not isinstance(item, str):
            raise _Unfit(f"holds {_called(item)}, and must be a list of strings")
    return tuple(dict.fromkeys(value))


def _measures(value: object) -> tuple[str, ...]:
    measures = _strings(value)
    if unknown := [measure for measure in measures if measure not in MEASURES]:
        raise _Unfit(f"names unknown measures: {', '.join(unknown)}. The measures are {', '.join(MEASURES)}")
    return measures


# By hand: a validating library takes longer to load than all of the ledger, and each process would load it.
_READ: Final[Mapping[str, Callable[[object], Any]]] = {
    "database_url": _text,
    "base_url": _address,
    "receipt_signing": _one_of("ed25519", "hmac-sha256", "off"),
    "receipt_hmac_secret_file": _path,
    "registry_signing": _one_of("ed25519", "off"),
    "metrics_token_file": _path,
    "log_level": _one_of("info", "warning", "error"),
    "lake": _path,
    "checkpoint_log": _path,
    "personal_fields": _strings,
    "adapter_isolation": _measures,
}


def load_settings(home: Path, *, database_url: str | None = None) -> Settings:
    """The settings of the instance in a home directory.

    Args:
        home: The directory.
        database_url: A ledger to use instead of the one set.

    Raises:
        OperatorError: SETTINGS_INVALID, naming each setting at fault.
    """
    file = home / FILE_NAME
    try:
        in_file = tomllib.loads(file.read_bytes().decode()) if file.is_file() else {}
        given: dict[str, Any] = {"database_url": database_url} if database_url else {}
        faults = []
        for name, read in _READ.items():
            variable = _variable(name)
            if name in given or (variable is None and name not in in_file):
                continue
            try:
                given[name] = read(in_file[name] if variable is None else _from_environment(name, variable))
            except _Unfit as unfit:
                faults.append(_fault(file, name, str(unfit)))
    except RecursionError as error:
        raise OperatorError(
            "SETTINGS_INVALID", f"A setting in {file} or in the environment is nested too deeply."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OperatorError("SETTINGS_INVALID", f"{file} cannot be read: {error}.") from error
    faults += [
        f"{file} has the unknown setting {name}; remove it, or check its spelling in docs/operating.md."
        for name in in_file
        if name not in _READ and name != "home"
    ]
    if faults:
        raise OperatorError("SETTINGS_INVALID", " ".join(faults))
    return Settings(home.absolute(), **given)


def _from_environment(name: str, variable: str) -> object:
    """What the environment gives a setting: a text, or a list as JSON."""
    text = os.environ[variable]
    takes, example = TAKES[name]
    if not isinstance(example, list):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise _Unfit(f"must be {takes}, as JSON") from error


def _fault(file: Path, name: str, wrong: str) -> str:
    """What is wrong with a setting, where it was read, and what to write there."""
    takes, example = TAKES[name]
    variable = _variable(name)
    if variable is None:
        what, write = f"{name} in {file}", f"{name} = {json.dumps(example)}"
    else:
        what, write = f"{variable} in the environment", _assigned(name, example)
    # What was written is not shown: an address may have a password in it.
    return f"{what} {wrong or f'must be {takes}'}. Write {write}, for example."


def _variable(name: str) -> str | None:
    """The environment variable that gives a setting, as it is spelled there; None where none does."""
    return next((variable for variable in os.environ if variable.lower() == f"gate_{name}"), None)


def _assigned(name: str, example: str | list[str]) -> str:
    text = f"'{json.dumps(example)}'" if isinstance(example, list) else example
    return f"GATE_{name.upper()}={text}"


_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (str, "a string"),
    (int, "a number"),
    (float, "a number"),
    (dict, "a table"),
    (list, "a list"),
    (type(None), "null"),
)


def _called(value: object) -> str:
    """What a value of the wrong type is called."""
    return next((called for kind, called in _KINDS if isinstance(value, kind)), "a date or time")
