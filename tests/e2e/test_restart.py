"""Acknowledged records and offsets survive every kind of restart of a broker."""

import subprocess
import time

import pytest

from kafscale.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from services.broker import BrokerProcess
from services.process import free_port
from services.selection import long_except
from services.wire import EARLIEST, LATEST, Wire, batch_of

pytestmark = pytest.mark.timeout(60)

SMALL_SEGMENTS = {"segment_bytes": "65536", "local_fsync": "false"}


@pytest.mark.parametrize("ending", long_except(["terminate", "kill"], "kill".__eq__))
@pytest.mark.parametrize(
    "settings",
    long_except([{}, SMALL_SEGMENTS], SMALL_SEGMENTS.__eq__),
    ids=["one segment", "many"],
)
def test_records_and_offsets_survive_a_restart(start_broker, ending, settings):
    """T-07, H-15: earliest and latest offsets are unchanged, and traffic continues."""
    broker = start_broker(**settings)
    values = [b"%d " % number * 500 for number in range(200)]
    with Wire(broker.port) as wire:
        wire.create("topic", compression_type="producer")
        for value in values:
            assert wire.produce("topic", batch_of([value])).error_code == 0
    getattr(broker, ending)()
    broker.start()
    with Wire(broker.port) as wire:
        assert wire.offset("topic", EARLIEST).offset == 0
        assert wire.offset("topic", LATEST).offset == 200
        assert wire.produce("topic", batch_of([b"after"])).base_offset == 200
        read = wire.read("topic")
        assert [record.value for record in read] == [*values, b"after"]
        assert [record.offset for record in read] == list(range(201))


def test_stop_flushes_the_tail_within_two_seconds(start_broker):
    """N-07: a record acknowledged in memory only is durable after a stop."""
    broker = start_broker()
    with Wire(broker.port) as wire, Wire(broker.port) as waiting:
        wire.create("topic")
        assert wire.produce("topic", batch_of([b"tail"]), acks=1).error_code == 0
        empty = TopicToFetch("topic", partitions=[PartitionToFetch(offset=1, max_bytes=1 << 20)])
        waiting.send(FETCH, 11, FetchRequest(max_wait_ms=30_000, min_bytes=1, topics=[empty]))
        assert broker.terminate() < 2
    broker.start()
    with Wire(broker.port) as wire:
        assert [record.value for record in wire.read("topic")] == [b"tail"]


def test_record_acknowledged_in_memory_becomes_durable(start_broker):
    """N-07: after the flush interval and one write, without further traffic."""
    broker = start_broker()
    with Wire(broker.port) as wire:
        wire.create("topic")
        assert wire.produce("topic", batch_of([b"alone"]), acks=1).error_code == 0
        time.sleep(0.8)
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        assert [record.value for record in wire.read("topic")] == [b"alone"]


def test_batch_retried_after_a_crash_is_stored_once(start_broker):
    broker = start_broker()
    with Wire(broker.port) as wire:
        wire.create("topic")
        response = wire.call(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None))
        producer = {"producer_id": response.producer_id, "producer_epoch": 0}
        first = batch_of([b"first"], base_sequence=0, **producer)
        assert wire.produce("topic", first).base_offset == 0
    for ending in (broker.kill, broker.terminate):
        ending()
        broker.start()
        with Wire(broker.port) as wire:
            again = wire.produce("topic", first)
            assert (again.error_code, again.base_offset) == (0, 0)
    with Wire(broker.port) as wire:
        second = batch_of([b"second"], base_sequence=1, **producer)
        assert wire.produce("topic", second).base_offset == 1
        assert [record.value for record in wire.read("topic")] == [b"first", b"second"]
        other = wire.call(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None))
        assert other.producer_id != response.producer_id


@pytest.mark.parametrize("restarts", [False, True])
def test_recreated_topic_has_no_old_records(start_broker, restarts):
    """N-08c: it is empty, and separate from objects of the deleted topic."""
    broker = start_broker(**SMALL_SEGMENTS)
    with Wire(broker.port) as wire:
        wire.create("topic")
        for _ in range(20):
            wire.produce("topic", batch_of([b"old" * 5000]))
        request = DeleteTopicsRequest(topic_names=["topic"], timeout_ms=5000)
        assert wire.call(DELETE_TOPICS, 5, request).topics[0].error_code == 0
        wire.create("topic")
        assert wire.read("topic") == []
        assert wire.produce("topic", batch_of([b"new"])).base_offset == 0
    if restarts:
        broker.kill()
        broker.start()
    with Wire(broker.port) as wire:
        assert [record.value for record in wire.read("topic")] == [b"new"]


def test_objects_of_a_deleted_topic_are_deleted(start_broker):
    broker = start_broker(**SMALL_SEGMENTS)
    with Wire(broker.port) as wire:
        wire.create("gone", compression_type="producer")
        for _ in range(20):
            wire.produce("gone", batch_of([bytes(15_000)]))
        deadline = time.monotonic() + 10
        while not broker.objects("**/gone/0/*.kfs"):
            assert time.monotonic() < deadline, "no segment was written"
            time.sleep(0.05)
        request = DeleteTopicsRequest(topic_names=["gone"], timeout_ms=5000)
        assert wire.call(DELETE_TOPICS, 5, request).topics[0].error_code == 0
    deadline = time.monotonic() + 10
    while broker.objects("**/gone/**/*"):
        assert time.monotonic() < deadline, broker.objects("**/gone/**/*")
        time.sleep(0.05)


def test_second_broker_on_the_same_directory_fails_to_start(start_broker):
    broker = start_broker()
    second = BrokerProcess(broker.directory)
    second.log = broker.directory / "second.log"
    process = second.launch()
    assert process.wait(20) not in (0, -9)
    assert "Traceback" not in second.logged()
    assert str(broker.data) in second.logged()
    with Wire(broker.port) as wire:
        wire.create("topic")
        assert wire.produce("topic", batch_of([b"still served"])).error_code == 0


def test_unusable_store_fails_the_broker(tmp_path):
    """N-08: the broker logs the reason, exits with an error, and never acknowledges a record."""
    endpoint = f"http://127.0.0.1:{free_port()}"
    broker = BrokerProcess(
        tmp_path,
        s3_bucket="bucket",
        s3_endpoint=endpoint,
        s3_path_style="true",
        s3_access_key="key",
        s3_secret_key="secret",  # noqa: S106
        startup_timeout_sec="1",
    )
    process = broker.launch()
    try:
        code = process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    assert code not in (0, -9)
    assert "broker listening" not in broker.logged()
    assert endpoint in broker.logged() or "bucket" in broker.logged()
