"""Kills a broker under load several times, and checks its log after each restart."""

import time
from random import Random

from services.broker import BrokerProcess
from services.history import History, Log, changes, problems
from services.load import Load, record_of
from services.wire import Wire

PARTITIONS = 4
ROUNDS = 4


def read(broker: BrokerProcess) -> dict[int, Log]:
    """All records of the topic under load."""
    with Wire(broker.port) as wire:
        return {
            partition: [
                (record.offset, record_of(record.value))
                for record in wire.read("topic", partition=partition)
            ]
            for partition in range(PARTITIONS)
        }


def crash_under_load(broker: BrokerProcess, chance: Random) -> dict[int, Log]:
    """Assert that no crash loses, duplicates or moves an acknowledged record; return the log."""
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
            recovered = read(broker)
            before.sent = dict(history.sent)  # Producers continued meanwhile.
            assert problems(before, recovered) == []
            assert changes(logs, recovered) == []
            logs = recovered
    assert history.acknowledged.keys() == history.sent.keys()
    assert len(history.sent) > 100 * ROUNDS
    final = read(broker)
    assert problems(history, final) == []
    assert changes(logs, final) == []
    return final
