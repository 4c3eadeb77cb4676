"""The client's settings: the service's address, the API key, and the keys that verify records.

Missing arguments come from the environment variables in `VARIABLES`.

The client reads a replaced file again before its next use, so you can rotate keys without a restart.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeVar
from urllib.parse import urlsplit

from gate.client.transport.forks import begin_in_forks
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse_document
from gate.errors import MaterialRefused, OperatorError

# Making a client loads the cryptography.
if TYPE_CHECKING:
    from gate.verify import Trust

T = TypeVar("T")

URL: Final = "GATE_URL"
KEY: Final = "GATE_API_KEY"
KEY_FILE: Final = "GATE_API_KEY_FILE"
REGISTRY: Final = "GATE_KEY_REGISTRY"
SCOPE_HASH: Final = "GATE_SCOPE_HASH"
INTENTS: Final = "GATE_INTENTS"

VARIABLES: Final[Mapping[str, str]] = {
    URL: "The address of the service, such as `https://gate.example`. It must not contain a key.",
    KEY: "The API key. Set this or `GATE_API_KEY_FILE`, not both.",
    KEY_FILE: "A file with the API key. The client reads a replaced file again before its next use.",
    REGISTRY: "A saved copy of the service's receipt keys, the answer of `GET /api/decision/receipt-keys`. The guard "
    "verifies records with these keys.",
    SCOPE_HASH: "The scope in which guarded actions must be decided, as records state it. Default: the scope of the "
    "API key.",
    INTENTS: "The file of the guard's intent store.",
}
"""The environment variables of a client, with what each holds."""

_MAX_FILE: Final = 1024 * 1024
_KEY_LIKE: Final = re.compile(r"dgk_[0-9a-fA-F]")
_KEY: Final = re.compile(r"[!-~]{1,500}")


class Watched(Generic[T]):
    """The content of a file, read again whenever the file was replaced or changed."""

    def __init__(self, path: Path, read: Callable[[bytes], T]) -> None:
        """Takes the file and the function that parses its bytes. It does not read the file yet."""
        self.path: Final = path
        self._read = read
        begin_in_forks(self)

    def begin(self) -> None:
        """Starts without any content."""
        self._lock = threading.Lock()
        self._seen: tuple[tuple[int, ...], T] | None = None

    def value(self) -> T:
        """The current content.

        Raises:
            OperatorError: `FILE_UNREADABLE`.
            MaterialRefused: The content is invalid.
        """
        with self._lock:
            try:
                found = self.path.stat()
                # A file that is renamed into its place has another inode, even within one tick of the clock.
                mark = (found.st_ino, found.st_mtime_ns, found.st_size)
                if self._seen is None or self._seen[0] != mark:
                    with self.path.open("rb") as file:
                        content = file.read(_MAX_FILE + 1)
                    if len(content) > _MAX_FILE:
                        raise OperatorError("FILE_UNREADABLE", f"{self.path} is larger than {_MAX_FILE} bytes.")
                    self._seen = mark, self._read(content)
            except MaterialRefused as error:
                raise MaterialRefused(error.code, f"{self.path} is unusable. {error.message}") from error
            except OSError as error:
                raise OperatorError("FILE_UNREADABLE", f"{self.path} cannot be read: {error.strerror}.") from error
            return self._seen[1]


class Hidden(str):
    """A string whose `repr` hides it, because some traceback printers show the `repr` of local variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        """A placeholder."""
        return "<key>"


class Secret:
    """A key that never appears in the client's `repr` texts, logs and errors."""

    def __init__(self, text: str | None, file: Watched[str] | None) -> None:
        """Takes the key, or the file that contains it."""
        self._text = text
        self._file = file

    def reveal(self) -> Hidden:
        """The key, for sending. Do not store it.

        Raises:
            OperatorError: `API_KEY_MISSING`, `API_KEY_INVALID` or `FILE_UNREADABLE`.
        """
        if self._file is not None:
            return Hidden(self._file.value())
        if self._text is None:
            raise OperatorError("API_KEY_MISSING", f"There is no API key; set {KEY} or {KEY_FILE}, or pass key_file=.")
        return Hidden(self._text)

    def scope_hash(self) -> str | None:
        """The scope of the key, as records state it. None if the key does not contain its scope, as for a proxy's key.

        Raises:
            OperatorError: `API_KEY_MISSING`, `API_KEY_INVALID` or `FILE_UNREADABLE`.
        """
        return _scope_hash(self.reveal())

    def __reduce__(self) -> NoReturn:
        """Refuses pickling."""
        raise TypeError(
            "A client cannot be pickled, because that would copy its API key; create another client instead."
        )

    def __repr__(self) -> str:
        """The source of the key, without the key."""
        return f"<key in {self._file.path}>" if self._file is not None else "<key>" if self._text else "<no key>"


# A key's id begins with the id of its scope: docs/reference/wire-format/record.md, "rulebook_registry".
_SCOPED_KEY: Final = re.compile(r"dgk_([0-9a-f]{16})[0-9a-f]*_.*")


def _scope_hash(key: str) -> str | None:
    scoped = _SCOPED_KEY.fullmatch(key)
    return None if scoped is None else content_hash({"scope": scoped[1]})


def service_url(given: str | None) -> str:
    """The service's address without a trailing slash.

    Raises:
        OperatorError: `SERVICE_URL_INVALID`: the address is missing or invalid, or it contains a key.
    """
    url = given if given is not None else os.environ.get(URL)
    if not url:
        raise OperatorError(
            "SERVICE_URL_INVALID", f"There is no service address; set {URL}, or pass it as the first argument."
        )
    # The refused text may hold a key, so it is not repeated.
    if _KEY_LIKE.search(url):
        raise OperatorError(
            "SERVICE_URL_INVALID",
            "The service's address contains an API key, and addresses end up in logs. Remove it, pass"
            f" the key by {KEY} or {KEY_FILE}, and rotate the key.",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise OperatorError(
            "SERVICE_URL_INVALID",
            "The service's address is not a URL; write it as https://gate.example or http://host:8080.",
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment or "?" in url:
        raise OperatorError(
            "SERVICE_URL_INVALID",
            "The service's address must not contain a user, password, query or fragment; pass the API"
            f" key by {KEY} or {KEY_FILE}.",
        )
    return url.rstrip("/")


def api_key(key: str | None, key_file: str | os.PathLike[str] | None) -> Secret:
    """The API key from the arguments or the environment.

    Raises:
        OperatorError: `API_KEY_INVALID`: there are two keys, or the text is not a key.
    """
    if key is not None and key_file is not None:
        raise OperatorError("API_KEY_INVALID", "Pass the API key or a file that contains it, not both.")
    if key is None and key_file is None:
        key, key_file = os.environ.get(KEY) or None, os.environ.get(KEY_FILE) or None
        if key is not None and key_file is not None:
            raise OperatorError("API_KEY_INVALID", f"Set {KEY} or {KEY_FILE}, not both.")
    if key_file is not None:
        return Secret(None, Watched(Path(key_file), _key_in))
    return Secret(None if key is None else _checked(key, "The API key"), None)


def metrics_token(token_file: str | os.PathLike[str] | None) -> Secret | None:
    """The metrics token from a file, or None without a file."""
    return None if token_file is None else Secret(None, Watched(Path(token_file), _key_in))


def scope(given: str | None, key: Secret) -> Callable[[], str | None]:
    """Returns a function that returns the scope that must decide, as records state it, or None for any scope.

    The scope comes from the argument, from the environment, or from the key.
    """
    named = given or os.environ.get(SCOPE_HASH) or None
    return key.scope_hash if named is None else lambda: named


def trust(registry: Trust | Mapping[str, object] | str | os.PathLike[str] | None) -> Callable[[], Trust]:
    """Returns a function that returns the pinned keys, which verify records.

    Args:
        registry: The receipt keys: the path of a saved registry, its document, or a `Trust`.

    Raises:
        MaterialRefused: `KEY_REGISTRY_INVALID` or `PUBLIC_KEY_INVALID`, for a document.
    """
    from gate.verify import Trust

    if isinstance(registry, str | os.PathLike):
        return Watched(Path(registry), _trust_in).value
    if isinstance(registry, Mapping):
        registry = _trust_of(dict(registry))
    known = registry or Trust()
    return lambda: known


def is_pinned(registry: Trust | Mapping[str, object] | str | os.PathLike[str] | None) -> bool:
    """Whether any key is pinned."""
    from gate.verify import Trust

    return registry is not None and registry != Trust()


def _trust_of(document: Mapping[str, object]) -> Trust:
    from gate.proof.signing import load_registry
    from gate.verify import Trust

    return Trust(receipt_keys=load_registry(document), source="registry")


def _trust_in(content: bytes) -> Trust:
    try:
        return _trust_of(parse_document(content))
    except MaterialRefused as error:
        why = error.message.replace("The body", "It", 1)
        raise MaterialRefused("KEY_REGISTRY_INVALID", why) from error


def _key_in(content: bytes) -> str:
    try:
        return _checked(content.decode("ascii").strip(), "The file's content")
    except UnicodeDecodeError as error:
        raise MaterialRefused(
            "API_KEY_INVALID", "The file does not contain an API key: it is not plain text."
        ) from error


def _checked(key: str, what: str) -> str:
    if not _KEY.fullmatch(key):
        # The text itself may be a key with a stray blank.
        raise OperatorError("API_KEY_INVALID", f"{what} is not an API key: a key is one word of printable characters.")
    return key
