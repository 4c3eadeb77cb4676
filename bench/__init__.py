"""Benchmarks: they measure and report, and never judge a time. What they fail for is a wrong answer.

    parts        what is measured, a module each
    measure      subjects in turn, round by round, and the figures of each
    subjects     the gate and the bare route under load; `servers`, `load` and `samples` serve them
    policies     rulebooks of a given size
    lakes, stored    large lakes and ledgers, made fast
    dashboard    the dashboard over a large lake, and browsers and sessions that use it
    structure    how the house is built: rooms, floors, arrows, `Any`

`python -m bench [part ...]` runs them; `--quick` gives rough figures.
"""

from __future__ import annotations

import os

# Some helpers of the tests are used here, and importing them would leave one thread to the servers that are measured.
os.environ.setdefault("POLARS_MAX_THREADS", str(os.cpu_count() or 1))
