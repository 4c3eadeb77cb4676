"""Links within a chart: paths of the page's own server, under an address that Vega takes for a whole one."""

from __future__ import annotations

import re
from typing import Final

ORIGIN: Final = "https://workbench.invalid"
"""What stands before a path in a chart, for Vega completes relative addresses; a drawing is without it."""

PATH: Final = re.compile(r"/(?!/)[!#-;=?-\[\]^_a-~]*")
"""A path that stays on its server, in the characters of addresses: browsers read two slashes, or one and a backslash,
as the beginning of a host.
"""


def path_of(address: str) -> str | None:
    """The path that a link of a chart leads to; None for an address anywhere else."""
    path = address.removeprefix(ORIGIN)
    return path if path != address and PATH.fullmatch(path) else None
