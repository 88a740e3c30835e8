"""The replay job: copies a range of a topic to another topic, filtered and transformed.

    run(spark, ReplaySettings(location=location, topic="orders", target="large-orders",
                              bootstrap="localhost:9092", where="json:amount::int > 1000"))

Key, value, headers, timestamp and partition are kept, unless an expression or a function sets them.
Invariants:

* Exactly once: a second run, after a killed or a finished one, writes only what is missing. Runs
  belong to the same replay if their definitions are equal: source topic, start, filter,
  expressions, function and partitioner. Other replays may write to the same topic. This holds for
  drivers and tasks that are killed, and needs no transactions: a replay may take longer than any
  transaction timeout, and what is written need not be written again.
* Records of a partition stay in order, so one task reads a source partition from start to end.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafscale.client.blocking import BlockingClient, parse_addresses
from kafscale.client.client import Client
from kafscale.client.idempotent_appender import producer_id_of
from kafscale.client.partition import Partition
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.records import Codec
from kafscale.spark.jobs.replay.progress import LastWritten, Progress, find_last_written
from kafscale.spark.jobs.replay.sink import KEEP, KEY, PartitionResult, ReplayItem, Sink
from kafscale.spark.jobs.replay.transform import (
    Function,
    apply_function,
    filter_and_select,
    load_function,
    map_in_arrow,
    read_slices,
)
from kafscale.spark.jobs.shared.target_topic import (
    CopySettings,
    TargetTopic,
    configs_like,
    partition_count_of,
)
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.runtime.errors import TaskFailure
from kafscale.spark.runtime.job_result import JobResult
from kafscale.spark.runtime.parallel_map import collect_with_progress
from kafscale.spark.source.data_source import batch_ranges
from kafscale.spark.source.options import READ_COMMITTED, parse
from kafscale.spark.source.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGE_BYTES_DEFAULT: Final = 1_048_588
SOURCE_HEADER_BYTES_MAX: Final = 512
"""The most bytes that the source header adds to a record."""

_RESULT: Final = pa.schema([("result", pa.binary())])


@dataclass(frozen=True, kw_only=True)
class ReplaySettings(CopySettings):
    """What to replay, how to transform it, and the target topic."""

    where: str = ""
    select: tuple[str, ...] = ()
    function: str = ""
    """As `module:function`; called after the filter and the expressions."""
    partitioner: str = KEEP
    bounds: Mapping[str, str] = field(default_factory=dict)
    """Start and end, as options of the Spark source: startingOffsets and so on."""
    codec: Codec = Codec.LZ4
    isolation: str = READ_COMMITTED

    def __post_init__(self) -> None:
        if self.partitioner not in {KEEP, KEY}:
            raise InvalidRequestError(
                f"invalid partitioner {self.partitioner!r}: expected keep or key"
            )
        if self.topic == self.target:
            raise InvalidRequestError("a topic cannot be replayed into itself")

    @property
    def definition(self) -> tuple[object, ...]:
        """What identifies a replay across runs. The end may change, the start may not."""
        starting = sorted(item for item in self.bounds.items() if item[0].startswith("starting"))
        isolation = () if self.isolation == READ_COMMITTED else (self.isolation,)
        return (
            self.topic,
            self.where,
            self.select,
            self.function,
            self.partitioner,
            tuple(starting),
            *isolation,
        )


def run(spark: "SparkSession", settings: ReplaySettings, *, progress: bool = True) -> JobResult:
    """Replay a topic."""
    started = monotonic()
    function = load_function(settings.function) if settings.function else None
    slices, items = prepare(settings)
    if not slices:
        return summarize(settings, slices, [], monotonic() - started)
    records = read_slices(spark, settings.location, slices)
    rows = filter_and_select(records, settings.where, settings.select)
    outcomes = [
        pickle.loads(row.result)  # noqa: S301 - written by our own tasks.
        for row in collect_with_progress(
            map_in_arrow(rows, partial(write, items, function), "result binary"),
            description=f"replaying {settings.topic}",
            task_count=len(slices),
            progress=progress,
        )
    ]
    for outcome in outcomes:
        if isinstance(outcome, TaskFailure):
            raise outcome.error()
    return summarize(settings, slices, outcomes, monotonic() - started)


def prepare(settings: ReplaySettings) -> tuple[list[Slice], dict[int, ReplayItem]]:
    """List the source and read the progress; return what is left to do."""
    bootstrap = parse_addresses(settings.bootstrap)
    options = parse(
        {
            "subscribe": settings.topic,
            "startingOffsetsByTimestampStrategy": "latest",
            "isolationLevel": settings.isolation,
            **settings.bounds,
        }
    )
    query = Query(settings.location, options, ())
    with settings.location.open() as store:
        lister = BucketLister(store, settings.location.namespace)
        offset_map = query.list_offsets(lister)
        partitions = options.subscription.require(offset_map)
        ranges = batch_ranges(query, partitions, query.timestamp_search(store, partitions))
        offset_map = query.load_aborted(lister, offset_map, ranges)
    count = partition_count_of(offset_map, settings.topic)
    target = TargetTopic(
        settings.target, settings.partition_count or count, _target_configs(settings, offset_map)
    )
    if settings.partitioner == KEEP and target.partition_count != count:
        raise InvalidRequestError(
            f"{settings.topic} has {count} partitions, {settings.target} would have"
            f" {target.partition_count}: set the partitioner to key"
        )
    with BlockingClient(bootstrap, settings.security) as client:
        ids, progress = client.run(partial(_read_progress, settings, target, count))
    slices = []
    for one in ranges:
        start = max(one.start_offset, progress[one.partition].resume_offset())
        if start < one.end_offset:
            partition = offset_map.partitions[one.topic, one.partition]
            slices.append(Slice.of(partition, start, one.end_offset))
    items = {
        one.partition: ReplayItem(
            settings.topic,
            one.partition,
            bootstrap,
            settings.target,
            target.partition_count,
            settings.partitioner,
            settings.codec,
            ids[one.partition],
            progress[one.partition],
            settings.security,
        )
        for one in slices
    }
    return slices, items


def write(
    items: Mapping[int, ReplayItem],
    function: Function | None,
    batches: Iterable[pa.RecordBatch],
    step: Callable[[str], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """Write the records of a task; `step` gets the name of each finished step, for tests."""
    outcome: PartitionResult | TaskFailure | None = None
    try:
        outcome = _write_partition(items, function, batches, step)
    except KafscaleError as error:
        outcome = TaskFailure.of(error)
    if outcome is not None:
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(outcome)])], schema=_RESULT)


def _write_partition(
    items: Mapping[int, ReplayItem],
    function: Function | None,
    batches: Iterable[pa.RecordBatch],
    step: Callable[[str], None],
) -> PartitionResult | None:
    """Write the records of one source partition; None if there are none."""
    sink: Sink | None = None
    client: BlockingClient | None = None
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            if sink is None:
                item = items[batch.column("partition")[0].as_py()]
                client = BlockingClient(item.bootstrap, item.security)
                sink = Sink(item, client)
                step("opened")
            sink.write(apply_function(function, batch) if function else batch)
            step("written")
        return sink.finish() if sink is not None else None
    finally:
        if client is not None:
            client.close()


def summarize(
    settings: ReplaySettings,
    slices: Sequence[Slice],
    results: Sequence[PartitionResult],
    seconds: float,
) -> JobResult:
    read = {one.partition: one.count for one in slices}
    return JobResult(
        "replay",
        ("partition", "offsets", "records", "written", "batches", "writtenBytes"),
        tuple(
            (
                one.partition,
                read[one.partition],
                one.record_count,
                one.written_count,
                one.batch_count,
                one.written_bytes,
            )
            for one in sorted(results, key=lambda one: one.partition)
        ),
        {
            "topic": settings.topic,
            "target": settings.target,
            "offsets": sum(read.values()),
            "records": sum(one.record_count for one in results),
            "written": sum(one.written_count for one in results),
            "seconds": round(seconds, 3),
        },
    )


def _target_configs(settings: ReplaySettings, offset_map: OffsetMap) -> dict[str, str]:
    """Return the configs of the source, with a message size that allows for the source header."""
    configs = configs_like(offset_map, settings.topic, {})
    largest = int(configs.get("max.message.bytes", MESSAGE_BYTES_DEFAULT))
    size = str(largest + SOURCE_HEADER_BYTES_MAX)
    return {**configs, "max.message.bytes": size, **settings.configs}


async def _read_progress(
    settings: ReplaySettings, target: TargetTopic, source_count: int, client: Client
) -> tuple[dict[int, int], dict[int, Progress]]:
    """Return the producer id and the progress of each source partition."""
    topic, _ = await target.find_or_create(client)
    ids = {
        source: producer_id_of("replay", topic.topic_id, *settings.definition, source)
        for source in range(source_count)
    }
    ends: dict[int, int] = {}
    last_written: dict[int, dict[int, LastWritten]] = {}
    for index in range(target.partition_count):
        expected = [ids[index]] if settings.partitioner == KEEP else list(ids.values())
        ends[index], last_written[index] = await find_last_written(
            Partition(client, topic, index), expected
        )
    progress = {}
    for source, producer_id in ids.items():
        own = [source] if settings.partitioner == KEEP else list(ends)
        written = {
            index: last_written[index][producer_id]
            for index in own
            if producer_id in last_written[index]
        }
        progress[source] = Progress({index: ends[index] for index in own}, written)
    return ids, progress
