"""What a log costs on S3 in a month: the model of the specification's appendix, for any traffic.

The appendix reckons with 100 GB a day kept for 7 days, a PUT per 4 MB and 100,000 GETs a day: about
$21 for S3, and about $111 with three small brokers. Here its figures are the terms of a model:

* Stored is what retention leaves of the daily traffic, priced by the GB (10^9 bytes) and month.
* **Every** PUT counts: WAL objects, segments, their indexes, merged segments with theirs, and those
  that are tried again. LIST is priced like PUT, and too rare here to matter.
* GETs are what readers fetch from the bucket, a block at a time; whoever follows the end of the log
  is served from the brokers' memory and costs none.
* Transfer within a region is free, and a month has 30 days.

How many WAL objects there are is a choice between latency and cost, hence two profiles. The one for
latency writes two a second and broker, however full they are, as long as there is something to
write. The one for cost writes as few as keep all PUTs within the budget of the appendix, and so
waits longer, and makes larger objects.

Pure: what the traffic is, is measured elsewhere.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from kafscale.observability.prices import DAY_S, GB, MONTH_DAYS, Prices

MB: Final = 10**6
MIB: Final = 1024 * 1024

WAL_PUTS_PER_SECOND: Final = 2.0
"""Of a broker that is busy, by default."""
WAL_PUTS_PER_SECOND_MIN: Final = 1 / 3600
"""Of a broker that waits as long as its settings allow."""
WAL_BYTES_MAX: Final = 4 * MIB
"""At which size a WAL object is written whatever the budget, by default."""

BUDGET_PUTS_PER_DAY: Final = 25_000
"""What the appendix reckons with: a PUT per 4 MB of 100 GB."""
BUDGET_BYTES_PER_PUT: Final = 4 * MB

READ_BYTES: Final = 4 * MIB
"""How much one GET of a broker fetches."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What comes in, how long it stays, and who reads it."""

    bytes_per_day: float
    stored_bytes: float
    """Once retention takes as much as comes in."""
    records_per_day: float = float("inf")
    """No WAL object has less than one."""
    brokers: int = 1
    segment_bytes: float = 100 * MIB
    """The size of a segment, on average."""
    merged_bytes: float = 0.0
    """The size of the segments that others are merged into; 0 where nothing is merged."""
    has_indexes: bool = True
    retried: float = 0.0
    """Which share of PUTs is made again."""
    gets_per_day: float | None = None
    """Where that is known; else it follows from what is read."""
    cold_reads: float = 1.0
    """How often a byte is read from the bucket, on average."""


class Puts(msgspec.Struct, frozen=True, rename="camel"):
    """How many there are a day, by what they write."""

    wal: float
    segments: float
    indexes: float
    merges: float
    retries: float

    @property
    def total(self) -> float:
        return self.wal + self.segments + self.indexes + self.merges + self.retries


class Bill(msgspec.Struct, frozen=True, rename="camel"):
    """What a month costs, in dollars."""

    storage: float
    puts: float
    gets: float
    brokers: float
    transfer: float = 0.0

    @property
    def s3(self) -> float:
        return self.storage + self.puts + self.gets + self.transfer

    @property
    def total(self) -> float:
        return self.s3 + self.brokers


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    """A way to set the brokers up, and what comes of it."""

    name: str
    puts_per_day: Puts
    gets_per_day: float
    wal_interval_seconds: float | None
    """How long a broker waits between two WAL objects; None where there are none."""
    wal_object_bytes: float
    """How large these are, on average."""
    is_within_budget: bool
    bill: Bill


def bill(
    *, stored_bytes: float, puts_per_day: float, gets_per_day: float, brokers: int, prices: Prices
) -> Bill:
    """What is to be paid for a month.

    >>> bill(stored_bytes=700 * GB, puts_per_day=25_000, gets_per_day=100_000, brokers=3,
    ...      prices=Prices()).s3
    21.05
    """
    return Bill(
        storage=stored_bytes / GB * prices.storage_gb_month,
        puts=puts_per_day * MONTH_DAYS / 1000 * prices.put_thousand,
        gets=gets_per_day * MONTH_DAYS / 1000 * prices.get_thousand,
        brokers=brokers * prices.broker_month,
    )


def budget(traffic: Traffic) -> float:
    """How many PUTs a day the appendix has for such traffic; little traffic has as many as its."""
    return max(BUDGET_PUTS_PER_DAY, traffic.bytes_per_day / BUDGET_BYTES_PER_PUT)


def latency(traffic: Traffic, prices: Prices) -> Profile:
    """Producers are answered as soon as the default settings allow."""
    full = traffic.bytes_per_day / WAL_BYTES_MAX
    wal = max(traffic.brokers * DAY_S * WAL_PUTS_PER_SECOND, full)
    return profile("latency", wal, traffic, prices)


def cost(traffic: Traffic, prices: Prices) -> Profile:
    """Producers wait for as long as the budget wants them to, and never more than an hour."""
    left = (budget(traffic) - _puts(0, traffic).total) / (1 + traffic.retried)
    wal = max(left, traffic.brokers * DAY_S * WAL_PUTS_PER_SECOND_MIN)
    return profile("cost", wal, traffic, prices)


def profile(name: str, wal_puts_per_day: float, traffic: Traffic, prices: Prices) -> Profile:
    """What so many WAL objects a day, and all that follows from the traffic, make."""
    wal_puts_per_day = min(wal_puts_per_day, traffic.records_per_day)
    puts = _puts(wal_puts_per_day, traffic)
    gets = _gets(traffic)
    has_wal = wal_puts_per_day > 0
    return Profile(
        name=name,
        puts_per_day=puts,
        gets_per_day=gets,
        wal_interval_seconds=traffic.brokers * DAY_S / wal_puts_per_day if has_wal else None,
        wal_object_bytes=traffic.bytes_per_day / wal_puts_per_day if has_wal else 0.0,
        # What was divided to meet the budget exactly must not miss it by a rounding.
        is_within_budget=puts.total <= budget(traffic) * (1 + 1e-9),
        bill=bill(
            stored_bytes=traffic.stored_bytes,
            puts_per_day=puts.total,
            gets_per_day=gets,
            brokers=traffic.brokers,
            prices=prices,
        ),
    )


def _puts(wal: float, traffic: Traffic) -> Puts:
    per_segment = 2 if traffic.has_indexes else 1
    segments = traffic.bytes_per_day / traffic.segment_bytes
    indexes = segments * (per_segment - 1)
    merges = (
        traffic.bytes_per_day / traffic.merged_bytes * per_segment if traffic.merged_bytes else 0
    )
    retries = (wal + segments + indexes + merges) * traffic.retried
    return Puts(wal=wal, segments=segments, indexes=indexes, merges=merges, retries=retries)


def _gets(traffic: Traffic) -> float:
    """A GET a block of what is read, and one for the index of each segment."""
    if traffic.gets_per_day is not None:
        return traffic.gets_per_day
    read = traffic.bytes_per_day * traffic.cold_reads
    blocks = read / min(READ_BYTES, traffic.segment_bytes)
    indexes = read / traffic.segment_bytes if traffic.has_indexes else 0.0
    return blocks + indexes
