"""The merge job: rewrites many small segments as few large ones.

Invariants: batches are copied unchanged, so readers get the same bytes before and after. Each task
builds and stages one segment, and the owner of the partition swaps it in. A second run finds
nothing to do: no two remaining neighbours fit into one segment.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Final

from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.segment_group import (
    SegmentGroup,
    check_topics_exist,
    group_segments,
    segment_bytes_of,
    segments_of,
)
from kafscale.spark.jobs.shared.segment_install import (
    RewriteSettings,
    SwapOutcome,
    count_outdated,
    ignore_step,
    problems,
)
from kafscale.spark.jobs.shared.staging import SkippedGroup, StagedSegment
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.spark.runtime.job_result import JobResult
from kafscale.storage.formats.segment_output import SegmentOutput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB: Final = "merge"


def run(
    spark: "SparkSession",
    settings: RewriteSettings,
    *,
    clock: Callable[[], int],
    random: Random,
    progress: bool = True,
    on_step: Callable[[str], None] = ignore_step,
) -> JobResult:
    """Merge small segments; `on_step` gets the name of each step before it starts."""
    started_ms = clock()
    installer = settings.installer(JOB, random, progress=progress, on_step=on_step)
    with settings.location.open() as store:
        installer.check_brokers(store)
        offset_map = list_bucket(store, settings.location.namespace, settings.topics or None)
        check_topics_exist(offset_map, settings.topics)
        installer.clear_staging(store, list(offset_map.partitions))
        groups = list(plan(offset_map, settings.target_bytes))
        build = partial(merge_group, settings.location, installer.run_id, started_ms)
        staged, skipped = installer.stage(spark, groups, build, attrgetter("topic_partition"))
        outcomes = installer.swap(store, staged)
    return _summarize(offset_map, outcomes, skipped, (clock() - started_ms) / 1000)


# --- driver ---------------------------------------------------------------------------------------


def plan(offset_map: OffsetMap, target_bytes: int = 0) -> Iterator[SegmentGroup]:
    """Return the groups of small segments that are worth merging."""
    for partition in offset_map.partitions.values():
        topic = offset_map.catalog.get(partition.topic)
        own_bytes = segment_bytes_of(topic.configs if topic else {})
        yield from _plan_partition(partition, target_bytes or own_bytes)


def _plan_partition(partition: PartitionOffsets, target_bytes: int) -> Iterator[SegmentGroup]:
    by_size = groupby(segments_of(partition), key=lambda each: each.segment_bytes < target_bytes)
    for is_small, segments in by_size:
        if is_small:
            for group in group_segments(partition, segments, target_bytes):
                if len(group.sources) > 1:
                    yield group


def _summarize(
    offset_map: OffsetMap,
    outcomes: Sequence[SwapOutcome],
    skipped: Sequence[SkippedGroup],
    seconds: float,
) -> JobResult:
    totals: dict[str, Counter[str]] = {topic: Counter() for topic in offset_map.topics}
    for partition in offset_map.partitions.values():
        totals[partition.topic]["partitions"] += 1
        totals[partition.topic]["segmentsBefore"] += len(segments_of(partition))
    for outcome in outcomes:
        if outcome.is_swapped:
            group, total = outcome.staged.group, totals[outcome.staged.group.topic]
            total["merged"] += len(group.sources)
            total["created"] += 1
            total["madeBytes"] += outcome.staged.size_bytes
    columns = ("topic", "partitions", "segmentsBefore", "segmentsAfter", "madeBytes")
    return JobResult(
        JOB,
        columns,
        tuple(
            (
                topic,
                total["partitions"],
                total["segmentsBefore"],
                total["segmentsBefore"] - total["merged"] + total["created"],
                total["madeBytes"],
            )
            for topic, total in totals.items()
        ),
        {
            "created": sum(total["created"] for total in totals.values()),
            "outdated": count_outdated(outcomes, skipped),
            "seconds": seconds,
        },
        problems(outcomes, skipped),
    )


# --- task -----------------------------------------------------------------------------------------


def merge_group(location: Location, run_id: str, now_ms: int, group: SegmentGroup) -> StagedSegment:
    """Copy the batches of a group into one segment, and stage it."""
    with location.open() as store:
        checksums = store.run(lambda objects: staging.read_checksums(objects, group))
        output = SegmentOutput(group.base_offset, group.end_offset, now_ms)
        count = 0
        for read in SliceReader(store, location.namespace).read(group.slice):
            for batch in read.batches:
                output.append(read.key, batch)
                count += batch.count
        built = output.finish()
        name = staging.staging_name(JOB, run_id, group.base_offset)
        return staging.stage(
            store, location.namespace, name, group, built, records_before=count, checksums=checksums
        )
