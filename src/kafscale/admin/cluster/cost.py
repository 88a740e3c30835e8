"""The prices of S3, and the cost of the object store per day by stored bytes and requests. Pure.

Prices are list prices of the region us-east-1 in dollars, from the appendix of the specification,
also for the dashboards and the cost report, which accepts other prices as options. Only requests of
brokers are counted; requests of Spark jobs are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

CURRENCY: Final = "USD"

GB: Final = 10**9
"""A decimal gigabyte, as used in prices."""
DAY_S: Final = 86_400
MONTH_DAYS: Final = 30

CHARGED_AS_PUT: Final = ("put", "list")
"""Operations by their metric labels; deletions are free."""
CHARGED_AS_GET: Final = ("get", "get_range", "get_suffix", "head")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in dollars; the defaults are those of us-east-1."""

    storage_gb_month: float = 0.023
    put_thousand: float = 0.005
    get_thousand: float = 0.0004
    broker_month: float = 30.0


class Cost(msgspec.Struct, frozen=True, rename="camel"):
    """The cost of the object store per day at list prices, in US dollars, at the current rate."""

    storage_per_day: float
    requests_per_day: float | None
    """None until the request rate is known."""
    total_per_day: float | None
    currency: str
    basis: str
    """A sentence that says what was measured, and at which prices."""


def cost(
    stored_bytes: float,
    per_second: Mapping[str, float] | None,
    *,
    is_charged: bool,
    prices: Prices | None = None,
) -> Cost:
    """Compute the cost per day.

    `per_second` has request rates by the operation names of the metrics. `is_charged` is False if
    records are in a directory instead of a bucket.

    >>> result = cost(700 * GB, {"put": 25_000 / DAY_S, "delete": 9.0}, is_charged=True)
    >>> round(result.storage_per_day, 4), round(result.requests_per_day, 4)
    (0.5367, 0.125)
    """
    prices = prices or Prices()
    storage = stored_bytes / GB * prices.storage_gb_month / MONTH_DAYS
    requests = None
    if per_second is not None:
        puts = sum(per_second.get(name, 0.0) for name in CHARGED_AS_PUT) * DAY_S
        gets = sum(per_second.get(name, 0.0) for name in CHARGED_AS_GET) * DAY_S
        requests = puts / 1000 * prices.put_thousand + gets / 1000 * prices.get_thousand
    return Cost(
        storage_per_day=storage,
        requests_per_day=requests,
        total_per_day=None if requests is None else storage + requests,
        currency=CURRENCY,
        basis=_basis(prices, is_charged=is_charged),
    )


def _basis(prices: Prices, *, is_charged: bool) -> str:
    measured = (
        "The bytes that topics store now and the object store requests of brokers in the last"
        " minutes, at list prices of us-east-1:"
        f" ${prices.storage_gb_month:g} a GB and month, ${prices.put_thousand:g} a thousand PUTs,"
        f" ${prices.get_thousand:g} a thousand GETs."
    )
    if is_charged:
        return measured
    return f"{measured} Records are on a local disk, which is not charged."
