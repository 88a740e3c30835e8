"""Writes segments and WAL objects to a store, as brokers write them."""

from collections.abc import Sequence

from kafscale.records import BatchView, Codec, Record, build
from kafscale.spark.plan.task_planner import OffsetRange, Slice, plan
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectInfo

NAMESPACE = "default"
TOPIC = "orders"
TOPIC_ID = b"i" * 16
BATCH_RECORDS = 5


def blocking(store: MemoryObjectStore | None = None) -> BlockingObjectStore:
    return BlockingObjectStore(lambda: store or MemoryObjectStore(lambda: 0))


class HeadStore(MemoryObjectStore):
    """Collects the keys of HEAD requests."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.head_keys: list[str] = []

    async def head(self, key: str) -> ObjectInfo:
        self.head_keys.append(key)
        return await super().head(key)


def value_of(offset: int) -> bytes:
    return b"value %d" % offset


def batch(
    offset: int, count: int = BATCH_RECORDS, *, codec: Codec = Codec.NONE, time_ms: int = 1000
) -> BatchView:
    records = [
        Record(offset + number, time_ms + offset + number, b"key", value_of(offset + number))
        for number in range(count)
    ]
    created = BatchView(build(records, codec=codec))
    created.stamp(offset, 0)
    return created


def batches(offsets: range, **options: object) -> list[BatchView]:
    return [
        batch(start, min(BATCH_RECORDS, offsets.stop - start), **options)
        for start in range(offsets.start, offsets.stop, BATCH_RECORDS)
    ]


def put_segment(
    store: BlockingObjectStore,
    offsets: range,
    *,
    topic: str = TOPIC,
    partition: int = 0,
    indexed: bool = True,
    interval_bytes: int = 1,
) -> str:
    """Write a segment, replacing an existing one; return its key."""
    builder = segment.Builder(
        0, interval_bytes, compression=None, prior_max_timestamp_ms=999 + offsets.start
    )
    for one in batches(offsets):
        builder.append(one)
    built = builder.finish()
    key = object_keys.segment_key(NAMESPACE, topic, partition, offsets.start)
    store.put(key, built.parts, create=False)
    if indexed:
        index_key = object_keys.index_key(NAMESPACE, topic, partition, offsets.start)
        store.put(index_key, [built.index], create=False)
    return key


def put_wal(
    store: BlockingObjectStore,
    sequence: int,
    *ranges: range,
    topic: str = TOPIC,
    topic_id: bytes = TOPIC_ID,
    broker_id: int = 0,
    epoch: int = 0,
    partition: int = 0,
    trimmed_to: int = 0,
) -> str:
    """Write a WAL object with these offsets of one partition; without any, an opening object."""
    header = wal_object.Header(broker_id, epoch, sequence, 0, trimmed_to)
    created = [
        wal_object.PartitionData(
            topic_id,
            topic,
            partition,
            one.buffer,
            one.base_offset,
            one.last_offset,
            one.max_timestamp_ms,
        )
        for offsets in ranges
        for one in batches(offsets)
    ]
    parts = wal_object.encode(header, created) if created else wal_object.encode_empty(header)
    key = object_keys.wal_key(NAMESPACE, broker_id, epoch, sequence)
    store.put(key, parts)
    return key


def put_fence(store: BlockingObjectStore, sequence: int, *, epoch: int = 0) -> None:
    header = wal_object.Header(0, epoch, sequence, 0, is_fence=True)
    store.put(object_keys.wal_key(NAMESPACE, 0, epoch, sequence), wal_object.encode_empty(header))


def slices(store: BlockingObjectStore, offsets: range | None = None, **how: int) -> list[Slice]:
    """Plan the offsets of the first partition of the topic."""
    result = list_bucket(store, NAMESPACE, [TOPIC])
    log = result.partitions[TOPIC, 0]
    selected = offsets or range(log.start_offset, log.end_offset)
    tasks = plan(result, [OffsetRange(TOPIC, 0, selected.start, selected.stop)], **how)
    return [part for task in tasks for part in task.slices]


def offsets_of(found: Sequence[BatchView]) -> list[int]:
    return [offset for one in found for offset in range(one.base_offset, one.next_offset)]
