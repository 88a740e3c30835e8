"""Fetch: waiting, limits, sessions, old versions, and offsets out of range."""

import threading
import time

import pytest

from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.records import message_set
from services.wire import EARLIEST, LATEST, Wire, batch_of, records_of

MIB = 1 << 20
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, FENCED_EPOCH, UNKNOWN_EPOCH = 1, 3, 74, 75


def fetch_request(topic, **settings):
    partition = PartitionToFetch(max_bytes=MIB)
    return FetchRequest(topics=[TopicToFetch(topic, partitions=[partition])], **settings)


def test_produce_completes_a_waiting_fetch(broker, wire, topic):
    wire.create(topic)
    produced_at: list[float] = []

    def produce() -> None:
        time.sleep(0.3)
        with Wire(broker.port) as other:
            other.produce(topic, batch_of([b"value"]))
            produced_at.append(time.monotonic())

    producer = threading.Thread(target=produce)
    producer.start()
    fetched = wire.fetch(topic, max_wait_ms=8000)
    completed_at = time.monotonic()
    producer.join()
    assert [record.value for record in records_of(fetched)] == [b"value"]
    assert completed_at - produced_at[0] < 0.2


def test_fetch_without_data_returns_after_max_wait(wire, topic):
    wire.create(topic)
    began = time.monotonic()
    assert records_of(wire.fetch(topic, max_wait_ms=300)) == []
    assert 0.29 <= time.monotonic() - began < 0.6


def test_fetch_waits_for_min_bytes(wire, topic):
    wire.create(topic)
    wire.produce(topic, batch_of([b"small"]))
    began = time.monotonic()
    fetched = wire.fetch(topic, max_wait_ms=300, min_bytes=10_000)
    assert time.monotonic() - began >= 0.29
    assert len(records_of(fetched)) == 1


def test_fetch_starts_at_the_batch_that_contains_its_offset(wire, topic):
    """N-06: readers always make progress."""
    wire.create(topic)
    for _ in range(90):
        wire.produce(topic, batch_of([bytes(20_000)]))
    assert records_of(wire.fetch(topic, 80, max_bytes=MIB))[0].offset == 80
    wire.produce(topic, batch_of([b"%d" % index for index in range(10)]))
    assert records_of(wire.fetch(topic, 95))[0].offset == 90


def test_first_batch_is_returned_despite_limits(wire, topic):
    wire.create(topic, max_message_bytes=3 * MIB)
    assert wire.produce(topic, batch_of([bytes(2 * MIB)])).error_code == 0
    wire.produce(topic, batch_of([b"next"]))
    fetched = wire.fetch(topic, max_bytes=MIB, partition_max_bytes=MIB)
    assert [len(record.value) for record in records_of(fetched)] == [2 * MIB]


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_limits_apply_to_whole_batches(wire, topic, limit):
    wire.create(topic)
    for _ in range(10):
        wire.produce(topic, batch_of([bytes(10_000)]))
    fetched = wire.fetch(topic, **{limit: 35_000})
    size_bytes = sum(map(len, fetched.records))
    assert size_bytes <= 35_000
    assert len(records_of(fetched)) == 3


def test_offset_out_of_range_is_an_error(wire, topic):
    wire.create(topic)
    wire.produce(topic, batch_of([b"value"]))
    assert wire.fetch(topic, 1).error_code == 0
    assert wire.fetch(topic, 2).error_code == OFFSET_OUT_OF_RANGE
    assert wire.fetch(topic, -3).error_code == OFFSET_OUT_OF_RANGE
    assert wire.fetch(topic, 0, partition=1).error_code == UNKNOWN_TOPIC
    assert wire.fetch(f"{topic}-missing").error_code == UNKNOWN_TOPIC


@pytest.mark.parametrize("version", [0, 4, 11])
def test_offsets_minus_one_and_minus_two_are_the_end_and_the_beginning(wire, topic, version):
    wire.create(topic)
    for value in (b"deleted", b"first", b"last"):
        wire.produce(topic, batch_of([value]))
    trimming = [TopicToTrim(topic, [PartitionToTrim(0, 1)])]
    wire.call(DELETE_RECORDS, 2, DeleteRecordsRequest(trimming, 10_000))

    fetched = wire.fetch(topic, EARLIEST, version=version)
    assert fetched.error_code == 0
    expected = wire.fetch(topic, 1, version=version)
    assert b"".join(fetched.records) == b"".join(expected.records) != b""
    fetched = wire.fetch(topic, LATEST, version=version)
    assert (fetched.error_code, fetched.high_watermark) == (0, 3)
    assert not b"".join(fetched.records)


def test_fetch_at_minus_one_waits_for_the_next_record(broker, wire, topic):
    """The end is that of the moment when the request came."""
    wire.create(topic)
    wire.produce(topic, batch_of([b"before"]))
    request = fetch_request(topic)
    request.max_wait_ms, request.min_bytes = 10_000, 1
    request.topics[0].partitions[0].offset = LATEST
    with Wire(broker.port) as waiting:
        waiting.send(FETCH, 11, request)
        wire.fetch(topic)
        wire.produce(topic, batch_of([b"after"]))
        fetched = waiting.receive(FETCH, 11)[1].topics[0].partitions[0]
    assert [record.value for record in records_of(fetched)] == [b"after"]


def test_unknown_leader_epoch_is_an_error(wire, topic):
    wire.create(topic)
    request = fetch_request(topic)
    request.topics[0].partitions[0].current_leader_epoch = 1000
    response = wire.call(FETCH, 11, request)
    assert response.topics[0].partitions[0].error_code == UNKNOWN_EPOCH


def test_fetch_session_returns_changed_partitions_only(wire, topic):
    wire.create(topic, 2)
    partitions = [PartitionToFetch(index=index, max_bytes=MIB) for index in range(2)]
    first = wire.call(
        FETCH,
        11,
        FetchRequest(session_epoch=0, topics=[TopicToFetch(topic, partitions=partitions)]),
    )
    assert first.session_id
    assert len(first.topics[0].partitions) == 2

    wire.produce(topic, batch_of([b"value"]), partition=1)
    second = wire.call(FETCH, 11, FetchRequest(session_id=first.session_id, session_epoch=1))
    assert second.error_code == 0
    ((changed,),) = [each.partitions for each in second.topics]
    assert changed.index == 1
    assert [record.value for record in records_of(changed)] == [b"value"]

    stale = wire.call(FETCH, 11, FetchRequest(session_id=first.session_id, session_epoch=9))
    assert stale.error_code == 71
    unknown = wire.call(FETCH, 11, FetchRequest(session_id=12345, session_epoch=1))
    assert unknown.error_code == 70


@pytest.mark.parametrize("version", range(12))
def test_all_versions_with_topic_names_return_the_same_records(wire, topic, version):
    wire.create(topic)
    wire.produce(topic, batch_of([b"one", b"two"]))
    fetched = wire.fetch(topic, version=version)
    assert (fetched.error_code, fetched.high_watermark) == (0, 2)
    if version < 4:
        data = b"".join(fetched.records)
        read = [message.record for message in message_set.read(data)]
    else:
        read = records_of(fetched)
    assert [(record.offset, record.value) for record in read] == [(0, b"one"), (1, b"two")]


def test_offsets_are_found_by_timestamp(wire, topic):
    wire.create(topic)
    for number in range(5):
        wire.produce(topic, batch_of([b"", b""], timestamp_ms=1000 + 10 * number))
    assert wire.offset(topic, 1000).offset == 0
    result = wire.offset(topic, 1011)
    assert (result.offset, result.timestamp_ms) == (4, 1020)
    assert wire.offset(topic, 2000).offset == -1
    assert wire.offset(topic, LATEST).offset == 10
    assert wire.offset(topic, -3).timestamp_ms == 1040
