"""`merge`: many small segments become few large ones.

The laws: batches are copied as they are, so that readers get the same bytes before and after; a
task makes one segment and stages it, and its owner swaps it in. Run again, it finds nothing to do:
no two neighbours that it leaves would fit together.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Final

from kafscale.config.sections.security import ClientTls
from kafscale.spark.jobs.compact.cleanup_policy import segment_bytes_of
from kafscale.spark.jobs.merge.grouping import Group, check_known, grouped, segments_of, size_bytes
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.segment_install import Installer, nowhere
from kafscale.spark.jobs.shared.segment_output import Output
from kafscale.spark.jobs.shared.staging import Skipped, Staged
from kafscale.spark.jobs.shared.swapping import Outcome, outdated, problems
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.spark.runtime.job_result import JobResult
from kafscale.spark.source.location import Location
from kafscale.storage.formats import segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB: Final = "merge"


@dataclass(frozen=True, kw_only=True)
class MergeSettings:
    """What to merge."""

    location: Location
    control: tuple[str, ...]
    """Addresses of brokers on the control plane."""
    control_tls: ClientTls | None = None
    """The files to ask them with, where the control plane is encrypted."""
    topics: tuple[str, ...] = ()
    """Their names; none is all."""
    target_bytes: int = 0
    """How large segments are to become; 0 is as large as those of the topic are."""


def run(
    spark: "SparkSession",
    settings: MergeSettings,
    *,
    clock: Callable[[], int],
    random: Random,
    progress: bool = True,
    reached: Callable[[str], None] = nowhere,
) -> JobResult:
    """Merge what is small; `reached` is told each step before it is taken."""
    began_ms = clock()
    installer = Installer(
        location=settings.location,
        control=settings.control,
        control_tls=settings.control_tls,
        kind=JOB,
        run=f"{random.getrandbits(32):08x}",
        progress=progress,
        reached=reached,
    )
    with settings.location.open() as store:
        installer.check(store)
        found = list_bucket(store, settings.location.namespace, settings.topics or None)
        check_known(found, settings.topics)
        installer.clear(store, list(found.partitions))
        groups = list(plan(found, settings.target_bytes))
        make = partial(merge_one, settings.location, installer.run, began_ms)
        staged, skipped = installer.stage(spark, groups, make, attrgetter("place"))
        outcomes = installer.swap(store, staged)
    return _summary(found, outcomes, skipped, (clock() - began_ms) / 1000)


# --- the driver -----------------------------------------------------------------------------------


def plan(found: OffsetMap, target_bytes: int = 0) -> Iterator[Group]:
    """The groups of small segments that are worth merging."""
    for partition in found.partitions.values():
        topic = found.catalog.get(partition.topic)
        own_bytes = segment_bytes_of(topic.configs if topic else {})
        yield from _plan_one(partition, target_bytes or own_bytes)


def _plan_one(partition: PartitionOffsets, target_bytes: int) -> Iterator[Group]:
    runs = groupby(segments_of(partition), key=lambda each: size_bytes(each) < target_bytes)
    for is_small, several in runs:
        if is_small:
            for group in grouped(partition, several, target_bytes):
                if len(group.sources) > 1:
                    yield group


def _summary(
    found: OffsetMap, outcomes: Sequence[Outcome], skipped: Sequence[Skipped], seconds: float
) -> JobResult:
    totals: dict[str, Counter[str]] = {topic: Counter() for topic in found.topics}
    for partition in found.partitions.values():
        totals[partition.topic]["partitions"] += 1
        totals[partition.topic]["segmentsBefore"] += len(segments_of(partition))
    for outcome in outcomes:
        if outcome.is_swapped:
            group, total = outcome.staged.group, totals[outcome.staged.group.topic]
            total["merged"] += len(group.sources)
            total["made"] += 1
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
                total["segmentsBefore"] - total["merged"] + total["made"],
                total["madeBytes"],
            )
            for topic, total in totals.items()
        ),
        {
            "made": sum(total["made"] for total in totals.values()),
            "outdated": outdated(outcomes, skipped),
            "seconds": seconds,
        },
        problems(outcomes, skipped),
    )


# --- a task ---------------------------------------------------------------------------------------


def merge_one(location: Location, run_id: str, now_ms: int, group: Group) -> Staged:
    """Make one segment of a group, and stage it."""
    with location.open() as store:
        checksums = store.run(lambda objects: staging.checksums(objects, group))
        output = Output(group.base_offset, group.end_offset, now_ms)
        count = 0
        for found in SliceReader(store, location.namespace).read(group.slice):
            for batch in found.batches:
                output.append(found.key, batch)
                count += batch.count
        built = output.finish()
        job = staging.job_name(JOB, run_id, group.base_offset)
        key = staging.staged_key(location.namespace, job, group)
        store.put(key, built.parts, create=False)
    return Staged(
        group,
        job,
        key,
        built.size_bytes,
        segment.decode_footer(key, built.parts[-1]).checksum,
        built.count,
        count,
        checksums or (),
    )
