"""Decompression bombs: compressed records that expand when they are produced or consumed."""

import gzip
import time
from functools import cache

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Codec, Record, message_set
from kafscale.records.batch import TimestampType
from kafscale.records.checksum import crc32
from services.attack import AttackHarness
from services.selection import long_except
from services.wire import batch_of, records_of

pytestmark = pytest.mark.timeout(120)

DECOMPRESSED_BYTES = 100 << 20
MEMORY_BYTES_MAX = 160 << 20
PAUSE_S_MAX = 1.0


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    with AttackHarness(tmp_path_factory.mktemp("attack")) as running:
        yield running


@pytest.fixture(scope="module")
def bomb():
    """A batch of 100 KB that decompresses to 100 MB."""
    created = batch_of([bytes(DECOMPRESSED_BYTES)], codec=Codec.GZIP)
    assert len(created) < 200_000
    return created


def compressed_set(inner: bytes) -> bytearray:
    """A compressed message set (magic 1): one message whose value is the inner set."""
    output = bytearray()
    record = Record(offset=0, timestamp_ms=1, key=None, value=gzip.compress(inner))
    message_set.append(output, record, 1, TimestampType.CREATE_TIME)
    output[17] |= Codec.GZIP
    output[12:16] = crc32(memoryview(output)[16:]).to_bytes(4, "big")
    return output


@cache
def message_set_of(value_bytes: int, count: int) -> bytes:
    output = bytearray()
    for offset in range(count):
        record = Record(offset=offset, timestamp_ms=1, key=None, value=bytes(value_bytes))
        message_set.append(output, record, 1, TimestampType.CREATE_TIME)
    return bytes(output)


def test_bombs_are_read_with_bounded_memory_while_others_are_served(attack, bomb):
    """Every record is read when it is produced: large batches in a thread."""
    with attack.assert_unharmed(), attack.admin() as wire:
        wire.create("bombs")

        def produce():
            for _ in range(5):
                began = time.monotonic()
                assert wire.produce("bombs", bomb).error_code == 0
                assert time.monotonic() - began < 5 * PAUSE_S_MAX

        assert attack.measure_peak_bytes(produce) < 3 * DECOMPRESSED_BYTES
        fetched = wire.fetch("bombs", partition_max_bytes=1 << 20, version=11)
        assert sum(map(len, fetched.records)) == 5 * len(bomb)


@pytest.mark.parametrize("version", long_except([0, 2], (2).__eq__))
@pytest.mark.parametrize(
    ("value_bytes", "count"), [(DECOMPRESSED_BYTES, 1), (1 << 20, 100), (0, 400_000)]
)
def test_message_set_that_expands_too_far_is_rejected(attack, version, value_bytes, count):
    """Message sets are decompressed for conversion to batches, up to a limit."""
    message_set_bytes = compressed_set(message_set_of(value_bytes, count))
    with attack.assert_unharmed(), attack.admin() as wire:
        wire.create(f"old-{version}-{count}")

        def produce():
            began = time.monotonic()
            response = wire.produce(f"old-{version}-{count}", message_set_bytes, version=version)
            assert response.error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert time.monotonic() - began < PAUSE_S_MAX

        assert attack.measure_peak_bytes(produce) < MEMORY_BYTES_MAX


def test_nested_compression_is_rejected(attack):
    """One level is decompressed, as in Kafka; it must not contain another one."""
    with attack.assert_unharmed(), attack.admin() as wire:
        wire.create("nested")
        inner = compressed_set(compressed_set(message_set_of(1 << 20, 1)))
        response = wire.produce("nested", inner, version=2)
        assert response.error_code in {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("version", long_except([0, 2, 3], (3).__eq__))
def test_bombs_for_old_consumers_use_bounded_memory(attack, bomb, version):
    """Down-conversion returns what is readable or an error, with bounded memory."""
    with attack.assert_unharmed(), attack.admin() as wire, attack.admin() as other:
        topic = f"read-{version}"
        wire.create(topic)
        assert wire.produce(topic, batch_of([b"first"])).error_code == 0
        for _ in range(8):
            assert wire.produce(topic, bomb).error_code == 0
        other.create(f"other-{version}")

        def fetch():
            wire.fetch(topic, version=version, partition_max_bytes=8 << 20, max_bytes=8 << 20)

        assert attack.measure_peak_bytes(fetch) < MEMORY_BYTES_MAX
        began = time.monotonic()
        assert other.produce(f"other-{version}", batch_of([b"value"])).error_code == 0
        assert time.monotonic() - began < PAUSE_S_MAX
        assert records_of(wire.fetch(topic, version=11))[0].value == b"first"


def test_many_bombs_in_one_request_do_not_block_the_broker(attack):
    """Each one is rejected, and other requests are served in between."""
    message_set_bytes = memoryview(compressed_set(message_set_of(DECOMPRESSED_BYTES, 1)))
    parts = [PartitionToProduce(index=index, records=message_set_bytes) for index in range(60)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topics=[TopicToProduce("many", partitions=parts)]
    )
    with attack.assert_unharmed(), attack.admin() as wire, attack.admin() as other:
        wire.create("many", partitions=len(parts))
        other.create("other")
        wire.send(PRODUCE, 2, request)
        began = time.monotonic()
        assert other.produce("other", batch_of([b"value"])).error_code == 0
        assert time.monotonic() - began < PAUSE_S_MAX
        _, response = wire.receive(PRODUCE, 2)
        codes = {partition.error_code for partition in response.topics[0].partitions}
        assert codes == {ErrorCode.MESSAGE_TOO_LARGE}
