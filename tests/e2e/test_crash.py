"""Crashes under load at random times: acknowledged records are stored once and in order."""

import random
import time

import pytest

from services.crashes import PARTITIONS, crash_under_load, read
from services.history import History, problems
from services.load import Load
from services.wire import Wire

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # See services.load.
]

SETTINGS = {
    # Small segments and short-lived WAL objects, so that a crash interrupts some write.
    "small segments": {"segment_bytes": "16384", "storage_retention_check_interval_ms": "100"},
    "defaults": {},
}


@pytest.mark.parametrize(
    ("seed", "settings"),
    [(1, "small segments"), pytest.param(2, "defaults", marks=pytest.mark.long)],
)
def test_acknowledged_records_survive_crashes_once(start_broker, seed, settings):
    broker = start_broker(**SETTINGS[settings])
    final = crash_under_load(broker, random.Random(seed))
    broker.terminate()
    broker.start()
    assert read(broker) == final


@pytest.mark.long
def test_paused_broker_continues(start_broker):
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
