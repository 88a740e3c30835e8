"""Restores a topic, as it was at a time or up to offsets, into a new topic, exact to the record.

It works from the bucket alone: from that of a running cluster, a copy of one, or one whose topic is
deleted while its objects are still there. The laws:

* As of a time means every record whose timestamp is at or before it. Where timestamps do not
  ascend, a late record of an early time is in, and an early record of a late time is out.
* Key, value, headers and timestamp are those of the source, and so is the partition; so are the
  codecs. Offsets count up from 0: they are equal where the source begins at 0 and nothing before
  the last record is left out.
* The new topic is written by this job alone, and is the record of its own progress: run again after
  it was killed, the job goes on. A topic that holds anything else is refused before anything is
  written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from kafscale.client.blocking import BlockingClient, addresses
from kafscale.client.client import Client
from kafscale.client.partition import Partition
from kafscale.client.security import PLAINTEXT, Security
from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.spark.jobs.restore.task import Restored, RestoreItem, identity, restore_partition
from kafscale.spark.jobs.shared.target_topic import TargetTopic, configs_like, partition_count_of
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan import offsets
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.plan.offsets import LATEST, Bound, Everywhere, Named, Side
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.runtime.job_result import JobResult
from kafscale.spark.source.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class RestoreSettings:
    """What to restore, and into what."""

    location: Location
    topic: str
    target: str
    bootstrap: str
    """Brokers of the cluster that gets the new topic."""
    security: Security = PLAINTEXT
    """How to talk to them; the files that it names have to be where tasks run, too."""
    until_ms: int | None = None
    """The time of the latest record that is wanted."""
    end_offsets: str = ""
    """Where partitions end, as JSON: {"topic": {"0": 23}}."""
    partition_count: int | None = None
    """Of the new topic, where the source no longer tells."""
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.until_ms is not None and self.end_offsets:
            raise InvalidRequestError("as of a time, or up to offsets: not both")


def run(spark: "SparkSession", settings: RestoreSettings, *, progress: bool = True) -> JobResult:
    """Restore a topic."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    began = monotonic()
    items = prepare(settings)
    results = parallel_map(
        spark,
        items,
        restore_partition,
        description=f"restoring {settings.topic}",
        progress=progress,
    )
    return summarize(settings, items, results, monotonic() - began)


def prepare(settings: RestoreSettings) -> list[RestoreItem]:
    """Look at the source, make the new topic or find it, and see that it may be written to."""
    bootstrap = addresses(settings.bootstrap)
    with settings.location.open() as store:
        log = list_bucket(store, settings.location.namespace, [settings.topic])
    slices = _slices(settings, log)
    target = TargetTopic(
        settings.target,
        settings.partition_count or partition_count_of(log, settings.topic),
        configs_like(log, settings.topic, settings.configs),
    )
    if len(slices) > target.partition_count:
        raise InvalidRequestError(
            f"{settings.topic} has {len(slices)} partitions, which do not fit into"
            f" {target.partition_count}"
        )
    with BlockingClient(bootstrap, settings.security) as client:
        topic = client.run(partial(_ready, target))
        ids = {part: identity(topic.topic_id, part, settings.until_ms) for part in slices}
        for part, producer_id in ids.items():
            client.run(partial(_check, topic=topic, part=part, producer_id=producer_id))
    return [
        RestoreItem(
            settings.location,
            part,
            settings.until_ms,
            bootstrap,
            settings.target,
            producer_id,
            settings.security,
        )
        for part, producer_id in ids.items()
    ]


def summarize(
    settings: RestoreSettings, items: list[RestoreItem], results: list[Restored], seconds: float
) -> JobResult:
    has_equal_offsets = all(
        item.source.start_offset == 0 and result.left_out_count == 0
        for item, result in zip(items, results, strict=True)
    )
    return JobResult(
        "restore",
        ("partition", "records", "written", "leftOut", "batches", "rebuilt", "writtenBytes"),
        tuple(
            (
                one.partition,
                one.record_count,
                one.written_count,
                one.left_out_count,
                one.batch_count,
                one.rebuilt_count,
                one.written_bytes,
            )
            for one in results
        ),
        {
            "topic": settings.topic,
            "target": settings.target,
            "records": sum(one.record_count for one in results),
            "written": sum(one.written_count for one in results),
            "equalOffsets": has_equal_offsets,
            "seconds": round(seconds, 3),
        },
    )


def _slices(settings: RestoreSettings, log: OffsetMap) -> list[Slice]:
    partitions = {place: found for place, found in log.partitions.items() if found.topic}
    if not partitions:
        raise UnknownTopicError(f"{settings.location} holds nothing of a topic {settings.topic}")
    bound: Bound = Everywhere(LATEST)
    if settings.end_offsets:
        bound = Named(offsets.parse("offsets", settings.end_offsets))
    ends = offsets.resolve(bound, partitions, Side("ending", needs_record=False), _no_search)
    return [_slice(found, ends[place]) for place, found in sorted(partitions.items())]


def _slice(found: PartitionOffsets, end_offset: int) -> Slice:
    start_offset = found.start_offset
    return Slice(
        found.topic,
        found.partition,
        start_offset,
        max(end_offset, start_offset),
        tuple(found.extents_between(start_offset, end_offset)),
    )


def _no_search(times: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int | None]:
    raise AssertionError(f"no bound of a restore is a time: {times}")


async def _ready(target: TargetTopic, client: Client) -> TopicMetadata:
    topic, _ = await target.find_or_create(client)
    return topic


async def _check(client: Client, topic: TopicMetadata, part: Slice, producer_id: int) -> None:
    """Raise unless a partition is empty, or holds what an earlier run of this job has written."""
    partition = Partition(client, topic, part.partition)
    _, end_offset = await partition.bounds()
    last = await partition.last_batch() if end_offset else None
    if end_offset and (last is None or last.producer_id != producer_id):
        raise InvalidRequestError(
            f"{topic.name} exists and holds records of somebody else, or of another restore:"
            f" name a new topic, or delete {topic.name} first"
        )
