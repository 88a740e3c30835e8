"""What S3 charges: the one place for prices, for the cost report and the dashboards alike.

List prices of the region us-east-1, in dollars, as the specification's appendix has them. Where
other prices hold, the report takes them as options; the dashboards show what these say. It is here,
below all the rooms that reckon with it, because both of them may come down here.
"""

from dataclasses import dataclass
from typing import Final

GB: Final = 10**9
"""As those reckon who charge for it."""
DAY_S: Final = 86_400
MONTH_DAYS: Final = 30

CHARGED_AS_PUT: Final = ("put", "list")
"""Requests to the object store, by the names that metrics have for them; deletions are free."""
CHARGED_AS_GET: Final = ("get", "get_range", "get_suffix", "head")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """In dollars; by default those of the region us-east-1 that the appendix names."""

    storage_gb_month: float = 0.023
    put_thousand: float = 0.005
    get_thousand: float = 0.0004
    broker_month: float = 30.0
