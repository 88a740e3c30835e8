"""The monthly cost of a log on S3: the model of the specification's appendix, for any traffic.

The appendix assumes 100 GB a day with a retention of 7 days, a PUT per 4 MB and 100,000 GETs a day:
about $21 for S3, and about $111 with three small brokers. The model generalizes it:

* Storage is what retention keeps of the daily traffic, priced per GB (10^9 bytes) and month.
* **Every** PUT counts: WAL objects, segments, indexes, merged segments with their indexes, and
  retries. LIST costs the same as PUT, and is too rare to matter.
* GETs are for blocks that brokers fetch from the bucket. Consumers at the end of the log are served
  from the memory of brokers, and cause none.
* Transfer within a region is free, and a month has 30 days.

The number of WAL objects is a trade-off between latency and cost, hence two profiles. The latency
profile writes two objects per second and broker, however small, while there is traffic. The cost
profile writes as few as keep all PUTs within the budget of the appendix: objects are larger, and
producers wait longer.

Pure: the traffic is measured elsewhere.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from kafscale.admin.cluster.cost import DAY_S, GB, MONTH_DAYS, Prices
from kafscale.config.sections.storage import Storage
from kafscale.storage.read.block import BLOCK_BYTES

MB: Final = 10**6
_DEFAULTS: Final = Storage()

WAL_PUTS_PER_SECOND: Final = _DEFAULTS.wal_puts_per_second
"""Of a busy broker with default settings."""
WAL_PUTS_PER_SECOND_MIN: Final = 1 / 3600
"""Of a broker with the longest allowed flush interval."""
WAL_BYTES_MAX: Final = _DEFAULTS.segment_buffer_bytes
"""The default size at which a WAL object is flushed regardless of the rate."""

BUDGET_PUTS_PER_DAY: Final = 25_000
"""As in the appendix: a PUT per 4 MB of 100 GB."""
BUDGET_BYTES_PER_PUT: Final = 4 * MB


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Incoming, stored and read data."""

    bytes_per_day: float
    stored_bytes: float
    """Once retention deletes as much as arrives."""
    records_per_day: float = float("inf")
    """Limits the number of WAL objects."""
    brokers: int = 1
    segment_bytes: float = _DEFAULTS.segment_bytes
    """The average size of a segment."""
    merged_bytes: float = 0.0
    """The size of merged segments; 0 if segments are not merged."""
    has_indexes: bool = True
    retried: float = 0.0
    """The share of PUTs that are retried."""
    gets_per_day: float | None = None
    """If known; otherwise it is computed from `cold_reads`."""
    cold_reads: float = 1.0
    """How often a byte is read from the bucket on average."""


class Puts(msgspec.Struct, frozen=True, rename="camel"):
    """PUTs per day, by object type."""

    wal: float
    segments: float
    indexes: float
    merges: float
    retries: float

    @property
    def total(self) -> float:
        return self.wal + self.segments + self.indexes + self.merges + self.retries


class Bill(msgspec.Struct, frozen=True, rename="camel"):
    """The cost of a month in dollars."""

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
    """A setting of brokers, and its cost."""

    name: str
    puts_per_day: Puts
    gets_per_day: float
    wal_interval_seconds: float | None
    """The time between two WAL objects of a broker; None if there are none."""
    wal_object_bytes: float
    """The average size of WAL objects."""
    is_within_budget: bool
    bill: Bill


def bill(
    *, stored_bytes: float, puts_per_day: float, gets_per_day: float, brokers: int, prices: Prices
) -> Bill:
    """Return the cost of a month.

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
    """Return the budget of PUTs per day for the traffic, at least that of the appendix."""
    return max(BUDGET_PUTS_PER_DAY, traffic.bytes_per_day / BUDGET_BYTES_PER_PUT)


def latency(traffic: Traffic, prices: Prices) -> Profile:
    """Return the profile with the lowest latency that the default settings allow."""
    full = traffic.bytes_per_day / WAL_BYTES_MAX
    wal = max(traffic.brokers * DAY_S * WAL_PUTS_PER_SECOND, full)
    return profile("latency", wal, traffic, prices)


def cost(traffic: Traffic, prices: Prices) -> Profile:
    """Return the profile within the PUT budget, with a flush interval of at most an hour."""
    remaining = (budget(traffic) - _puts(0, traffic).total) / (1 + traffic.retried)
    wal = max(remaining, traffic.brokers * DAY_S * WAL_PUTS_PER_SECOND_MIN)
    return profile("cost", wal, traffic, prices)


def profile(name: str, wal_puts_per_day: float, traffic: Traffic, prices: Prices) -> Profile:
    """Return the profile for a number of WAL objects per day."""
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
        # A profile computed to meet the budget exactly must not exceed it by rounding.
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
    """One GET for each block that is read, and one for the index of each segment."""
    if traffic.gets_per_day is not None:
        return traffic.gets_per_day
    read = traffic.bytes_per_day * traffic.cold_reads
    blocks = read / min(BLOCK_BYTES, traffic.segment_bytes)
    indexes = read / traffic.segment_bytes if traffic.has_indexes else 0.0
    return blocks + indexes
