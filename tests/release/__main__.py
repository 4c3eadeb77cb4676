"""`python -m tests.release`, or `make dist`: builds and checks what a release publishes."""

from __future__ import annotations

import sys

from tests.release.dist import make_dist

if __name__ == "__main__":
    sys.exit(make_dist())
