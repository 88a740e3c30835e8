"""Produce: rejected batches, idempotent retries, and timestamps."""

import time

import pytest

from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.records import Codec, Record, TimestampType, down_convert, split
from services.wire import Wire, batch_of, produce_request, records_of

CORRUPT, TOO_LARGE, INVALID_ACKS, OUT_OF_ORDER, OLD_EPOCH = 2, 10, 21, 45, 47
INVALID_RECORD, UNSUPPORTED_CODEC = 87, 76


@pytest.fixture
def producer_id(wire) -> int:
    response = wire.call(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None))
    assert (response.error_code, response.producer_epoch) == (0, 0)
    return response.producer_id


def test_each_producer_gets_its_own_id(wire):
    ids = [wire.call(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None)).producer_id for _ in "123"]
    assert len(set(ids)) == 3


def test_retried_batch_is_acknowledged_again_and_stored_once(broker, wire, topic, producer_id):
    wire.create(topic)
    batches = [
        batch_of([b"%d" % number], producer_id=producer_id, producer_epoch=0, base_sequence=number)
        for number in range(6)
    ]
    assert [wire.produce(topic, batch).base_offset for batch in batches] == list(range(6))
    for number in (5, 3, 1):
        again = wire.produce(topic, batches[number])
        assert (again.error_code, again.base_offset) == (0, number)
    with Wire(broker.port) as other:
        assert other.produce(topic, batches[5]).base_offset == 5
    assert [record.value for record in wire.read(topic)] == [b"%d" % n for n in range(6)]


def test_batch_with_lost_response_is_stored_once(broker, wire, topic, producer_id):
    """N-12: the response is lost, so the producer sends the batch again."""
    wire.create(topic)
    batch = batch_of([b"once"], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    with Wire(broker.port) as disconnected:
        disconnected.send(PRODUCE, 9, produce_request(topic, batch))
    assert wire.produce(topic, batch).base_offset == 0
    assert [record.value for record in wire.read(topic)] == [b"once"]


def test_sequence_gap_and_old_producer_epoch_are_rejected(wire, topic, producer_id):
    wire.create(topic)

    def produce(epoch: int, sequence: int) -> int:
        batch = batch_of(
            [b"value"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        return wire.produce(topic, batch).error_code

    assert produce(0, 0) == 0
    assert produce(0, 2) == OUT_OF_ORDER
    assert produce(1, 0) == 0
    assert produce(0, 1) == OLD_EPOCH
    assert len(wire.read(topic)) == 2


def test_invalid_batches_get_their_error_code_and_are_not_stored(wire, topic):
    wire.create(topic, max_message_bytes=10_000)
    good = batch_of([b"value"])
    corrupt = bytearray(good)
    corrupt[-1] ^= 1
    assert wire.produce(topic, corrupt).error_code == CORRUPT
    assert wire.produce(topic, good[:-1]).error_code == CORRUPT
    assert wire.produce(topic, good + good, version=3).error_code == INVALID_RECORD
    for magic in (0, 1):
        message_set = bytes(down_convert(split(good), magic=magic))
        assert wire.produce(topic, message_set, version=3).error_code == INVALID_RECORD
    assert wire.produce(topic, batch_of([bytes(10_000)])).error_code == TOO_LARGE
    assert wire.produce(topic, good, acks=5).error_code == INVALID_ACKS
    assert wire.produce(topic, good, partition=7).error_code == 3
    zstd = batch_of([b"value"], codec=Codec.ZSTD)
    assert wire.produce(topic, zstd, version=6).error_code == UNSUPPORTED_CODEC
    assert wire.read(topic) == []
    assert wire.produce(topic, good).base_offset == 0


@pytest.mark.parametrize("first", ["large", "message set", "new topic"])
def test_pipelined_requests_are_appended_in_their_order(wire, topic, producer_id, first):
    """Also if the first batch is read in a thread, or its topic created: there is no gap."""
    if first != "new topic":
        wire.create(topic, max_message_bytes=1 << 24)
    producer = {"producer_id": producer_id, "producer_epoch": 0}
    version, values = 9, [bytes(3 << 20 if first == "large" else 1)] * 3
    batches = [batch_of(values, codec=Codec.GZIP, base_sequence=0, **producer)]
    batches += [batch_of([b"%d" % n], base_sequence=3 + n, **producer) for n in range(3)]
    if first == "message set":
        version = 2
        batches[0] = down_convert(split(batches[0]), 1)
        batches[1:] = [batch_of([b"%d" % n]) for n in range(3)]
    for batch in batches:
        wire.send(PRODUCE, version, produce_request(topic, batch))
        version = 9
    answered = [
        wire.receive(PRODUCE, 2 if first == "message set" and not n else 9) for n in range(4)
    ]
    results = [each.topics[0].partitions[0] for _, each in answered]
    assert [(each.error_code, each.base_offset) for each in results] == [
        (0, 0),
        (0, 3),
        (0, 4),
        (0, 5),
    ]


def test_acks_0_has_no_response_and_an_error_closes_the_connection(broker, wire, topic):
    wire.create(topic)
    with Wire(broker.port) as silent:
        silent.send(PRODUCE, 9, produce_request(topic, batch_of([b"value"]), acks=0))
        assert silent.produce(topic, batch_of([b"second"])).base_offset == 1
        silent.send(PRODUCE, 9, produce_request(topic, batch_of([b""]), partition=9, acks=0))
        assert silent.is_closed_by_broker()


def test_log_append_time_is_set_if_configured(wire, topic):
    wire.create(topic, message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    produced = wire.produce(topic, batch_of([b"value"], timestamp_ms=1000))
    assert produced.log_append_time_ms >= before_ms
    fetched = wire.fetch(topic)
    (batch,) = split(b"".join(fetched.records))
    batch.verify_checksum()
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert records_of(fetched)[0].timestamp_ms == produced.log_append_time_ms


@pytest.mark.parametrize("version", range(13))
def test_all_versions_with_topic_names_are_accepted(wire, topic, version):
    wire.create(topic)
    batch = batch_of([b"one", b"two"], timestamp_ms=5000)
    records = bytes(batch)
    if version < 3:
        records = bytes(down_convert(split(batch), magic=1 if version == 2 else 0))
    produced = wire.produce(topic, records, version=version)
    assert (produced.error_code, produced.base_offset) == (0, 0)
    read = wire.read(topic)
    assert [(record.offset, record.value) for record in read] == [(0, b"one"), (1, b"two")]
    if version >= 2:
        assert {record.timestamp_ms for record in read} == {5000}


def test_batches_are_returned_unchanged_except_their_offsets(wire, topic):
    wire.create(topic)
    wire.produce(topic, batch_of([b"first"]))
    record = Record(0, 1000, b"key", b"value")
    batch = batch_of([record.value], timestamp_ms=1000, codec=Codec.LZ4)
    wire.produce(topic, batch)
    stored = split(b"".join(wire.fetch(topic, 1).records))[-1]
    assert stored.base_offset == 1
    assert bytes(stored.buffer[16:]) == bytes(batch[16:])
