"""What the object store costs a day, of what is measured: bytes that are kept, and requests. Pure.

The law: prices are list prices, and stand in `observability.prices` alone. Requests of brokers are
reckoned, and those of nobody else: what Spark reads is on its own bill.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.observability.prices import (
    CHARGED_AS_GET,
    CHARGED_AS_PUT,
    DAY_S,
    GB,
    MONTH_DAYS,
    Prices,
)

CURRENCY: Final = "USD"


class Cost(msgspec.Struct, frozen=True):
    """In dollars a day, if it goes on like this."""

    storage_per_day: float
    requests_per_day: float | None
    """None before it is known how many there are."""
    total_per_day: float | None
    currency: str
    basis: str


def cost(
    stored_bytes: float,
    per_second: Mapping[str, float] | None,
    *,
    is_charged: bool,
    prices: Prices | None = None,
) -> Cost:
    """What a day costs; `per_second` has the requests, by the names that metrics have for them.

    `is_charged` says whether there is a bucket at all, rather than a directory.

    >>> told = cost(700 * GB, {"put": 25_000 / DAY_S, "delete": 9.0}, is_charged=True)
    >>> round(told.storage_per_day, 4), round(told.requests_per_day, 4)
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
        "What the topics keep now and what the brokers have asked of the object store in the last"
        " minutes, at list prices of us-east-1:"
        f" ${prices.storage_gb_month:g} a GB and month, ${prices.put_thousand:g} a thousand PUTs,"
        f" ${prices.get_thousand:g} a thousand GETs."
    )
    if is_charged:
        return measured
    return f"{measured} The records are on a local disk, which costs nothing of this."
