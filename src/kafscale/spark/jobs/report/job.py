"""The report job: storage, growth and cost of each topic, and the lag of consumer groups.

    report = run(spark, ReportSettings(location=Location.parse("s3://records/production")))

The bucket is listed once, tasks measure the segments (`inventory`), and everything else is computed
from that. Bytes per day are computed from the timestamps of records over at most a week; less than
a day of traffic counts as a day, so that a burst is not extrapolated. The model in `cost` prices
what retention will keep. The caller queries the lag of groups from a cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from kafscale.admin.cluster.cost import GB, Prices
from kafscale.errors import UnknownTopicError
from kafscale.spark.jobs.report import cost, inventory
from kafscale.spark.jobs.report.cost import Profile, Traffic
from kafscale.spark.jobs.report.inventory import (
    DAY_MS,
    PartitionUsage,
    SegmentItem,
    WalActivity,
    wal_activity,
)
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.storage.topic_catalog import CatalogTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

RATE_DAYS: Final = 7
"""The number of days over which bytes per day are averaged."""

_EPOCH: Final = date(1970, 1, 1)

RunTasks = Callable[
    [Sequence[tuple[SegmentItem, ...]], Callable[[tuple[SegmentItem, ...]], list[PartitionUsage]]],
    list[list[PartitionUsage]],
]
"""Calls a function for each item, and returns the results in order."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What to report on, and the parameters of the cost model."""

    location: Location
    topics: tuple[str, ...] = ()
    """Topic names; empty for all topics."""
    prices: Prices = field(default_factory=Prices)
    brokers: int | None = None
    """The number of brokers; None for those that have written during the last day."""
    retention_days: float = 7.0
    """Of topics without `retention.ms`."""
    merged_bytes: float = 0.0
    cold_reads: float = 1.0
    gets_per_day: float | None = None


class TopicReport(msgspec.Struct, frozen=True, rename="camel"):
    """The usage of a topic."""

    topic: str
    partitions: int
    records: int
    stored_bytes: int
    """Segments, indexes and WAL."""
    segments: int
    segment_bytes: int
    index_bytes: int
    wal_bytes: int
    compression: float | None
    """The ratio of uncompressed to stored bytes; None if no segment was sampled."""
    codecs: dict[str, float]
    """Share of bytes by codec."""
    oldest_ms: int | None
    newest_ms: int | None
    skew: float
    """The size of the largest partition relative to the average."""
    bytes_per_day: float
    retention_days: float | None
    """None if there is no time limit."""
    expected_bytes: float
    """Stored bytes once retention deletes as much as arrives."""
    storage_dollars: float
    """The current cost of storage per month."""
    days: dict[str, int]
    """Bytes by date."""

    @property
    def mean_segment_bytes(self) -> float:
        return self.segment_bytes / self.segments if self.segments else 0.0

    @property
    def records_per_day(self) -> float:
        return self.bytes_per_day * self.records / self.stored_bytes if self.stored_bytes else 0.0

    @property
    def wal_share(self) -> float:
        return self.wal_bytes / self.stored_bytes if self.stored_bytes else 0.0


class SegmentSizes(msgspec.Struct, frozen=True, rename="camel"):
    """The number of segments below a size and not below half of it."""

    below_bytes: int
    segments: int


class GroupLag(msgspec.Struct, frozen=True, rename="camel"):
    """The lag of a consumer group in a topic."""

    group: str
    topic: str
    lag: int
    partitions: int
    """The number of partitions with a committed offset."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The report on a namespace."""

    location: str
    time_ms: int
    brokers: int
    topics: list[TopicReport]
    sizes: list[SegmentSizes]
    profiles: list[Profile]
    """The measured profile, if the WAL shows it, and two alternative settings of brokers."""
    lags: list[GroupLag] | None
    """None if no cluster was queried."""
    damaged: list[str]

    @property
    def stored_bytes(self) -> int:
        return sum(topic.stored_bytes for topic in self.topics)

    @property
    def records(self) -> int:
        return sum(topic.records for topic in self.topics)

    @property
    def bytes_per_day(self) -> float:
        return sum(topic.bytes_per_day for topic in self.topics)

    @property
    def days(self) -> dict[str, int]:
        """Bytes of all topics by date, without gaps."""
        total: Counter[str] = Counter()
        for topic in self.topics:
            total.update(topic.days)
        if not total:
            return {}
        first, last = (date.fromisoformat(pick(total)) for pick in (min, max))
        every = (first + timedelta(days=number) for number in range((last - first).days + 1))
        return {day.isoformat(): total[day.isoformat()] for day in every}


def run(
    spark: "SparkSession",
    settings: ReportSettings,
    *,
    clock: Callable[[], int],
    progress: "bool | Console" = True,
    lags: Sequence[GroupLag] | None = None,
) -> Report:
    """Measure a namespace with tasks on Spark."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    run_tasks = partial(parallel_map, spark, description="counting", progress=progress)
    return build_report(settings, run_tasks, clock=clock, lags=lags)


def build_report(
    settings: ReportSettings,
    run_tasks: RunTasks,
    *,
    clock: Callable[[], int],
    lags: Sequence[GroupLag] | None = None,
) -> Report:
    """Measure a namespace with tasks that `run_tasks` runs."""
    location = settings.location
    with location.open() as store:
        offset_map = list_bucket(store, location.namespace, settings.topics or None)
        activity = store.run(lambda objects: wal_activity(objects, location.namespace, clock()))
    if missing := set(settings.topics) - set(offset_map.topics):
        raise UnknownTopicError(f"no such topics in {location}: {', '.join(sorted(missing))}")
    results = run_tasks(inventory.plan(offset_map), partial(inventory.measure, location))
    usages = inventory.sum_usages(offset_map, results).values()
    return assemble(settings, offset_map, list(usages), activity, now_ms=clock(), lags=lags)


def assemble(
    settings: ReportSettings,
    offset_map: OffsetMap,
    usages: Sequence[PartitionUsage],
    activity: WalActivity,
    *,
    now_ms: int,
    lags: Sequence[GroupLag] | None = None,
) -> Report:
    """Compute the report from measured usages."""
    by_topic: dict[str, list[PartitionUsage]] = defaultdict(list)
    for usage in usages:
        by_topic[usage.topic_partition[0]].append(usage)
    topics = [
        _topic_report(settings, name, offset_map.catalog.get(name), partitions, now_ms)
        for name, partitions in sorted(by_topic.items())
    ]
    brokers = settings.brokers or max(activity.brokers, 1)
    sizes: Counter[int] = Counter()
    for usage in usages:
        sizes += usage.sizes
    return Report(
        location=str(settings.location),
        time_ms=now_ms,
        brokers=brokers,
        topics=topics,
        sizes=[SegmentSizes(2**bits, sizes[bits]) for bits in sorted(sizes)],
        profiles=_profiles(settings, topics, brokers, activity),
        lags=None if lags is None else sorted(lags, key=lambda one: (one.group, one.topic)),
        damaged=[text for usage in usages for text in usage.damaged],
    )


def _topic_report(
    settings: ReportSettings,
    name: str,
    known: CatalogTopic | None,
    partitions: Sequence[PartitionUsage],
    now_ms: int,
) -> TopicReport:
    whole = PartitionUsage((name, -1))
    for usage in partitions:
        whole.add(msgspec.structs.replace(usage, topic_partition=whole.topic_partition))
    sizes = [usage.stored_bytes for usage in partitions]
    rate = bytes_per_day(whole.days, whole.oldest_ms, now_ms)
    retention_days, limit_bytes = _retention(known, settings.retention_days)
    expected = float(whole.stored_bytes) if retention_days is None else rate * retention_days
    codecs_bytes = whole.codecs.total()
    return TopicReport(
        topic=name,
        partitions=len(partitions),
        records=whole.records,
        stored_bytes=whole.stored_bytes,
        segments=whole.segments,
        segment_bytes=whole.segment_bytes,
        index_bytes=whole.index_bytes,
        wal_bytes=whole.wal_bytes,
        compression=whole.inflated_bytes / whole.sampled_bytes if whole.sampled_bytes else None,
        codecs={codec: size / codecs_bytes for codec, size in whole.codecs.most_common()},
        oldest_ms=whole.oldest_ms,
        newest_ms=whole.newest_ms,
        skew=max(sizes) * len(sizes) / whole.stored_bytes if whole.stored_bytes else 1.0,
        bytes_per_day=rate,
        retention_days=retention_days,
        expected_bytes=min(expected, limit_bytes * len(partitions)),
        storage_dollars=whole.stored_bytes / GB * settings.prices.storage_gb_month,
        days={
            (_EPOCH + timedelta(days=day)).isoformat(): whole.days[day]
            for day in sorted(whole.days)
        },
    )


def bytes_per_day(days: Mapping[int, int], oldest_ms: int | None, now_ms: int) -> float:
    """Return the average of incoming bytes per day over the last `RATE_DAYS`."""
    today = now_ms // DAY_MS
    first = today - RATE_DAYS + 1
    recent_bytes = sum(size_bytes for day, size_bytes in days.items() if day >= first)
    start_ms = max(first * DAY_MS, oldest_ms or 0)
    return recent_bytes / max((now_ms - start_ms) / DAY_MS, 1.0)


def _retention(known: CatalogTopic | None, default_days: float) -> tuple[float | None, float]:
    """Return the retention in days, None if unlimited, and in bytes of a partition."""
    configs = known.configs if known else {}
    if configs.get("cleanup.policy") == "compact":
        return None, float("inf")
    limit_bytes = int(configs.get("retention.bytes", -1))
    retention_ms = int(configs.get("retention.ms", default_days * DAY_MS))
    return (
        None if retention_ms < 0 else retention_ms / DAY_MS,
        float("inf") if limit_bytes < 0 else float(limit_bytes),
    )


def _profiles(
    settings: ReportSettings, topics: Sequence[TopicReport], brokers: int, activity: WalActivity
) -> list[Profile]:
    segments = sum(topic.segments for topic in topics)
    segment_bytes = sum(topic.segment_bytes for topic in topics)
    traffic = Traffic(
        bytes_per_day=sum(topic.bytes_per_day for topic in topics),
        stored_bytes=sum(topic.expected_bytes for topic in topics),
        records_per_day=sum(topic.records_per_day for topic in topics),
        brokers=brokers,
        segment_bytes=segment_bytes / segments if segments else Traffic.segment_bytes,
        merged_bytes=settings.merged_bytes,
        gets_per_day=settings.gets_per_day,
        cold_reads=settings.cold_reads,
    )
    profiles = [cost.latency(traffic, settings.prices), cost.cost(traffic, settings.prices)]
    if activity.puts_per_day is not None:
        stored = sum(topic.stored_bytes for topic in topics)
        now = replace(traffic, stored_bytes=stored)
        profiles.insert(0, cost.profile("now", activity.puts_per_day, now, settings.prices))
    return profiles
