"""Crashes under load: whatever the moment, what was acknowledged is there, once and in order."""

import random
import time

import pytest

from services.broker import BrokerProcess
from services.history import History, Log, changes, problems
from services.load import Load, record_of
from services.wire import Wire

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # See services.load.
]

PARTITIONS = 4
ROUNDS = 4
SETTINGS = {
    # Many segments, short-lived WAL objects: a crash finds the broker in the middle of something.
    "small segments": {"segment_bytes": "16384", "storage_retention_check_interval_ms": "100"},
    "defaults": {},
}


def read(broker: BrokerProcess) -> dict[int, Log]:
    with Wire(broker.port) as wire:
        return {
            partition: [
                (record.offset, record_of(record.value))
                for record in wire.read("topic", partition=partition)
            ]
            for partition in range(PARTITIONS)
        }


@pytest.mark.parametrize(("seed", "settings"), [(1, "small segments"), (2, "defaults")])
def test_nothing_acknowledged_is_lost_or_doubled(start_broker, seed, settings):
    chance = random.Random(seed)
    broker = start_broker(**SETTINGS[settings])
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS, compression_type="producer")
    history = History()
    logs: dict[int, Log] = {}
    with Load(broker.address, "topic", PARTITIONS, history):
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(0.5, 1.5))
            broker.kill()
            before = History(
                dict(history.sent), dict(history.acknowledged), set(history.idempotent)
            )
            broker.start()
            found = read(broker)
            before.sent = dict(history.sent)  # They have gone on sending meanwhile.
            assert problems(before, found) == []
            assert changes(logs, found) == []
            logs = found
    assert history.acknowledged.keys() == history.sent.keys()
    assert len(history.sent) > 100 * ROUNDS
    final = read(broker)
    assert problems(history, final) == []
    assert changes(logs, final) == []
    broker.terminate()
    broker.start()
    assert read(broker) == final


def test_a_broker_that_stood_still_goes_on(start_broker):
    broker = start_broker()
    with Wire(broker.port) as wire:
        wire.create("topic", PARTITIONS)
    history = History()
    with Load(broker.address, "topic", PARTITIONS, history):
        time.sleep(0.5)
        broker.pause()
        time.sleep(2)
        broker.resume()
        time.sleep(0.5)
    assert problems(history, read(broker)) == []
