"""The prices of S3, for the cost report and the dashboards.

List prices of the region us-east-1 in dollars, from the appendix of the specification. The report
accepts other prices as options.
"""

from dataclasses import dataclass
from typing import Final

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
