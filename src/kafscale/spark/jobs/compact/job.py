"""The compact job: keeps the latest record of each key, in topics with `cleanup.policy=compact`.

    choose     which partitions are due, and up to which offset      `candidates`
    keys       find the latest offset of each key, in a shuffle      `key_scan`, `surviving_offsets`
    stage      rewrite segments without obsolete records             `segment_rewrite`
    swap       owners swap the segments in, in log order             `shared.segment_install`

Invariants: offsets do not change. The latest record of each key, and every record without a key, is
kept unchanged. Tombstones stay for `delete.retention.ms` after compaction first meets them. Records
of aborted transactions are dropped. Records younger than `min.compaction.lag.ms`, at or above the
last stable offset, or not in a segment yet, are not rewritten.

The shuffle has rows of partition, key hash and offsets only. Rows go through Spark as bytes,
thousands at a time, so that Spark neither serializes nor sorts single rows.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING

import msgspec
from py4j.protocol import Py4JJavaError
from rich.console import Console

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.compact import dirty_ratio
from kafscale.spark.jobs.compact.candidates import Candidate, CleanupPolicy, cleanable_end, is_due
from kafscale.spark.jobs.compact.key_hash import SECRET_BYTES
from kafscale.spark.jobs.compact.key_scan import KeyScan, scan_keys
from kafscale.spark.jobs.compact.plan import CompactionPlan
from kafscale.spark.jobs.compact.segment_rewrite import JOB, rewrite_group
from kafscale.spark.jobs.compact.surviving_offsets import (
    SurvivorStore,
    store_survivors,
    survivors_by_segment,
)
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.segment_group import check_topics_exist
from kafscale.spark.jobs.shared.segment_install import (
    RewriteSettings,
    SwapOutcome,
    count_outdated,
    ignore_step,
    problems,
)
from kafscale.spark.jobs.shared.staging import SkippedGroup
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.damaged_partitions import DamagedPartitions
from kafscale.spark.runtime.job_result import JobResult
from kafscale.storage.compaction.checkpoint import read_checkpoint, write_checkpoint
from kafscale.storage.objects.blocking import BlockingObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class CompactSettings(RewriteSettings):
    """Which topics to compact, of those with `cleanup.policy=compact`."""

    is_forced: bool = False
    """Whether to compact the named topics whatever their policy and dirty ratio."""


def run(
    spark: "SparkSession",
    settings: CompactSettings,
    *,
    clock: Callable[[], int],
    random: Random,
    progress: bool = True,
    on_step: Callable[[str], None] = ignore_step,
) -> JobResult:
    """Compact the partitions that are due; `on_step` gets each step's name before it starts."""
    if settings.is_forced and not settings.topics:
        raise InvalidRequestError("name the topics to compact: force does not apply to all topics")
    started_ms = clock()
    installer = settings.installer(JOB, random, progress=progress, on_step=on_step)
    with settings.location.open() as store:
        installer.check_brokers(store)
        lister = BucketLister(store, settings.location.namespace)
        offset_map, due, damaged = find_due(store, lister, settings, started_ms)
        installer.clear_staging(store, [candidate.topic_partition for candidate in due])
        on_step("keys")
        plan = CompactionPlan(settings.location, due, installer.run_id, settings.target_bytes)
        key_scan = plan.key_scan(offset_map, random.randbytes(SECRET_BYTES), started_ms)
        counts = find_survivors(spark, key_scan, plan.survivor_store, progress=progress)
        build = partial(rewrite_group, settings.location, installer.run_id, started_ms)
        staged, skipped = installer.stage(
            spark,
            plan.rewrites(counts, lister.open_producers(offset_map, plan.group_starts)),
            build,
            attrgetter("group.topic_partition"),
        )
        staging.delete_objects(store, plan.survivor_keys(counts))
        outcomes = installer.swap(store, staged)
        on_step("checkpoints")
        for topic, ends in plan.clean_ends(counts, outcomes, skipped).items():
            if (known := offset_map.catalog.get(topic)) is not None:
                namespace = settings.location.namespace
                store.run(
                    partial(
                        write_checkpoint,
                        namespace=namespace,
                        topic=topic,
                        topic_id=known.id,
                        ends=ends,
                    )
                )
    skipped += damaged
    skipped += [
        SkippedGroup(
            topic_partition, "not compacted: it could not be read completely", is_outdated=False
        )
        for topic_partition in plan.incomplete(counts)
    ]
    return _summarize(due, outcomes, skipped, (clock() - started_ms) / 1000)


def find_due(
    store: BlockingObjectStore, lister: BucketLister, settings: CompactSettings, now_ms: int
) -> tuple[OffsetMap, list[Candidate], list[SkippedGroup]]:
    """Return the listing, the partitions to compact, and those whose transactions are damaged."""
    damaged: DamagedPartitions = {}
    offset_map = lister.list(settings.topics or None, committed=True, damaged=damaged)
    _check_topics(settings, offset_map, {topic for topic, _ in damaged})
    chosen = list(choose(store, settings, offset_map, now_ms))
    ranges = [
        OffsetRange(*each.topic_partition, each.partition.start_offset, each.partition.end_offset)
        for each in chosen
    ]
    loaded = lister.load_aborted(offset_map, ranges, damaged=damaged)
    due = [
        msgspec.structs.replace(each, partition=loaded.partitions[each.topic_partition])
        for each in chosen
        if each.topic_partition not in damaged
    ]
    skipped = [
        SkippedGroup((topic, index), f"not compacted: {error}", is_outdated=False)
        for (topic, index), error in sorted(damaged.items())
        if settings.is_forced or _policy(offset_map, topic).is_compacted
    ]
    return loaded, due, skipped


def _check_topics(
    settings: CompactSettings, offset_map: OffsetMap, damaged_topics: Collection[str]
) -> None:
    """Raise unless the named topics exist and may be compacted."""
    check_topics_exist(offset_map, set(settings.topics) - set(damaged_topics))
    for name in settings.topics:
        if not (settings.is_forced or _policy(offset_map, name).is_compacted):
            raise InvalidRequestError(
                f"the cleanup.policy of {name!r} is not compact; compacting it has to be forced"
            )


def _policy(offset_map: OffsetMap, name: str) -> CleanupPolicy:
    topic = offset_map.catalog.get(name)
    return CleanupPolicy.from_configs(topic.configs if topic else {})


def choose(
    store: BlockingObjectStore, settings: CompactSettings, offset_map: OffsetMap, now_ms: int
) -> Iterator[Candidate]:
    """Return the partitions to compact."""
    for name in offset_map.topics:
        topic, policy = offset_map.catalog.get(name), _policy(offset_map, name)
        if not (policy.is_compacted or settings.is_forced):
            continue
        namespace = settings.location.namespace
        ends: dict[int, int] = {}
        if topic is not None:
            read = partial(read_checkpoint, namespace=namespace, topic=name, topic_id=topic.id)
            ends = store.run(read)
        for partition in offset_map.partitions.values():
            if partition.topic != name:
                continue
            head = None
            if policy.lag_ms_min:
                head = dirty_ratio.head_start(store, partition, now_ms - policy.lag_ms_min)
            candidate = Candidate(
                partition, policy, ends.get(partition.partition, 0), cleanable_end(partition, head)
            )
            since_ms = partial(dirty_ratio.dirty_since_ms, store, candidate)
            if candidate.cleanable and (settings.is_forced or is_due(candidate, since_ms, now_ms)):
                yield candidate


def find_survivors(
    spark: "SparkSession", key_scan: KeyScan, store: SurvivorStore, *, progress: bool = True
) -> dict[int, int]:
    """Shuffle keys and store surviving offsets; return their number by segment number.

    A negative number stands for an incomplete partition.
    """
    if not key_scan.tasks or not store.targets:
        return {}
    count = len(key_scan.tasks)
    counts = (
        spark.sparkContext.parallelize(range(count), count)
        .flatMap(partial(scan_keys, key_scan))
        .partitionBy(key_scan.buckets, int)
        .mapPartitions(partial(survivors_by_segment, store))
        .partitionBy(len(store.targets), int)
        .mapPartitions(partial(store_survivors, store))
    )
    console = Console(stderr=True, quiet=not progress)
    try:
        with console.status("reading keys"):
            return dict(counts.collect())
    except Py4JJavaError as error:
        raise OperatingError(f"reading keys failed: {_reason(error)}") from error


def _reason(error: Py4JJavaError) -> str:
    """Return the last line of a Python error in the text of a Spark exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line]
    return errors[-1] if errors else lines[0]


def _summarize(
    compacted: Sequence[Candidate],
    outcomes: Sequence[SwapOutcome],
    skipped: Sequence[SkippedGroup],
    seconds: float,
) -> JobResult:
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for candidate in compacted:
        totals[candidate.partition.topic]["partitions"] += 1
    for outcome in outcomes:
        if outcome.is_swapped:
            staged, total = outcome.staged, totals[outcome.staged.group.topic]
            total["segmentsBefore"] += len(staged.group.sources)
            total["segmentsAfter"] += 1
            total["recordsBefore"] += staged.records_before
            total["recordsAfter"] += staged.record_count
            total["bytesBefore"] += staged.group.size_bytes
            total["bytesAfter"] += staged.size_bytes
    columns = (
        "partitions",
        "segmentsBefore",
        "segmentsAfter",
        "recordsBefore",
        "recordsAfter",
        "bytesBefore",
        "bytesAfter",
    )
    return JobResult(
        JOB,
        ("topic", *columns),
        tuple((topic, *(total[name] for name in columns)) for topic, total in totals.items()),
        {
            "created": sum(outcome.is_swapped for outcome in outcomes),
            "outdated": count_outdated(outcomes, skipped),
            "seconds": seconds,
        },
        problems(outcomes, skipped),
    )
