"""The report: what is stored of each topic, how it grows, what it costs, and who lags behind.

    report = run(spark, ReportSettings(location=Location.parse("s3://records/production")))

The store is looked at once, segments are counted in tasks (`inventory`), and everything else
follows from that. What comes in a day is reckoned from the days that records say they are from,
over a week at most; less than a day's worth counts as a day's, so that a burst is not taken for a
habit. What retention will leave of it, the model in `cost` prices. How far groups lag behind is for
those to tell who can ask a cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from kafscale.errors import UnknownTopicError
from kafscale.observability.prices import GB, Prices
from kafscale.spark.jobs.report import cost, inventory
from kafscale.spark.jobs.report.cost import MIB, Profile, Traffic
from kafscale.spark.jobs.report.inventory import DAY_MS, Look, Tally
from kafscale.spark.jobs.report.wal_activity import WalActivity, activity
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.offset_map import CatalogTopic, OffsetMap
from kafscale.spark.source.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

RATE_DAYS: Final = 7
"""Over how many days what comes in a day is reckoned."""

_EPOCH: Final = date(1970, 1, 1)

Spread = Callable[
    [Sequence[tuple[Look, ...]], Callable[[tuple[Look, ...]], list[Tally]]], list[list[Tally]]
]
"""Calls a function for each of many items, wherever there is room; results in their order."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What to report on, and what to reckon with."""

    location: Location
    topics: tuple[str, ...] = ()
    """By name; all, if none is named."""
    prices: Prices = field(default_factory=Prices)
    brokers: int | None = None
    """How many there are; as many as have written lately, if nobody says."""
    retention_days: float = 7.0
    """Of topics that do not say themselves."""
    merged_bytes: float = 0.0
    cold_reads: float = 1.0
    gets_per_day: float | None = None


class TopicReport(msgspec.Struct, frozen=True, rename="camel"):
    """A topic, counted."""

    topic: str
    partitions: int
    records: int
    stored_bytes: int
    """Segments, indexes and what the WAL holds."""
    segments: int
    segment_bytes: int
    index_bytes: int
    wal_bytes: int
    compression: float | None
    """How many times larger the records are without compression; None if none were looked into."""
    codecs: dict[str, float]
    """Which share of the bytes has which."""
    oldest_ms: int | None
    newest_ms: int | None
    skew: float
    """How many times as large as the average the largest partition is."""
    bytes_per_day: float
    retention_days: float | None
    """None if records are kept for good."""
    expected_bytes: float
    """What will be stored once retention takes as much as comes in."""
    storage_dollars: float
    """What storing it for a month costs now."""
    days: dict[str, int]
    """How many bytes are from which date."""

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
    """How many segments are below a size, and not below half of it."""

    below_bytes: int
    segments: int


class GroupLag(msgspec.Struct, frozen=True, rename="camel"):
    """How many records of a topic a group has still to read."""

    group: str
    topic: str
    lag: int
    partitions: int
    """Of how many partitions that is known."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that is known about a namespace."""

    location: str
    time_ms: int
    brokers: int
    topics: list[TopicReport]
    sizes: list[SegmentSizes]
    profiles: list[Profile]
    """As things are now, if the WAL shows it, and in the two ways to set brokers up."""
    lags: list[GroupLag] | None
    """None if no cluster was asked."""
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
        """How many bytes are from which date, of all topics; without gaps."""
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
    """Look at a store, with Spark's help."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark, which counting can do without.

    spread = partial(parallel_map, spark, description="counting", progress=progress)
    return make(settings, spread, clock=clock, lags=lags)


def make(
    settings: ReportSettings,
    spread: Spread,
    *,
    clock: Callable[[], int],
    lags: Sequence[GroupLag] | None = None,
) -> Report:
    """Look at a store; who counts is `spread`'s business."""
    location = settings.location
    wanted = set(settings.topics)
    with location.open() as store:
        offset_map = list_bucket(store, location.namespace, settings.topics or None)
        writing = store.run(lambda opened: activity(opened, location.namespace, clock()))
    if missing := wanted - set(offset_map.topics):
        raise UnknownTopicError(f"no such topics in {location}: {', '.join(sorted(missing))}")
    counted = spread(inventory.plan(offset_map), partial(inventory.count, location))
    tallies = inventory.add_up(offset_map, counted).values()
    return assemble(settings, offset_map, list(tallies), writing, now_ms=clock(), lags=lags)


def assemble(
    settings: ReportSettings,
    offset_map: OffsetMap,
    tallies: Sequence[Tally],
    writing: WalActivity,
    *,
    now_ms: int,
    lags: Sequence[GroupLag] | None = None,
) -> Report:
    """The report on what was counted."""
    by_topic: dict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_topic[tally.place[0]].append(tally)
    topics = [
        _topic_report(settings, name, offset_map.catalog.get(name), parts, now_ms)
        for name, parts in sorted(by_topic.items())
    ]
    brokers = settings.brokers or max(writing.brokers, 1)
    sizes: Counter[int] = Counter()
    for tally in tallies:
        sizes += tally.sizes
    return Report(
        location=str(settings.location),
        time_ms=now_ms,
        brokers=brokers,
        topics=topics,
        sizes=[SegmentSizes(2**bits, sizes[bits]) for bits in sorted(sizes)],
        profiles=_profiles(settings, topics, brokers, writing),
        lags=None if lags is None else sorted(lags, key=lambda one: (one.group, one.topic)),
        damaged=[text for tally in tallies for text in tally.damaged],
    )


def _topic_report(
    settings: ReportSettings,
    name: str,
    known: CatalogTopic | None,
    parts: Sequence[Tally],
    now_ms: int,
) -> TopicReport:
    whole = Tally((name, -1))
    for tally in parts:
        whole.add(msgspec.structs.replace(tally, place=whole.place))
    sizes = [tally.stored_bytes for tally in parts]
    rate = bytes_per_day(whole.days, whole.oldest_ms, now_ms)
    retention_days, limit_bytes = _retention(known, settings.retention_days)
    expected = float(whole.stored_bytes) if retention_days is None else rate * retention_days
    codecs_bytes = whole.codecs.total()
    return TopicReport(
        topic=name,
        partitions=len(parts),
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
        expected_bytes=min(expected, limit_bytes * len(parts)),
        storage_dollars=whole.stored_bytes / GB * settings.prices.storage_gb_month,
        days={
            (_EPOCH + timedelta(days=day)).isoformat(): whole.days[day]
            for day in sorted(whole.days)
        },
    )


def bytes_per_day(days: Mapping[int, int], oldest_ms: int | None, now_ms: int) -> float:
    """How much came in a day, during the last days."""
    today = now_ms // DAY_MS
    first = today - RATE_DAYS + 1
    lately = sum(size_bytes for day, size_bytes in days.items() if day >= first)
    start_ms = max(first * DAY_MS, oldest_ms or 0)
    return lately / max((now_ms - start_ms) / DAY_MS, 1.0)


def _retention(known: CatalogTopic | None, default_days: float) -> tuple[float | None, float]:
    """For how many days a topic keeps records, None if for good, and how many bytes a partition."""
    configs = known.configs if known else {}
    if configs.get("cleanup.policy") == "compact":
        return None, float("inf")
    limit_bytes = int(configs.get("retention.bytes", -1))
    kept_ms = int(configs.get("retention.ms", default_days * DAY_MS))
    return (
        None if kept_ms < 0 else kept_ms / DAY_MS,
        float("inf") if limit_bytes < 0 else float(limit_bytes),
    )


def _profiles(
    settings: ReportSettings, topics: Sequence[TopicReport], brokers: int, writing: WalActivity
) -> list[Profile]:
    segments = sum(topic.segments for topic in topics)
    segment_bytes = sum(topic.segment_bytes for topic in topics)
    traffic = Traffic(
        bytes_per_day=sum(topic.bytes_per_day for topic in topics),
        stored_bytes=sum(topic.expected_bytes for topic in topics),
        records_per_day=sum(topic.records_per_day for topic in topics),
        brokers=brokers,
        segment_bytes=segment_bytes / segments if segments else 100 * MIB,
        merged_bytes=settings.merged_bytes,
        gets_per_day=settings.gets_per_day,
        cold_reads=settings.cold_reads,
    )
    profiles = [cost.latency(traffic, settings.prices), cost.cost(traffic, settings.prices)]
    if writing.puts_per_day is not None:
        stored = sum(topic.stored_bytes for topic in topics)
        now = replace(traffic, stored_bytes=stored)
        profiles.insert(0, cost.profile("now", writing.puts_per_day, now, settings.prices))
    return profiles
