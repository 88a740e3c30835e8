"""Outages of the object store under load: no record is lost, and the broker recovers on its own.

T-08, N-11: the store refuses connections, accepts them and never responds, or is too slow.
Producers wait or retry, records in memory are still served, `/readyz` gives the reason, and the
broker recovers within seconds after the store does.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from kafscale.protocol.messages.produce import PRODUCE
from services.broker import BrokerProcess
from services.crashes import PARTITIONS, read
from services.history import History, problems
from services.load import Load
from services.s3_server import S3Server, broker_settings
from services.selection import long_except
from services.slow_link import Delay, slow_link
from services.wire import Wire, batch_of, produce_request

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # See services.load.
]

BACK_S_MAX = 5
NOTICED_S_MAX = 10
OUTAGE_S = 6
"""Seconds of outage after the broker has detected it: longer than its health window."""


def start_outage(s3: S3Server, way: str) -> None:
    (s3.kill if way == "killed" else s3.pause)()


def end_outage(s3: S3Server, way: str) -> None:
    (s3.start if way == "killed" else s3.resume)()


def seconds_until(condition: Callable[[], bool], seconds_max: float) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds_max, f"not within {seconds_max} s"
        time.sleep(0.05)
    return time.monotonic() - began


def is_ready(broker: BrokerProcess) -> bool:
    return broker.http("/readyz")[0] == 200


@pytest.mark.parametrize("way", long_except(["killed", "silent"], "silent".__eq__))
def test_outage_under_load_loses_no_records(start_broker, s3, way):
    broker = start_broker(
        **broker_settings(s3.bucket), s3_health_window_sec="4", storage_wal_puts_per_second="20"
    )
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS)
    history = History()
    with Load(broker.address, "topic", PARTITIONS, history):
        seconds_until(lambda: len(history.acknowledged) > 300, 10)
        before = read(broker)
        start_outage(s3, way)
        seconds_until(lambda: not is_ready(broker), NOTICED_S_MAX)
        assert "object storage" in broker.ready()["reasons"]
        away_until = time.monotonic() + OUTAGE_S
        while time.monotonic() < away_until:
            assert not is_ready(broker)
            time.sleep(0.5)
        assert broker.http("/healthz")[0] == 200
        with Wire(broker.port) as wire:
            refused = wire.produce("topic", batch_of([b"intruder"]))
            assert (refused.error_code, refused.base_offset) == (7, -1)
        during = read(broker)
        assert all(during[number][: len(log)] == log for number, log in before.items())
        acknowledged_count = len(history.acknowledged)
        end_outage(s3, way)
        back_s = seconds_until(lambda: is_ready(broker), BACK_S_MAX)
        seconds_until(
            lambda: len(history.acknowledged) > acknowledged_count + 100, BACK_S_MAX - back_s
        )
    assert history.acknowledged.keys() == history.sent.keys()
    final = read(broker)
    assert problems(history, final) == []
    broker.kill()
    broker.start()
    assert read(broker) == final


def test_short_outage_only_delays_producers(start_broker, s3):
    """A producer waits a little longer, and that is all."""
    broker = start_broker(**broker_settings(s3.bucket))
    with Wire(broker.port) as wire:
        wire.create("topic")
        assert wire.produce("topic", batch_of([b"before"])).error_code == 0
        s3.pause()
        wire.send(PRODUCE, 9, produce_request("topic", batch_of([b"meanwhile"])))
        time.sleep(1)
        assert is_ready(broker)
        s3.resume()
        response = wire.receive(PRODUCE, 9)[1]
        assert response.topics[0].partitions[0].error_code == 0
        assert [record.value for record in wire.read("topic")] == [b"before", b"meanwhile"]


def test_outage_serves_records_in_memory_only(start_broker, s3):
    """Other reads fail at once with KAFKA_STORAGE_ERROR, and succeed after the outage."""
    settings = broker_settings(s3.bucket) | {"s3_health_window_sec": "4", "s3_max_retries": "1"}
    broker = start_broker(**settings, segment_bytes="65536", storage_wal_puts_per_second="1000")
    with Wire(broker.port) as wire:
        for topic in ("cold", "warm"):
            wire.create(topic, compression_type="producer")
            for number in range(8):
                wire.produce(topic, batch_of([b"%d" % number * 20_000]))
    broker.terminate()
    broker.start()
    with Wire(broker.port, timeout_s=20) as wire:
        warm = wire.read("warm")
        assert wire.produce("cold", batch_of([b"tail"])).base_offset == 8
        s3.pause()
        for _ in range(8):
            wire.produce("cold", batch_of([b"lost or not"]), acks=1)
            time.sleep(0.1)
        seconds_until(lambda: not is_ready(broker), NOTICED_S_MAX)
        assert wire.read("warm") == warm
        assert wire.fetch("cold", 8).error_code == 0
        began = time.monotonic()
        assert wire.fetch("cold", 0).error_code == 56
        assert time.monotonic() - began < 2
        s3.resume()
        seconds_until(lambda: is_ready(broker), BACK_S_MAX)
        assert len(wire.read("cold")) >= 9


@pytest.mark.long
def test_slow_store_counts_as_an_outage(start_broker, s3):
    """S-13: 3.5 s per request is an outage; half a second is not."""
    delay = Delay(0.0)
    with slow_link(urlsplit(s3.bucket.endpoint).port, delay) as port:
        settings = broker_settings(replace(s3.bucket, endpoint=f"http://127.0.0.1:{port}"))
        broker = start_broker(
            **settings, s3_health_window_sec="4", storage_wal_puts_per_second="20"
        )
        with Wire(broker.port) as wire:
            wire.create("topic", PARTITIONS)
        history = History()
        with Load(broker.address, "topic", PARTITIONS, history), ExitStack() as stack:
            stack.callback(setattr, delay, "seconds", 0.0)
            seconds_until(lambda: len(history.acknowledged) > 100, 10)
            delay.seconds = 3.5 / 2
            seconds_until(lambda: not is_ready(broker), 2 * NOTICED_S_MAX)
            away_until = time.monotonic() + OUTAGE_S
            while time.monotonic() < away_until:
                assert not is_ready(broker)
                time.sleep(0.5)
            with Wire(broker.port) as wire:
                assert wire.produce("topic", batch_of([b"intruder"])).error_code == 7
            acknowledged_count = len(history.acknowledged)
            delay.seconds = 0.25
            # A probe that started while the store was slow has to time out first.
            seconds_until(lambda: is_ready(broker), 2 * BACK_S_MAX)
            seconds_until(lambda: len(history.acknowledged) > acknowledged_count + 50, BACK_S_MAX)
        assert history.acknowledged.keys() == history.sent.keys()
        assert problems(history, read(broker)) == []
        broker.terminate()


@pytest.mark.long
def test_outage_is_detected_without_producers(start_broker, s3):
    """The first reader waits; others get a retriable error at once."""
    broker = start_broker(
        **broker_settings(s3.bucket), segment_bytes="65536", storage_wal_puts_per_second="1000"
    )
    with Wire(broker.port) as wire:
        wire.create("cold", compression_type="producer")
        for number in range(8):
            wire.produce("cold", batch_of([b"%d" % number * 20_000]))
    broker.terminate()
    broker.start()
    with (
        Wire(broker.port, timeout_s=60) as other,
        Wire(broker.port) as wire,
        ThreadPoolExecutor(1) as thread,
    ):
        s3.pause()
        first = thread.submit(other.fetch, "cold", 0)
        seconds_until(lambda: not is_ready(broker), NOTICED_S_MAX)
        began = time.monotonic()
        assert wire.fetch("cold", 0).error_code == 56
        assert time.monotonic() - began < 2
        s3.resume()
        seconds_until(lambda: is_ready(broker), BACK_S_MAX)
        assert len(wire.read("cold")) == 8
        assert first.result(60).error_code in {0, 56}
