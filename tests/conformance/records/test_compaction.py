"""Compaction leaves what Apache Kafka leaves: the same records are sent to both, and both clean."""

import random
import time
from collections.abc import Iterator, Sequence

import pytest

from kafscale.records import Codec, Record, build
from services import java
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer
from services.waiting import wait_until
from services.wire import Wire

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

DAY_MS = 24 * 3600 * 1000
TOPICS = {"keeps tombstones": DAY_MS, "drops tombstones": 0}
SEGMENT_MS = 200
KEYS, BATCHES = 25, 30
MARKERS = 4
"""Batches at the end with keys of their own: Kafka neither compacts nor reads its last segment."""
COMPACTED_S_MAX = 90

Batches = list[list[tuple[bytes, bytes | None]]]


@pytest.fixture(scope="module")
def ports(tmp_path_factory) -> Iterator[Sequence[int]]:
    if not java.is_available():
        pytest.skip("needs Java")
    directory = tmp_path_factory.mktemp("both")
    settings = {"log.cleaner.backoff.ms": "200"}
    with (
        KafkaServer(directory / "kafka", settings) as kafka,
        BrokerProcess(directory / "ours", compaction_interval_ms="200") as broker,
    ):
        yield kafka.port, broker.port


def conversation(rng: random.Random) -> Batches:
    """Batches of keys and values; some keys are deleted, some of them written again."""
    batches: Batches = []
    for number in range(BATCHES):
        keys = [b"key %d" % rng.randrange(KEYS) for _ in range(rng.randint(1, 8))]
        batch: list[tuple[bytes, bytes | None]] = [
            (key, None if rng.random() < 0.3 else b"%d " % number * rng.randint(1, 50))
            for key in keys
        ]
        batches.append(batch)
    return batches


def send(wire: Wire, topic: str, batch: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
    now_ms = time.time_ns() // 1_000_000
    records = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(batch)]
    produced = wire.produce(topic, build(records, codec=codec))
    assert produced.error_code == 0
    time.sleep(1.5 * SEGMENT_MS / 1000)


def read(wire: Wire, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in wire.read(topic)]


@pytest.mark.parametrize("topic", TOPICS)
def test_both_keep_the_same_records(ports, topic):
    name = topic.replace(" ", "-")
    batches = conversation(random.Random(topic))
    markers: Batches = [[(b"marker %d" % number, b"end")] for number in range(MARKERS)]
    sent = [record for batch in batches + markers for record in batch]
    latest = {key: offset for offset, (key, _) in enumerate(sent)}
    expected = [
        (offset, *record)
        for offset, record in enumerate(sent)
        if latest[record[0]] == offset and (TOPICS[topic] or record[1] is not None)
    ]
    assert any(value is None for _, value in sent)
    left = []
    for port in ports:
        with Wire(port, timeout_s=60) as wire:
            wire.create(
                name,
                cleanup_policy="compact",
                min_cleanable_dirty_ratio=0,
                segment_ms=SEGMENT_MS,
                delete_retention_ms=TOPICS[topic],
            )
            rng = random.Random(topic)
            for batch in batches:
                send(wire, name, batch, rng.choice(list(Codec)))
            for marker in markers:
                send(wire, name, marker, Codec.NONE)
                time.sleep(2)  # Until the log is cleaned once more, which drops more tombstones.
            wait_until(
                lambda wire=wire: read(wire, name) == expected,
                "compaction",
                seconds_max=COMPACTED_S_MAX,
                seen=lambda wire=wire: (read(wire, name), expected),
            )
            left.append(read(wire, name))
    assert left[0] == left[1]
