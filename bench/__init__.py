"""Benchmarks. They measure and report times, and fail only for a wrong answer.

    parts        the measurements, one module each
    measure      measures subjects in turn, round by round, and computes the figures of each
    subjects     the gate and the bare route under load; `servers`, `load` and `samples` belong to them
    policies     rulebooks of a given size
    lakes, stored    large lakes and ledgers, built fast
    dashboard    the dashboard over a large lake, and browsers and sessions that use it
    structure    the structure of the code: rooms, floors, arrows, `Any`

`python -m bench [part ...]` runs them; `--quick` gives rough figures.
"""

from __future__ import annotations

import os

# Some helpers of the tests are used here, and importing them would leave one thread to the servers that are measured.
os.environ.setdefault("POLARS_MAX_THREADS", str(os.cpu_count() or 1))
