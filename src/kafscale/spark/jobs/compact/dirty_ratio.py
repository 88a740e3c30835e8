"""Reads from the bucket what decides whether a partition is dirty: checkpoints and timestamps.

A checkpoint has the clean ends of a topic's partitions, like Kafka's `cleaner-offset-checkpoint`:

    {namespace}/_catalog/compaction/{topic}.json

It decides only whether compaction is worthwhile. If it is lost, or belongs to a deleted topic of
the same name, everything counts as dirty.

The first segment of the head is found by a lookup by timestamp. If an index is missing or does not
have timestamps, segments are checked one by one, and the modification time of an object stands in
for timestamps that are not stored.
"""

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.records.batch import HEADER, HEADER_BYTES, BatchHeader
from kafscale.spark.jobs.compact.candidates import Candidate
from kafscale.spark.jobs.shared.segment_group import segments_of
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.spark.read.timestamp_lookup import first_segment
from kafscale.storage.bucket import read_index
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.text.json import DECODE_ERRORS


class Checkpoint(msgspec.Struct, frozen=True):
    """The clean ends of the partitions of a topic."""

    topic_id: str
    """As 32 hexadecimal digits."""
    ends: dict[int, int] = {}


def checkpoint_key(namespace: str, topic: str) -> str:
    return f"{checkpoint_prefix(namespace)}{topic}.json"


def checkpoint_prefix(namespace: str) -> str:
    return f"{namespace}/{object_keys.CATALOG_DIRECTORY}/compaction/"


def read_checkpoint(
    store: BlockingObjectStore, namespace: str, topic: str, topic_id: bytes
) -> dict[int, int]:
    """Return the known clean ends of a topic by partition."""
    try:
        data = store.get(checkpoint_key(namespace, topic))
        checkpoint = msgspec.json.decode(data, type=Checkpoint)
    except (ObjectNotFoundError, *DECODE_ERRORS):
        return {}
    return dict(checkpoint.ends) if checkpoint.topic_id == topic_id.hex() else {}


def write_checkpoint(
    store: BlockingObjectStore, namespace: str, topic: str, topic_id: bytes, ends: Mapping[int, int]
) -> None:
    """Write the clean ends of some partitions, and keep those of the others."""
    known = read_checkpoint(store, namespace, topic, topic_id)
    checkpoint = Checkpoint(topic_id.hex(), known | dict(ends))
    key = checkpoint_key(namespace, topic)
    store.put(key, [msgspec.json.encode(checkpoint)], create=False)


def head_start(
    store: BlockingObjectStore, partition: PartitionOffsets, limit_ms: int
) -> int | None:
    """Return the start of the first segment with a record after a time; None if there is none."""
    segments = segments_of(partition)
    first = first_segment(store, segments, limit_ms + 1)
    if first is None:
        young = (each for each in segments if _max_timestamp_ms(store, each) > limit_ms)
        return next((each.start_offset for each in young), None)
    return segments[first].start_offset if first < len(segments) else None


def dirty_since_ms(store: BlockingObjectStore, candidate: Candidate) -> int | None:
    """Return the time of the first dirty batch; None if it no longer exists."""
    dirty = [each for each in candidate.cleanable if each.end_offset > candidate.clean_end]
    if dirty:
        start = dirty[0].position
        with suppress(ObjectNotFoundError):
            head = store.get_range(dirty[0].key, start, start + HEADER_BYTES)
            return BatchHeader._make(HEADER.unpack_from(head)).max_timestamp_ms
    return None


def _max_timestamp_ms(store: BlockingObjectStore, source: Extent) -> int:
    entries = store.run(lambda objects: read_index(objects, source.key, source.segment_bytes))
    greatest_ms = entries.max_timestamp_ms if entries else None
    if greatest_ms is not None and greatest_ms >= 0:
        return greatest_ms
    return store.head(source.key).modified_ms
