"""The advisory upstream that the settings name."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gate.errors import OperatorError
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.upstream import Upstream

if TYPE_CHECKING:
    from gate.instance.settings import Settings

_LONGEST_KEY: Final = 4096
_ENDPOINT: Final = "/chat/completions"


def open_advisor(settings: Settings) -> Advisor:
    """What answers the advisory modes of an instance; one that refuses all where no upstream is set.

    Raises:
        OperatorError: `ADVISORY_SETTINGS_INVALID`: the settings are not complete, or cannot be used.
    """
    if not settings.advisory_url:
        if settings.advisory_model or settings.advisory_key_file is not None:
            raise _invalid("advisory_model and advisory_key_file require advisory_url. Set it, or remove them.")
        return Advisor(None)
    if not settings.advisory_model:
        raise _invalid("advisory_url is set without advisory_model. Set advisory_model to a model that the server has.")
    if not settings.advisory_model.isprintable() or settings.advisory_model.strip() != settings.advisory_model:
        raise _invalid(
            "advisory_model must consist of printable characters, without a space at its beginning or end. "
            "Write it as the server spells it."
        )
    _require_address(settings.advisory_url)
    _require_authorities(settings.advisory_url)
    key = None if settings.advisory_key_file is None else _key(settings.advisory_key_file)
    return Advisor(
        Upstream(settings.advisory_url, settings.advisory_model, float(settings.advisory_timeout_seconds), key)
    )


def advisory_state(settings: Settings) -> tuple[str, str | None]:
    """How the advisory modes stand: ready, unconfigured, or unavailable where the settings cannot be used, and then
    why. The upstream is not called.
    """
    try:
        return ("ready" if open_advisor(settings).ready else "unconfigured"), None
    except OperatorError as error:
        return "unavailable", error.message


def _require_address(url: str) -> None:
    """Requires that requests can be sent to an address of the form that the setting has."""
    example = "Write https://models.example.com/v1, for example."
    if not (url.isascii() and url.isprintable()):
        raise _invalid(
            f"advisory_url must consist of printable ASCII characters. Write its host in Punycode. {example}"
        )
    # Shown nowhere: what stands in the place of a port may be a password.
    try:
        address = urlsplit(url)
        usable = bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _invalid(f"advisory_url must have a host, and either no port or one from 1 to 65535. {example}")
    if address.path.lower().endswith(_ENDPOINT):
        raise _invalid(
            f"advisory_url must not end in {_ENDPOINT}, which the gate appends. Remove {_ENDPOINT}. {example}"
        )


def _require_authorities(url: str) -> None:
    """Requires that the file of authorities that the environment names can be used: TLS passes over one that cannot,
    and then trusts no certificate at all.
    """
    file = os.environ.get("SSL_CERT_FILE")
    if not file or not url.startswith("https:"):
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except ssl.SSLError as error:
        raise _invalid(
            f"SSL_CERT_FILE is {file}, which contains no usable certificate in PEM. {_AUTHORITIES}"
        ) from error
    except OSError as error:
        raise _invalid(f"SSL_CERT_FILE is {file}, which cannot be read: {error.strerror}. {_AUTHORITIES}") from error


_AUTHORITIES: Final = "Set it to a PEM file of certificate authorities, or unset SSL_CERT_FILE."


def _key(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            if not _is_private(opened.fileno()):
                raise _invalid(
                    f"advisory_key_file {file} can be read by other users of this machine. Make the user of the "
                    f"service its owner, and run chmod 600 {file} as that user."
                )
            key = opened.read().strip()
    except OSError as error:
        raise _invalid(f"advisory_key_file {file} cannot be read: {error.strerror}.") from error
    # Anything else could end the header that it is sent in.
    if not key or len(key) > _LONGEST_KEY or not all(0x21 <= byte <= 0x7E for byte in key):
        raise _invalid(
            f"advisory_key_file {file} must hold one key of at most {_LONGEST_KEY:,} printable ASCII characters "
            "without spaces."
        )
    return key.decode()


def _is_private(descriptor: int) -> bool:
    """Whether an open file is kept from the other users of this machine."""
    found = os.fstat(descriptor)
    # What Kubernetes and Docker mount into a container may have any mode; only the container sees it. A system that
    # systemd made read-only for the service is still one filesystem, and others read it as before.
    read_only = bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)
    mounted = read_only and found.st_dev != Path("/").stat().st_dev
    return may_hold_key(found.st_mode, found.st_uid, mounted=mounted)


def may_hold_key(mode: int, owner: int, *, mounted: bool) -> bool:
    """Whether a file may hold a key: others cannot read it, or only the group that root gave it to, or it was mounted
    as a secret.

    Args:
        mode: The mode of the file.
        owner: The id of its owner.
        mounted: Whether it lies on a read-only filesystem other than that of the root directory.
    """
    others = mode & (stat.S_IROTH if owner == 0 else stat.S_IRGRP | stat.S_IROTH)
    return mounted or not others


def _invalid(what: str) -> OperatorError:
    return OperatorError("ADVISORY_SETTINGS_INVALID", what)
