"""A process that exports and compacts a lake in small steps until it is told to end: `python -m
tests.workbench.exporting HOME`. It says on stdout that it begins, and each time that it has come to the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from workbench.lake import compaction
from workbench.lake.compaction import Compactor
from workbench.lake.export import Exporter
from workbench.lake.lease import lease
from workbench.lake.manifest import load


def main() -> None:
    """Runs until stdin ends."""
    # A small lake is to have many files.
    compaction.STEP, compaction.FULL = 20, 15  # type: ignore[misc]
    instance = open_instance(load_settings(Path(sys.argv[1])))
    lake = instance.settings.lake_directory
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    for line in sys.stdin:
        with lease(lake, patience=30):
            for scope in instance.ledger.tail.scopes():
                for _ in Exporter(instance.ledger, lake, batch=7).export(scope):
                    pass
                manifest = load(lake, scope.scope_id)
                for _ in () if manifest is None else Compactor(lake).compact(manifest, many=2):
                    pass
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
