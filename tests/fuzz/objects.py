"""Targets of objects in the bucket: segments, indexes, WAL objects, keys and the topic catalog.

The inputs get the checksums that they should have, because almost no mutation leaves them valid.
"""

from collections.abc import Iterator
from contextlib import suppress
from struct import pack_into, unpack_from

from fuzz.records import repaired
from fuzz.target import Target
from kafscale.errors import DamagedObjectError
from kafscale.records import Codec
from kafscale.records.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from kafscale.records.checksum import crc32c
from kafscale.storage import topic_catalog
from kafscale.storage.formats import index, object_keys, segment, verification, wal_object
from kafscale.storage.formats.index_section import decode_section, encode_section
from kafscale.storage.formats.wal_object import PartitionData
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.topic_catalog import CatalogTopic
from unit.storage.samples import CREATED_MS, batch, contiguous_batches

KEY = "key"
NAMESPACE = "default"
INTERVAL_BYTES = 4096
OFFSET_MAX = 2**63 - 1
STATES = (Producers, LeaderEpochs)
TOPIC_ID = bytes(range(16))


def _joined(parts: list) -> bytes:
    return b"".join(parts)


# --- segments and indexes ---------------------------------------------------------------------


def read_segment(data: bytes) -> None:
    """A verified segment has an index that verifies; what is left of any other is verified."""
    data = _with_segment_checksums(data)
    segment.salvage(data)
    found = verification.verify_segment(KEY, data, None)
    rebuilt = index.rebuild(found.batches, INTERVAL_BYTES).encode()
    verification.verify_index(KEY, rebuilt, None, found.batches)


def _with_segment_checksums(data: bytes) -> bytearray:
    changed = bytearray(data)
    end = len(changed) - segment.FOOTER_BYTES
    if end < segment.HEADER_BYTES:
        return changed
    position = segment.HEADER_BYTES
    while position + BATCH_HEADER_BYTES <= end:
        (length,) = unpack_from(">i", changed, position + 8)
        batch_end = position + 12 + length
        if length < 0 or batch_end > end:
            break
        if length >= BATCH_HEADER_BYTES - 12:
            changed[position:batch_end] = repaired(changed[position:batch_end])
        position = batch_end
    pack_into(">I", changed, end, crc32c(memoryview(changed)[segment.HEADER_BYTES : end]))
    return changed


def _built(codec: Codec) -> segment.Built:
    builder = segment.Builder(
        CREATED_MS, INTERVAL_BYTES, compression=codec, prior_max_timestamp_ms=None
    )
    for each in contiguous_batches(7, [3, 1, 120]):
        builder.append(each)
    return builder.finish()


def segment_seeds() -> Iterator[bytes]:
    for codec in Codec:
        yield _joined(_built(codec).parts)


def read_index(data: bytes) -> None:
    """A decoded index has an encoding, which is decoded to the same entries."""
    changed = bytearray(data)
    if len(changed) > 16 and changed[-12:-8] == index.CHECKSUM_MAGIC:
        pack_into(">I", changed, len(changed) - 4, crc32c(memoryview(changed)[:-12]))
    found = verification.verify_index(KEY, changed, None)
    again = index.decode(KEY, found.encode())
    assert (again.offsets, again.positions) == (found.offsets, found.positions)
    for offset in (-1, 0, 2**62):
        found.find(max(offset, found.offsets[0]))
        found.find_time(offset)


def index_seeds() -> Iterator[bytes]:
    batches = contiguous_batches(7, [100, 100, 100])
    for prior_ms in (None, 5):
        yield index.rebuild(batches, INTERVAL_BYTES, prior_max_timestamp_ms=prior_ms).encode()
    yield (
        b"IDX\0"
        + (1).to_bytes(2)
        + (1).to_bytes(4)
        + (100).to_bytes(4)
        + bytes(2)
        + ((7).to_bytes(8) + (32).to_bytes(4))
    )


def read_section(data: bytes) -> None:
    """A state in a section of an index has an encoding, which is decoded to the same."""
    kind = STATES[data[0] % len(STATES) if data else 0]
    state = kind.decode(KEY, encode_section(1, data[1:]))
    encoded = state.snapshot_at(OFFSET_MAX)
    assert kind.decode(KEY, encoded).snapshot_at(OFFSET_MAX) == encoded


def section_seeds() -> Iterator[bytes]:
    producers, epochs = Producers(), LeaderEpochs()
    for number in range(3):
        producers.record(number, 1, 0, 4, 5 * number, 5 * number + 4, CREATED_MS, 5 * number)
        epochs.assign(number, 10 * number)
    for kind, state in enumerate((producers, epochs)):
        body = decode_section(KEY, 1, state.snapshot_at(OFFSET_MAX))
        yield bytes([kind]) + body


# --- WAL objects ------------------------------------------------------------------------------


def read_wal_object(data: bytes) -> None:
    """Decoded whole, from its end, or salvaged, an object has the same ranges."""
    changed = _with_wal_checksums(data)
    with suppress(DamagedObjectError):
        verification.salvage_wal_object(KEY, changed)
    found = wal_object.decode(KEY, changed)
    assert wal_object.decode_footer(KEY, changed, len(changed)) == found.ranges
    assert wal_object.salvage(KEY, changed) == (found.header, found.ranges)
    for each in found.ranges:
        assert len(found.body(each)) == each.length
    verification.verify_wal_object(KEY, changed, None)


def _with_wal_checksums(data: bytes) -> bytearray:
    """The object with the second copy of its header and table, and with its checksums."""
    changed = bytearray(data)
    header_bytes, footer_bytes = wal_object.HEADER_BYTES, wal_object.FOOTER_BYTES
    if len(changed) < header_bytes + footer_bytes:
        return changed
    (table_bytes,) = unpack_from(">I", changed, 44)
    table = changed[header_bytes : header_bytes + table_bytes]
    pack_into(">I", changed, 48, crc32c(table))
    pack_into(">I", changed, 52, crc32c(memoryview(changed)[:52]))
    tail = bytes(table + changed[:header_bytes])
    if len(changed) >= len(tail) + 8:
        changed[len(changed) - len(tail) - 8 : len(changed) - 8] = tail
    pack_into(">I", changed, len(changed) - 8, crc32c(memoryview(changed)[:-8]))
    return changed


def _piece(topic: str, partition: int, base_offset: int, count: int) -> PartitionData:
    topic_id, last_offset = topic.encode().ljust(16), base_offset + count - 1
    body = batch(base_offset, count).buffer
    return PartitionData(topic_id, topic, partition, body, base_offset, last_offset, CREATED_MS)


def wal_seeds() -> Iterator[bytes]:
    header = wal_object.Header(7, 3, 42, CREATED_MS, 40)
    fence = wal_object.Header(7, 3, 42, CREATED_MS, 40, is_fence=True)
    yield _joined(wal_object.encode_empty(fence))
    yield _joined(wal_object.encode(header, [_piece("orders", 0, 5, 3)]))
    pieces = [_piece("orders", 0, 5, 3), _piece("orders", 1, 0, 1), _piece("größe", 0, 9, 9)]
    yield _joined(wal_object.encode(header, pieces))


# --- keys and the catalog ---------------------------------------------------------------------


def parse_key(data: bytes) -> None:
    """A key of a segment or index is the one that a broker writes."""
    key = data.decode(errors="surrogateescape")
    object_keys.parse(NAMESPACE, key)
    object_keys.parse_staged(NAMESPACE, key)
    object_keys.parse_wal(NAMESPACE, key)
    object_keys.parse_job_run(NAMESPACE, key)
    found = object_keys.parse_segment(NAMESPACE, key)
    if found is not None:
        write = object_keys.index_key if found.is_index else object_keys.segment_key
        assert write(NAMESPACE, found.directory, found.partition, found.base_offset) == key


def key_seeds() -> Iterator[bytes]:
    written = object_keys.segment_key(NAMESPACE, "orders", 3, 77)
    keys = [
        written,
        object_keys.index_key_of(written),
        object_keys.log_start_key(NAMESPACE, "orders", 3),
        object_keys.wal_key(NAMESPACE, 7, 3, 42),
        object_keys.job_run_key(NAMESPACE, "compact", CREATED_MS, "01234567"),
    ]
    return iter([key.encode() for key in keys])


def read_catalog(data: bytes) -> None:
    found = topic_catalog.decode(KEY, data)
    for topic in found.topics:
        assert len(topic.id) == 16
    encoded = topic_catalog.encode(found.topics, deleted_ids=found.deleted_ids)
    assert topic_catalog.decode(KEY, encoded).deleted_ids == found.deleted_ids


def catalog_seeds() -> Iterator[bytes]:
    topic = CatalogTopic("orders", TOPIC_ID.hex(), 3)
    yield topic_catalog.encode([topic], cluster_id="id", revision=7, deleted_ids=[TOPIC_ID])


TARGETS = (
    Target("segments", read_segment, segment_seeds, (DamagedObjectError,)),
    Target("indexes", read_index, index_seeds, (DamagedObjectError,)),
    Target("index sections", read_section, section_seeds, (DamagedObjectError,)),
    Target("WAL objects", read_wal_object, wal_seeds, (DamagedObjectError,)),
    Target("object keys", parse_key, key_seeds, ()),
    Target("topic catalog", read_catalog, catalog_seeds, (DamagedObjectError,)),
)
