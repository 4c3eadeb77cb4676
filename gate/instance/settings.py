"""An instance's settings: read once at start, passed in, never changed.

An instance lives in a home directory: `settings.toml`, the signing keys in `keys/`, and, by default, the ledger. Every
setting can be given in the file or as an environment variable `GATE_<NAME>`; the environment wins.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

import msgspec

from gate.adapters.containment import MEASURES
from gate.errors import OperatorError
from gate.origins import is_address, is_network

FILE_NAME: Final = "settings.toml"
METRICS_FILE: Final = "metrics.token"
_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
LOG_NAME: Final = "checkpoints.jsonl"
DEFAULT_BASE_URL: Final = "http://127.0.0.1:8080"

INITIAL_FILE: Final = """\
# Settings of this instance; docs/reference/settings.md lists all settings.
# GATE_<NAME> in the environment overrides this file.

# The address under which callers reach the service; records cite the rulebook schema beneath it.
base_url = "{base_url}"

# How receipts are signed: "ed25519", "hmac-sha256" (the secret from receipt_hmac_secret_file), or "off".
receipt_signing = "ed25519"

# How rulebook attestations and registrations are signed: "ed25519" or "off".
registry_signing = "ed25519"
"""

TAKES: Final[Mapping[str, tuple[str, str | int | list[str]]]] = {
    "database_url": ("the address of a ledger", "postgresql://gate@db.example.com/gate"),
    "base_url": (
        "an address that begins with http:// or https://, without white space and without a slash at the end",
        "https://gate.example.com",
    ),
    "receipt_signing": ("ed25519, hmac-sha256 or off", "ed25519"),
    "receipt_hmac_secret_file": ("the path of a file", "/etc/decision-gate/receipt.secret"),
    "registry_signing": ("ed25519 or off", "ed25519"),
    "metrics_token_file": ("the path of a file", "/etc/decision-gate/metrics.token"),
    "log_level": ("info, warning, or error", "warning"),
    "lake": ("the path of a directory", "/srv/gate/lake"),
    "checkpoint_log": ("the path of a file", "/srv/gate-checkpoints/checkpoints.jsonl"),
    "personal_fields": ("a list of strings", ["inputs.customer.email", "target_object_id"]),
    "adapter_isolation": ("a list of strings", ["clock_stopped", "network_namespace"]),
    "migration_approval": ("another_user or author", "another_user"),
    "migration_stale_percent": ("a whole number from 0 to 1000", 5),
    "trusted_proxies": ("a list of IP addresses", ["10.0.0.5"]),
    "allowed_origins": ("a list of origins, each a scheme and a host", ["https://agents.example.com"]),
    "public_requests_per_minute": ("a whole number from 1 to 1000000", 300),
    "sandbox_requests_per_minute": ("a whole number from 1 to 1000000", 10),
    "webhook_http": ("refused or allowed", "refused"),
    "webhook_networks": ("a list of networks", ["10.0.0.0/8"]),
    "webhook_kept_days": ("a whole number from 1 to 365", 7),
    "policy_tables": ("the path of a directory", "/etc/decision-gate/policies"),
    "policy_max_age_days": ("a whole number from 1 to 3650", 180),
    "advisory_url": (
        "an address that begins with http:// or https://",
        "https://models.example.com/v1",
    ),
    "advisory_model": ("a name of 1 to 200 characters", "example-model"),
    "advisory_key_file": ("the path of a file", "/etc/decision-gate/advisory.key"),
    "advisory_timeout_seconds": ("a whole number from 1 to 120", 20),
}
"""The values that each setting takes, in words, and an example."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one instance.

    A default that is computed ends its setting's text, behind `Default:`; `docs/reference/settings.md` is made from
    this.

    Attributes:
        home: The directory of the instance. Set it with `--home` or `GATE_HOME`, not in the file. Default: `var`.
        database_url: The ledger: `sqlite:////absolute/path/ledger.db` or `postgresql://user:password@host/database`.
            The option `--database-url` wins over the environment and the file. Default: `ledger.db` in the home
            directory.
        base_url: The address under which callers reach the service. If `gate serve` creates the instance, it writes its
            own host and port into the file. Each new record cites this address as the location of the rulebook schema,
            and keeps it: set the public address before the first real decision.
        receipt_signing: How receipts are signed. With `ed25519`, anyone can verify records with the public keys. With
            `hmac-sha256`, only holders of the secret can. With `off`, records are unsigned and verify as
            `RECORD_UNSIGNED`, and there are no checkpoints. The instance keeps no past HMAC
            secrets. After a change of the secret or of this setting, the service answers `SIGNING_KEY_UNKNOWN` for
            records signed with the old secret. `gate chain check` then cannot check their signatures, and the service
            refuses checkpoints signed with it. `gate verify --hmac-secret-file` with the old secret still verifies the
            records.
        receipt_hmac_secret_file: A file with the secret for `hmac-sha256`, of at least 32 bytes. Surrounding white
            space is ignored. Default: none; required for `hmac-sha256`.
        registry_signing: How rulebook attestations and registrations are signed. With `off`, new ones have the status
            `unsigned`.
        metrics_token_file: A file with the token that opens `/metrics`, `/api/proof-metrics` and `/api/pilot-export`.
            A replaced token is accepted from the next request on. Default: `metrics.token` in the home directory,
            which `gate serve` creates if it is missing.
        log_level: The least severe lines that the service logs. `info` includes a line for every request, except
            successful ones for `/livez`, `/readyz`, and `/metrics`.
        lake: The directory of the lake. It belongs to this instance alone and must be on a local disk. Default: `lake`
            in the home directory.
        checkpoint_log: The file in which the service keeps its signed checkpoints. Each host needs its own, best on a
            disk that the database's user cannot write. A file over 4 MiB gets the date as a suffix, and still counts:
            keep it next to the current one. Default: `checkpoints.jsonl` in the home directory.
        personal_fields: Values that the lake leaves out: facts as `inputs.<path>`, or columns by name. The reference of
            the lake's tables marks the columns that can be left out. Without `observed_metrics`, reports have no
            metrics. After a restart, the next export writes the lake
            again; until then, reports answer 503. To include a value again, remove its entry here and the scope's
            folder in the lake.
        adapter_isolation: Isolation measures without which no trusted adapter runs, in addition to the baseline, which
            is always required.
        migration_approval: The users who may approve a migration. With `another_user`, its author never may. With
            `author`, the author may, too.
        migration_stale_percent: The growth in a rulebook's decisions, in percent, after which the evidence of an open
            migration is stale.
        trusted_proxies: The addresses of proxies whose header `X-Forwarded-For` identifies the client. The limits for
            clients without an API key count by that address.
        allowed_origins: The origins of web pages that may call the MCP endpoints, in addition to pages of this machine.
        public_requests_per_minute: The number of requests that one address may send in a minute to the policy services,
            and to the refund workflows without a key.
        sandbox_requests_per_minute: The number of requests that one address may send to the sandbox in a minute.
        webhook_http: Whether webhook endpoints may use `http://`. Use it only for receivers in a network that you
            trust.
        webhook_networks: Networks in which webhook endpoints may be although their addresses are not public. By
            default, the service refuses private, loopback, link-local, carrier-grade NAT, multicast, and other special
            addresses, also inside IPv6 addresses. It refuses a name if one of its addresses is refused. Deliveries
            ignore variables such as `HTTPS_PROXY`, so the host needs a direct route.
        webhook_kept_days: The number of days for which the service keeps webhook events after they happened, and dead
            letters after it gave up on them. Events that an active endpoint has not received stay longer.
        policy_tables: The directory of your policy tables. The service uses the release's own table for a file that is
            missing there. Default: `policies` in the home directory.
        policy_max_age_days: The number of days after its last verification for which an entry of a policy table is
            used.
        advisory_url: The base URL of the server that answers the advisory modes. The gate posts OpenAI chat completions
            to `<advisory_url>/chat/completions`, follows no redirect and uses no proxy. The URL has no user, no query,
            no fragment, and no slash at its end. Use `http://` only in a network that you trust. `gate serve` does not
            start with incomplete advisory settings. Default: none; the advisory modes answer 503.
        advisory_model: The model to ask for, as the server calls it. Required with `advisory_url`. Default: none.
        advisory_key_file: A file with the API key of that server: up to 4,096 printable ASCII characters without
            spaces. Surrounding white space is ignored. Give the file mode 0600: the gate refuses a key that other users
            can read. A file that root owns may be readable by its group, and a read-only mount may have any mode.
            Default: none; no key is sent.
        advisory_timeout_seconds: The time limit of one call to that server, in seconds.
    """

    home: Path
    database_url: str = ""
    base_url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+(/\S*[^\s/])?\Z")] = DEFAULT_BASE_URL
    receipt_signing: Literal["ed25519", "hmac-sha256", "off"] = "ed25519"
    receipt_hmac_secret_file: Path | None = None
    registry_signing: Literal["ed25519", "off"] = "ed25519"
    metrics_token_file: Path | None = None
    log_level: Literal["info", "warning", "error"] = "info"
    lake: Path | None = None
    checkpoint_log: Path | None = None
    personal_fields: tuple[str, ...] = ()
    adapter_isolation: tuple[str, ...] = ()
    migration_approval: Literal["another_user", "author"] = "another_user"
    migration_stale_percent: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 5
    trusted_proxies: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    public_requests_per_minute: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 300
    sandbox_requests_per_minute: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10
    webhook_http: Literal["refused", "allowed"] = "refused"
    webhook_networks: tuple[str, ...] = ()
    webhook_kept_days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 7
    policy_tables: Path | None = None
    policy_max_age_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 180
    advisory_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s/@?#]+(/[^\s?#]*[^\s/?#])?)?\Z")] = ""
    advisory_model: Annotated[str, msgspec.Meta(max_length=200)] = ""
    advisory_key_file: Path | None = None
    advisory_timeout_seconds: Annotated[int, msgspec.Meta(ge=1, le=120)] = 20

    @property
    def ledger_url(self) -> str:
        """The current database URL."""
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
    def policy_tables_directory(self) -> Path:
        """Where the policy tables of the operator lie."""
        return self.policy_tables or self.home / "policies"

    @property
    def schema_url(self) -> str:
        """Where the Rulebook v1 schema is published."""
        return f"{self.base_url}/schemas/rulebook-v1.schema.json"


def load_settings(home: Path, *, database_url: str | None = None) -> Settings:
    """The settings of the instance in a home directory.

    Args:
        home: The directory.
        database_url: A ledger to use instead of the one set.

    Raises:
        OperatorError: `SETTINGS_INVALID`, naming each setting at fault.
    """
    file = home / FILE_NAME
    try:
        in_file = tomllib.loads(file.read_bytes().decode()) if file.is_file() else {}
        given: dict[str, Any] = {"home": home.absolute()}
        if database_url:
            given["database_url"] = database_url
        faults = []
        for name, kind in get_type_hints(Settings, include_extras=True).items():
            variable = _variable(name)
            if name in given or (variable is None and name not in in_file):
                continue
            value = in_file[name] if variable is None else os.environ[variable]
            try:
                given[name] = _read(name, kind, value, is_text=variable is not None)
            except ValueError as error:
                faults.append(_fault(file, name, str(error)))
    except RecursionError as error:
        raise OperatorError(
            "SETTINGS_INVALID", f"A setting in {file} or in the environment is nested too deeply."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OperatorError("SETTINGS_INVALID", f"{file} cannot be read: {error}.") from error
    faults += [
        f"{file} has the unknown setting {name}. Remove it, or correct its spelling (docs/reference/settings.md "
        "lists all settings)."
        for name in in_file
        if name not in TAKES and name != "home"
    ]
    if faults:
        raise OperatorError("SETTINGS_INVALID", " ".join(faults))
    return Settings(**given)


def _read(name: str, kind: Any, value: object, *, is_text: bool) -> object:
    """What a setting is given: by the file, or as a text by the environment, where a list is JSON.

    Raises:
        ValueError: It does not take this. The message says what is wrong, and shows no value but the names of measures:
            an address may have a password in it.
    """
    takes, example = TAKES[name]
    is_list = isinstance(example, list)
    if is_list and is_text:
        try:
            value = json.loads(str(value))
        except ValueError as error:
            raise ValueError(f"must be {takes}, as JSON") from error
    try:
        found = msgspec.convert(value, kind, strict=not is_text, dec_hook=_path)
    except msgspec.ValidationError as error:
        if name == "advisory_url" and isinstance(value, str):
            raise ValueError(f"must {_unfit_part(value)}") from error
        raise ValueError(f"{_is(value)}must be {takes}" if is_list else f"must be {takes}") from error
    if name == "adapter_isolation" and (unknown := [measure for measure in found if measure not in MEASURES]):
        raise ValueError(f"lists unknown measures: {', '.join(unknown)}. The measures are {', '.join(MEASURES)}")
    if name in _TEXTS:
        _require_texts(found, _TEXTS[name])
    return tuple(dict.fromkeys(found)) if is_list else found


def _unfit_part(url: str) -> str:
    """What the first unfit part of a base URL must be, without the part: it may be a password."""
    scheme, _, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    unfit = {
        "begin with http:// or https://": scheme not in ("http", "https"),
        "have no white space": re.search(r"\s", url),
        "have no user or password before its host": "@" in authority,
        "have a host after its ://": not authority,
        "have no query, which begins with ?": "?" in rest.partition("#")[0],
        "have no fragment, which begins with #": "#" in rest,
    }
    return next((must for must, is_unfit in unfit.items() if is_unfit), "have no slash at its end")


# Lists whose texts have a form of their own, and what to call it.
_TEXTS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "trusted_proxies": (is_address, "is not an IP address"),
    "webhook_networks": (is_network, "is not a network, such as 10.0.0.0/8"),
    "allowed_origins": (
        lambda text: bool(_ORIGIN.fullmatch(text)),
        "is not an origin, such as https://agents.example.com",
    ),
}


def _require_texts(texts: Iterable[str], form: tuple[Callable[[str], bool], str]) -> None:
    has_form, wrong = form
    for text in texts:
        if not has_form(text):
            raise ValueError(f"contains {text[:80]!r}, which {wrong}")


def _path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise ValueError
    return Path(value)


def _is(value: object) -> str:
    """What was given for a list of strings instead, as the beginning of a sentence; of several the first is enough."""
    if not isinstance(value, list):
        return f"is {_called(value)}, but "
    return next(f"contains {_called(item)}, but " for item in value if not isinstance(item, str))


def _fault(file: Path, name: str, wrong: str) -> str:
    """What is wrong with a setting, where it was read, and what to write there."""
    example = TAKES[name][1]
    variable = _variable(name)
    if variable is None:
        what, write = f"{name} in {file}", f"{name} = {json.dumps(example)}"
    else:
        what, write = f"{variable} in the environment", _assigned(name, example)
    return f"{what} {wrong}. Write {write}, for example."


def _variable(name: str) -> str | None:
    """The environment variable that gives a setting, as it is spelled there; None where none does."""
    return next((variable for variable in os.environ if variable.lower() == f"gate_{name}"), None)


def _assigned(name: str, example: str | int | list[str]) -> str:
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
