"""The advisory upstream that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gate.errors import OperatorError
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.upstream import Upstream

if TYPE_CHECKING:
    from pathlib import Path

    from gate.instance.settings import Settings

_LONGEST_KEY: Final = 4096


def open_advisor(settings: Settings) -> Advisor:
    """What answers the advisory modes of an instance; one that refuses all where no upstream is set.

    Raises:
        OperatorError: ADVISORY_SETTINGS_INVALID: the settings are not complete, or the key cannot be used.
    """
    if not settings.advisory_url:
        if settings.advisory_model or settings.advisory_key_file is not None:
            raise _invalid("advisory_model and advisory_key_file need advisory_url; set it, or remove them.")
        return Advisor(None)
    if not settings.advisory_model.isprintable():
        raise _invalid("advisory_model must be of printable characters, as the server spells it.")
    if not settings.advisory_model:
        raise _invalid("advisory_url is set without advisory_model; set it to a model that the server has.")
    _require_address(settings.advisory_url)
    key = None if settings.advisory_key_file is None else _key(settings.advisory_key_file)
    return Advisor(
        Upstream(settings.advisory_url, settings.advisory_model, float(settings.advisory_timeout_seconds), key)
    )


def advisory_state(settings: Settings) -> str:
    """How the advisory modes stand: ready, unconfigured, or unavailable where the settings cannot be used. Nobody is
    asked.
    """
    try:
        return "ready" if open_advisor(settings).ready else "unconfigured"
    except OperatorError:
        return "unavailable"


def _require_address(url: str) -> None:
    """Requires that requests can be sent to an address of the form that the setting has."""
    example = "Write https://models.example.com/v1, for example."
    if not (url.isascii() and url.isprintable()):
        raise _invalid(f"advisory_url must be of printable ASCII characters; write its host in Punycode. {example}")
    # Shown nowhere: what stands in the place of a port may be a password.
    try:
        address = urlsplit(url)
        usable = bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _invalid(f"advisory_url must have a host, and as its port a number from 1 to 65535 or none. {example}")


def _key(file: Path) -> str:
    try:
        key = file.read_bytes().strip()
    except OSError as error:
        raise _invalid(f"advisory_key_file {file} cannot be read: {error.strerror}.") from error
    # Anything else could end the header that it is sent in.
    if not key or len(key) > _LONGEST_KEY or not all(0x21 <= byte <= 0x7E for byte in key):
        raise _invalid(f"advisory_key_file {file} must hold one key of printable ASCII characters without spaces.")
    return key.decode()


def _invalid(what: str) -> OperatorError:
    return OperatorError("ADVISORY_SETTINGS_INVALID", what)
