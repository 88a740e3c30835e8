"""The object store goes away under load, and comes back: nothing is lost, and nobody has to help.

T-08, N-11: it refuses connections, takes them and stays silent, or becomes far too slow. Producers
wait or try again, records that are in memory are still served, `/readyz` says what is wrong, and
all of it is over within seconds after the store is back.
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
"""How long it stays away once the broker has noticed: longer than the window of its health."""


def take_away(s3: S3Server, way: str) -> None:
    (s3.kill if way == "killed" else s3.pause)()


def bring_back(s3: S3Server, way: str) -> None:
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
def test_an_outage_under_load_loses_nothing(start_broker, s3, way):
    broker = start_broker(
        **broker_settings(s3.bucket), s3_health_window_sec="4", storage_wal_puts_per_second="20"
    )
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS)
    history = History()
    with Load(broker.address, "topic", PARTITIONS, history):
        seconds_until(lambda: len(history.acknowledged) > 300, 10)
        before = read(broker)
        take_away(s3, way)
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
        bring_back(s3, way)
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


def test_a_store_that_is_away_for_a_moment_is_not_noticed(start_broker, s3):
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
        answer = wire.receive(PRODUCE, 9)[1]
        assert answer.topics[0].partitions[0].error_code == 0
        assert [record.value for record in wire.read("topic")] == [b"before", b"meanwhile"]


def test_only_what_memory_holds_is_served_during_an_outage(start_broker, s3):
    """A cold read is refused with KAFKA_STORAGE_ERROR, at once, and works again afterwards."""
    settings = broker_settings(s3.bucket) | {"s3_health_window_sec": "4", "s3_max_retries": "0"}
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
def test_a_store_that_has_become_too_slow_is_refused_until_it_is_fast_again(start_broker, s3):
    """S-13: 3.5 s a request are an outage; half a second is not."""
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
            # A probe that was on its way when the store was slow has to be given up first.
            seconds_until(lambda: is_ready(broker), 2 * BACK_S_MAX)
            seconds_until(lambda: len(history.acknowledged) > acknowledged_count + 50, BACK_S_MAX)
        assert history.acknowledged.keys() == history.sent.keys()
        assert problems(history, read(broker)) == []
        broker.terminate()


@pytest.mark.long
def test_a_silent_store_is_noticed_though_nobody_produces(start_broker, s3):
    """The first reader waits; all others are told to try again, at once."""
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
