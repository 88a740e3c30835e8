"""The mirror job: copies topics from one Kafka cluster to another, once or continuously.

    run(spark, MirrorSettings(source=Cluster("kafka:9092"), target=Cluster("kafscale:9092"),
                              topics=("orders",)))

Either cluster may be Kafscale. A mirror works in passes, each of which copies the records that the
target lacks. The progress is in the target, so a mirror may be killed at any time and started on
any host: it continues, and neither loses nor duplicates a record. Each pass finds topics and
partitions that were added since.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import REQUEST_TIMEOUT_S, Cluster, wrap_errors
from kafscale.spark.jobs.mirror.offset_mapping import translate_group
from kafscale.spark.jobs.mirror.task import (
    MirrorItem,
    PartitionCopy,
    PartitionResult,
    mirror_partitions,
)
from kafscale.spark.jobs.mirror.topics import MirrorTopics
from kafscale.spark.runtime.job_result import JobResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TASKS_PER_SLOT: Final = 2

RunTasks = Callable[[Sequence[MirrorItem]], list[list[PartitionResult]]]
"""Runs tasks, and returns their results in order."""


@dataclass(frozen=True, kw_only=True)
class MirrorSettings:
    """What to mirror, from which cluster to which."""

    source: Cluster
    target: Cluster
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression that must match the whole topic name."""
    prefix: str = ""
    """Prepended to topic names in the target."""
    codec: str = "lz4"
    interval_s: float | None = None
    """The pause between passes; None for a single pass."""

    def __post_init__(self) -> None:
        if not (self.topics or self.pattern):
            raise InvalidRequestError("name the topics to mirror, or a pattern for them")
        if self.codec not in CODECS:
            raise InvalidRequestError(f"invalid codec {self.codec!r}: expected {', '.join(CODECS)}")
        if self.source.bootstrap == self.target.bootstrap and not self.prefix:
            raise InvalidRequestError("a topic cannot be mirrored into itself; give a prefix")


class Mirror:
    """Runs passes, and sums up their results."""

    def __init__(self, settings: MirrorSettings, task_count_max: int) -> None:
        self._settings = settings
        self._task_count_max = task_count_max
        self._topics = MirrorTopics(settings.source, settings.target, settings.prefix)
        self._admin = settings.source.admin()
        self._positions: dict[tuple[str, int], int] = {}
        self.totals: dict[tuple[str, int], PartitionResult] = {}

    def mirror_once(self, run_tasks: RunTasks) -> int:
        """Run one pass; return the number of copied records."""
        count = 0
        for results in run_tasks(self.plan()):
            for one in results:
                source = (one.topic, one.partition)
                self._positions[source] = one.position
                count += one.record_count
                if (before := self.totals.get(source)) is not None:
                    one.record_count += before.record_count
                    one.size_bytes += before.size_bytes
                    one.lost_count += before.lost_count
                    one.returned_count += before.returned_count
                    one.newest_ms = max(one.newest_ms or 0, before.newest_ms or 0) or None
                self.totals[source] = one
        return count

    def plan(self) -> list[MirrorItem]:
        """Distribute the partitions that have new records among tasks."""
        settings = self._settings
        chosen = self._topics.choose(settings.topics, settings.pattern)
        self._topics.prepare(chosen)
        ends = self._ends([(topic, n) for topic, count in chosen.items() for n in range(count)])
        copies = [
            PartitionCopy(
                topic,
                self._topics.target_name(topic),
                partition,
                self._positions.get((topic, partition)),
            )
            for (topic, partition), end in sorted(ends.items())
            if end > self._positions.get((topic, partition), -1)
        ]
        task_count = min(len(copies), self._task_count_max)
        source_id, target_id = self._topics.cluster_ids()
        return [
            MirrorItem(
                settings.source,
                settings.target,
                source_id,
                target_id,
                tuple(copies[number::task_count]),
                settings.codec,
            )
            for number in range(task_count)
        ]

    def _ends(self, topic_partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the high watermarks of source partitions."""
        if not topic_partitions:
            return {}
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        request = {TopicPartition(*each): latest for each in topic_partitions}
        with wrap_errors(self._settings.source):
            futures = self._admin.list_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
            return {
                (each.topic, each.partition): future.result(REQUEST_TIMEOUT_S).offset
                for each, future in futures.items()
            }


def run(
    spark: "SparkSession",
    settings: MirrorSettings,
    *,
    progress: bool = True,
    sleep: Callable[[float], None] = time.sleep,
    notify: Callable[[str], None] = lambda _: None,
    on_progress: Callable[[JobResult], None] = lambda _: None,
) -> JobResult:
    """Mirror once, or until an interrupt.

    After every pass but the last, `notify` gets a message and `on_progress` the totals so far.
    """
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    def run_tasks(items: Sequence[MirrorItem]) -> list[list[PartitionResult]]:
        return parallel_map(
            spark, items, mirror_partitions, description="mirroring", progress=progress
        )

    started = time.monotonic()
    mirror = Mirror(settings, TASKS_PER_SLOT * spark.sparkContext.defaultParallelism)
    passes = 0
    try:
        while True:
            try:
                count = mirror.mirror_once(run_tasks)
            except OperatingError as error:
                if settings.interval_s is None:
                    raise
                notify(f"pass failed, retrying: {error}")
            else:
                passes += 1
                if settings.interval_s is None:
                    break
                notify(f"pass {passes}: {count} records")
                on_progress(summarize(mirror.totals.values(), passes, time.monotonic() - started))
            sleep(settings.interval_s)
    except KeyboardInterrupt:
        if settings.interval_s is None:
            raise
    return summarize(mirror.totals.values(), passes, time.monotonic() - started)


def run_translation(settings: MirrorSettings, group: str) -> JobResult:
    """Translate the committed offsets of a consumer group from source to target."""
    topics = MirrorTopics(settings.source, settings.target, settings.prefix)
    chosen = topics.choose(settings.topics, settings.pattern)
    results = translate_group(settings.source, settings.target, topics, group, chosen)
    return JobResult(
        "translate",
        ("topic", "partition", "sourceOffset", "targetOffset", "moved"),
        tuple(
            (one.topic, one.partition, one.source_offset, one.target_offset, one.is_moved)
            for one in results
        ),
        {"group": group, "moved": sum(one.is_moved for one in results)},
    )


def summarize(results: Iterable[PartitionResult], passes: int, seconds: float) -> JobResult:
    ordered = sorted(results, key=lambda one: (one.target, one.partition))
    lost = sum(one.lost_count for one in ordered)
    return JobResult(
        "mirror",
        ("topic", "target", "partition", "position", "records", "sizeBytes", "lost", "returned"),
        tuple(
            (
                one.topic,
                one.target,
                one.partition,
                one.position,
                one.record_count,
                one.size_bytes,
                one.lost_count,
                one.returned_count,
            )
            for one in ordered
        ),
        {
            "passes": passes,
            "records": sum(one.record_count for one in ordered),
            "lost": lost,
            "seconds": round(seconds, 3),
        },
        newest_ms=_newest_ms(ordered),
    )


def _newest_ms(results: Iterable[PartitionResult]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for one in results:
        if one.newest_ms is not None:
            newest[one.topic] = max(newest.get(one.topic, 0), one.newest_ms)
    return newest
