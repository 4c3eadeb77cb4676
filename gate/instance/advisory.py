"""The advisory upstream that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    if not settings.advisory_model:
        raise _invalid("advisory_url is set without advisory_model; set it to a model that the server has.")
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
