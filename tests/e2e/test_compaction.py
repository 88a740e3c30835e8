"""Compacted topics stay small by themselves: a real broker, and the process that it starts."""

import itertools
import time
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from kafscale.records import Record, build
from services.exposition import sample
from services.waiting import wait_until
from services.wire import Wire

pytestmark = pytest.mark.timeout(90)

KEYS = 40
SETTINGS = {"compaction_interval_ms": "200", "segment_bytes": "20000", "local_fsync": "false"}


def keyed_batch(values: dict[bytes, bytes | None]):
    now_ms = time.time_ns() // 1_000_000
    return build(
        [Record(index, now_ms, key, value) for index, (key, value) in enumerate(values.items())]
    )


def test_a_compacted_topic_stays_small_under_load(start_broker):
    """N-19: each reader sees the latest value of every key, however often segments are replaced."""
    broker = start_broker(**SETTINGS)
    with Wire(broker.port) as wire:
        wire.create("state", cleanup_policy="compact", compression_type="producer")
    sent: dict[bytes, bytes | None] = {}
    stopped, rounds = Event(), itertools.count()

    def produce() -> None:
        producer = Producer(
            {"bootstrap.servers": broker.address, "acks": "all", "enable.idempotence": True}
        )
        while not stopped.is_set():
            number = next(rounds)
            for index in range(KEYS):
                key = b"key %d" % index
                value = None if (index + number) % 7 == 0 else b"%d " % number * 50
                producer.produce("state", value, key)
                sent[key] = value
            producer.flush()
            stopped.wait(0.02)

    def values() -> dict[bytes, bytes]:
        with Wire(broker.port) as wire:
            records = wire.read("state")
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        latest = {record.key: record.value for record in records}
        return {key: value for key, value in latest.items() if value is not None}

    def metric(name: str) -> float:
        return sample(broker.http("/metrics")[1], f"compaction_{name}")

    producing = Thread(target=produce)
    producing.start()
    try:
        while metric('runs_total{status="success"}') < 10:
            values()
            assert producing.is_alive()
    finally:
        stopped.set()
        producing.join()
    expected = {key: value for key, value in sent.items() if value is not None}
    assert values() == expected
    assert metric('runs_total{status="error"}') == 0
    assert metric("removed_records_total") > 5 * KEYS
    assert metric('bytes_total{operation="read"}') > metric('bytes_total{operation="write"}') > 0
    assert metric("reclaimed_bytes_total") > 100_000

    def stored_bytes() -> int:
        return sum(path.stat().st_size for path in broker.objects("**/state/0/*.kfs"))

    wait_until(lambda: stored_bytes() < 50_000, "small segments", seen=stored_bytes)
    broker.kill()
    broker.start()
    assert values() == expected


def test_tombstones_and_what_they_delete_disappear(start_broker):
    broker = start_broker(**SETTINGS, storage_max_segment_age_ms="1000")
    with Wire(broker.port) as wire:
        wire.create(
            "state", cleanup_policy="compact", delete_retention_ms=0, min_cleanable_dirty_ratio=0
        )
        wire.produce("state", keyed_batch({b"a": b"1", b"b": b"1"}))
        wire.produce("state", keyed_batch({b"a": None}))

        def keys_are(*expected: bytes) -> bool:
            return [record.key for record in wire.read("state")] == list(expected)

        wait_until(lambda: keys_are(b"b", b"a"), "the compaction of a's first record")
        wire.produce("state", keyed_batch({b"c": b"1"}))
        wait_until(lambda: keys_are(b"b", b"c"), "the removal of a's tombstone")


def test_it_can_be_turned_off(start_broker):
    broker = start_broker(**SETTINGS, compaction_enabled="false")
    with Wire(broker.port) as wire:
        wire.create("state", cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        for number in range(30):
            wire.produce("state", keyed_batch({b"a": b"%d" % number * 2000}))
        wait_until(lambda: len(broker.objects("**/state/0/*.kfs")) > 1, "a segment")
        time.sleep(1)
        assert len(wire.read("state")) == 30
