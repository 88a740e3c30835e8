"""Mirrors topics from any Kafka cluster into another, one of which may be ours: once, or for ever.

    run(spark, MirrorSettings(source=Cluster("kafka:9092"), target=Cluster("kafscale:9092"),
                              topics=("orders",)))

A mirror works in passes, each of which copies what the source has and the target lacks. Progress is
found in the target, so a mirror may be killed at any time and started anywhere: it goes on where it
was, and neither loses a record nor writes one twice. Topics that appear later, and partitions that
are added, are found by the pass after.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import ANSWER_S_MAX, Cluster, explained
from kafscale.spark.jobs.mirror.groups import translate
from kafscale.spark.jobs.mirror.task import Line, Mirrored, MirrorItem, mirror_partitions
from kafscale.spark.jobs.mirror.topics import Topics
from kafscale.spark.runtime.job_result import JobResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TASKS_PER_SLOT: Final = 2

Share = Callable[[Sequence[MirrorItem]], list[list[Mirrored]]]
"""Has tasks done, somewhere; their results in order."""


@dataclass(frozen=True, kw_only=True)
class MirrorSettings:
    """What to mirror, from where to where."""

    source: Cluster
    target: Cluster
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression that has to match the whole of a name."""
    prefix: str = ""
    """What the names of topics begin with in the target."""
    codec: str = "lz4"
    interval_s: float | None = None
    """How long to rest between passes; without it, there is one."""

    def __post_init__(self) -> None:
        if not (self.topics or self.pattern):
            raise InvalidRequestError("name the topics to mirror, or a pattern for them")
        if self.codec not in CODECS:
            raise InvalidRequestError(f"the codec is one of {', '.join(CODECS)}: {self.codec!r}")
        if self.source.bootstrap == self.target.bootstrap and not self.prefix:
            raise InvalidRequestError("a topic cannot be mirrored into itself; give a prefix")


class Mirror:
    """Passes, and what they have come to together."""

    def __init__(self, settings: MirrorSettings, task_count_max: int) -> None:
        self._settings = settings
        self._task_count_max = task_count_max
        self._topics = Topics(settings.source, settings.target, settings.prefix)
        self._admin = settings.source.admin()
        self._positions: dict[tuple[str, int], int] = {}
        self.totals: dict[tuple[str, int], Mirrored] = {}

    def mirror_once(self, share: Share) -> int:
        """Copy what is new; how many records that was."""
        count = 0
        for results in share(self.plan()):
            for one in results:
                place = (one.topic, one.partition)
                self._positions[place] = one.position
                count += one.record_count
                if (before := self.totals.get(place)) is not None:
                    one.record_count += before.record_count
                    one.size_bytes += before.size_bytes
                    one.lost_count += before.lost_count
                    one.returned_count += before.returned_count
                    one.newest_ms = max(one.newest_ms or 0, before.newest_ms or 0) or None
                self.totals[place] = one
        return count

    def plan(self) -> list[MirrorItem]:
        """The partitions that have something new, shared out among tasks."""
        settings = self._settings
        chosen = self._topics.choose(settings.topics, settings.pattern)
        self._topics.prepare(chosen)
        ends = self._ends([(topic, n) for topic, count in chosen.items() for n in range(count)])
        lines = [
            Line(
                topic, self._topics.name(topic), partition, self._positions.get((topic, partition))
            )
            for (topic, partition), end in sorted(ends.items())
            if end > self._positions.get((topic, partition), -1)
        ]
        task_count = min(len(lines), self._task_count_max)
        source_id, target_id = self._topics.cluster_ids()
        return [
            MirrorItem(
                settings.source,
                settings.target,
                source_id,
                target_id,
                tuple(lines[number::task_count]),
                settings.codec,
            )
            for number in range(task_count)
        ]

    def _ends(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*place): latest for place in places}
        with explained(self._settings.source):
            found = self._admin.list_offsets(asked, request_timeout=ANSWER_S_MAX)
            return {
                (place.topic, place.partition): future.result(ANSWER_S_MAX).offset
                for place, future in found.items()
            }


def run(
    spark: "SparkSession",
    settings: MirrorSettings,
    *,
    progress: bool = True,
    sleep: Callable[[float], None] = time.sleep,
    notify: Callable[[str], None] = lambda _: None,
    tell: Callable[[JobResult], None] = lambda _: None,
) -> JobResult:
    """Mirror once, or until somebody interrupts it.

    Of every pass meanwhile, `notify` is told in words, and `tell` what was done so far.
    """
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    def share(items: Sequence[MirrorItem]) -> list[list[Mirrored]]:
        return parallel_map(
            spark, items, mirror_partitions, description="mirroring", progress=progress
        )

    began = time.monotonic()
    mirror = Mirror(settings, TASKS_PER_SLOT * spark.sparkContext.defaultParallelism)
    passes = 0
    try:
        while True:
            try:
                count = mirror.mirror_once(share)
            except OperatingError as error:
                if settings.interval_s is None:
                    raise
                notify(f"a pass failed, and is tried again: {error}")
            else:
                passes += 1
                if settings.interval_s is None:
                    break
                notify(f"pass {passes}: {count} records")
                tell(summarize(mirror.totals.values(), passes, time.monotonic() - began))
            sleep(settings.interval_s)
    except KeyboardInterrupt:
        if settings.interval_s is None:
            raise
    return summarize(mirror.totals.values(), passes, time.monotonic() - began)


def run_translation(settings: MirrorSettings, group: str) -> JobResult:
    """Let a consumer group go on in the target where it is in the source."""
    topics = Topics(settings.source, settings.target, settings.prefix)
    chosen = topics.choose(settings.topics, settings.pattern)
    results = translate(settings.source, settings.target, topics, group, chosen)
    return JobResult(
        "translate",
        ("topic", "partition", "sourceOffset", "targetOffset", "moved"),
        tuple(
            (one.topic, one.partition, one.source_offset, one.target_offset, one.is_moved)
            for one in results
        ),
        {"group": group, "moved": sum(one.is_moved for one in results)},
    )


def summarize(results: Iterable[Mirrored], passes: int, seconds: float) -> JobResult:
    found = sorted(results, key=lambda one: (one.target, one.partition))
    lost = sum(one.lost_count for one in found)
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
            for one in found
        ),
        {
            "passes": passes,
            "records": sum(one.record_count for one in found),
            "lost": lost,
            "seconds": round(seconds, 3),
        },
        newest_ms=_newest_ms(found),
    )


def _newest_ms(found: Iterable[Mirrored]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for one in found:
        if one.newest_ms is not None:
            newest[one.topic] = max(newest.get(one.topic, 0), one.newest_ms)
    return newest
