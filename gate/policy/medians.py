"""The 95% interval of a median: the two sorted values between which it lies.

    median_ranks(100)     (40, 61): between the 40th and the 61st of 100 values

It only assumes that values were drawn independently (Thompson, "On confidence ranges for the median and other
expectation distributions", Annals of Mathematical Statistics 7, 1936).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_ONE_IN: Final = 40
_Z: Final = NormalDist().inv_cdf(1 - 1 / _ONE_IN)
# From here on the normal curve gives the same ranks, or ranks one farther out.
_MANY: Final = 1000


def lower_rank(values: int) -> int:
    """The rank of the lower median, from 1: of four values the second."""
    return (values + 1) // 2


@lru_cache(maxsize=4096)
def median_ranks(values: int) -> tuple[int, int] | None:
    """The ranks, from 1, of the values between which the median lies; None of fewer than six, which cannot tell.

    Args:
        values: How many values there are.
    """
    low = math.floor((values - _Z * math.sqrt(values)) / 2) if values > _MANY else _exact(values)
    return None if low < 1 else (low, values + 1 - low)


def _exact(values: int) -> int:
    """The highest rank below which the median lies with a chance of 2.5% at most."""
    below, rank, most = 0, 0, 2**values // _ONE_IN
    while below + math.comb(values, rank) <= most:
        below += math.comb(values, rank)
        rank += 1
    return rank
