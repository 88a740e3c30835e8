"""Quantiles of histograms that are told as buckets, as Prometheus reckons them. Pure."""

from collections.abc import Sequence
from math import inf

Buckets = Sequence[tuple[float, float]]
"""Bounds, from the lowest on, and how many values are not above each; the last has no bound."""


def quantile(share: float, buckets: Buckets) -> float | None:
    """The value below which a share of the values lies; None where there are none.

    Within a bucket, values are taken to be spread evenly; what is above the last finite bound
    counts as that bound.

    >>> quantile(0.5, ((1.0, 2), (2.0, 4), (inf, 4)))
    1.0
    >>> quantile(0.75, ((1.0, 2), (2.0, 4), (inf, 4)))
    1.5
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = share * buckets[-1][1]
    below, count_below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank and count > count_below:
            if bound == inf:
                return below
            return below + (bound - below) * (rank - count_below) / (count - count_below)
        below, count_below = bound, count
    return below
