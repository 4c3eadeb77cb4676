"""The demo scope of a first start: plan unlimited, a key in the home directory, and the product's own rulebooks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from gate import bundles
from gate.errors import AccessRefused, OperatorError
from gate.ids import utc_now
from gate.instance import Instance
from gate.ledger.access import FULL_ACCESS, Scope

SCOPE: Final = "demo"
KEY_FILE: Final = "demo.key"


def demo_key_file(instance: Instance) -> Path:
    """The file with a working key of the demo scope; scope, key and rulebooks are made where they are missing."""
    scope = _scope(instance)
    for rulebook in bundles.active_rulebooks():
        instance.gate().register(scope.scope_id, rulebook)
    file = instance.settings.home / KEY_FILE
    if not _works(instance, file):
        key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
        file.unlink(missing_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{key}\n")
    return file


def _scope(instance: Instance) -> Scope:
    directory = instance.ledger.directory
    try:
        return directory.scope(SCOPE)
    except OperatorError:
        return directory.create_scope(SCOPE, "unlimited", utc_now())


def _works(instance: Instance, file: Path) -> bool:
    try:
        instance.ledger.directory.authenticate(file.read_text().strip(), utc_now())
    except (FileNotFoundError, AccessRefused):
        return False
    return True
