"""Little that becomes a lot: compressed records that swell as they come, or as they are read."""

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
from kafscale.records import Codec, Record
from kafscale.records.batch import TimestampType
from kafscale.records.checksum import crc32
from kafscale.records.legacy import message_set
from services.siege import Siege
from services.wire import batch_of, records_of

pytestmark = pytest.mark.timeout(120)

SWOLLEN_BYTES = 100 << 20
MEMORY_BYTES_MAX = 160 << 20
PAUSE_S_MAX = 1.0


@pytest.fixture(scope="module")
def siege(tmp_path_factory):
    with Siege(tmp_path_factory.mktemp("siege")) as running:
        yield running


@pytest.fixture(scope="module")
def bomb():
    """A batch of a hundred kilobytes that holds a hundred megabytes."""
    made = batch_of([bytes(SWOLLEN_BYTES)], codec=Codec.GZIP)
    assert len(made) < 200_000
    return made


def wrapped(inner: bytes) -> bytearray:
    """A message set as producers of old compress it: one message, whose value is the set."""
    output = bytearray()
    record = Record(offset=0, timestamp_ms=1, key=None, value=gzip.compress(inner))
    message_set.append(output, record, 1, TimestampType.CREATE_TIME)
    output[17] |= Codec.GZIP
    output[12:16] = crc32(memoryview(output)[16:]).to_bytes(4, "big")
    return output


@cache
def old_set(value_bytes: int, count: int) -> bytes:
    output = bytearray()
    for offset in range(count):
        record = Record(offset=offset, timestamp_ms=1, key=None, value=bytes(value_bytes))
        message_set.append(output, record, 1, TimestampType.CREATE_TIME)
    return bytes(output)


def test_what_comes_compressed_is_stored_as_it_is(siege, bomb):
    """Nothing looks into it: a bomb costs what it weighs."""
    with siege.unharmed(), siege.admin() as wire:
        wire.create("bombs")

        def produce():
            for _ in range(5):
                began = time.monotonic()
                assert wire.produce("bombs", bomb).error_code == 0
                assert time.monotonic() - began < PAUSE_S_MAX

        assert siege.peak_bytes(produce) < 16 << 20
        fetched = wire.fetch("bombs", partition_max_bytes=1 << 20, version=11)
        assert sum(map(len, fetched.records)) == 5 * len(bomb)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("value_bytes", "count"), [(SWOLLEN_BYTES, 1), (1 << 20, 100), (0, 400_000)]
)
def test_a_message_set_of_old_that_swells_is_refused(siege, version, value_bytes, count):
    """Those have to be opened, to be made into batches; but only so far."""
    swelling = wrapped(old_set(value_bytes, count))
    with siege.unharmed(), siege.admin() as wire:
        wire.create(f"old-{version}-{count}")

        def produce():
            began = time.monotonic()
            answer = wire.produce(f"old-{version}-{count}", swelling, version=version)
            assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert time.monotonic() - began < PAUSE_S_MAX

        assert siege.peak_bytes(produce) < MEMORY_BYTES_MAX


def test_bombs_within_bombs(siege):
    """One level is opened, as Kafka does; what is inside it must not be another."""
    with siege.unharmed(), siege.admin() as wire:
        wire.create("nested")
        inner = wrapped(wrapped(old_set(1 << 20, 1)))
        answer = wire.produce("nested", inner, version=2)
        assert answer.error_code in {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("version", [0, 2, 3])
def test_bombs_that_have_to_be_opened_for_consumers_of_old(siege, bomb, version):
    """They get what they can read, or an error; the broker does not swell with it."""
    with siege.unharmed(), siege.admin() as wire, siege.admin() as honest:
        topic = f"read-{version}"
        wire.create(topic)
        assert wire.produce(topic, batch_of([b"first"])).error_code == 0
        for _ in range(8):
            assert wire.produce(topic, bomb).error_code == 0
        honest.create(f"honest-{version}")

        def fetch():
            wire.fetch(topic, version=version, partition_max_bytes=8 << 20, max_bytes=8 << 20)

        assert siege.peak_bytes(fetch) < MEMORY_BYTES_MAX
        began = time.monotonic()
        assert honest.produce(f"honest-{version}", batch_of([b"value"])).error_code == 0
        assert time.monotonic() - began < PAUSE_S_MAX
        assert records_of(wire.fetch(topic, version=11))[0].value == b"first"


def test_many_bombs_in_one_request_do_not_stop_the_broker(siege):
    """Each is refused, and others have their turn before all of them are."""
    swelling = memoryview(wrapped(old_set(SWOLLEN_BYTES, 1)))
    parts = [PartitionToProduce(index=index, records=swelling) for index in range(60)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topics=[TopicToProduce("many", partitions=parts)]
    )
    with siege.unharmed(), siege.admin() as wire, siege.admin() as honest:
        wire.create("many", partitions=len(parts))
        honest.create("honest")
        wire.send(PRODUCE, 2, request)
        began = time.monotonic()
        assert honest.produce("honest", batch_of([b"value"])).error_code == 0
        assert time.monotonic() - began < PAUSE_S_MAX
        _, answer = wire.receive(PRODUCE, 2)
        codes = {partition.error_code for partition in answer.topics[0].partitions}
        assert codes == {ErrorCode.MESSAGE_TOO_LARGE}
