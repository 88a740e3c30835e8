"""A producer that records what was acknowledged, and the check that all of it is stored."""

import threading
import time
from typing import Self

from confluent_kafka import Consumer, Producer

from services.cluster import Cluster
from services.waiting import wait_until

PARTITIONS = 12
"""How many partitions the topics have that it sends to."""


class BackgroundProducer:
    """An idempotent producer that runs in a thread and records delivery reports."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.topic = topic
        self.acked: dict[bytes, tuple[int, int]] = {}
        self.errors: list[str] = []
        self.pause_s = 0.0
        """The longest time without an acknowledgement."""
        self._last_delivery = time.monotonic()
        self._is_over = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: len(self.acked) > 50, "the first records")
        self.pause_s = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait_for_more(self, count: int = 100) -> None:
        enough = len(self.acked) + count
        wait_until(lambda: len(self.acked) >= enough, "more records", seconds_max=60)

    def _send(self) -> None:
        number = 0
        while not self._is_over.wait(0.003):
            self._producer.produce(
                self.topic,
                b"%d" % number,
                partition=number % PARTITIONS,
                on_delivery=self._on_delivery,
            )
            number += 1
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def _on_delivery(self, error, message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        now = time.monotonic()
        self.pause_s = max(self.pause_s, now - self._last_delivery)
        self._last_delivery = now
        self.acked[message.value()] = (message.partition(), message.offset())


def check_acknowledged_records_are_stored_once(
    cluster: Cluster, stream: BackgroundProducer
) -> None:
    """Check that every acknowledged record is read once, at its acknowledged offset."""
    assert stream.errors == []
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": f"check-{stream.topic}"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe([stream.topic])
    seen: dict[bytes, list[tuple[int, int]]] = {}
    deadline = time.monotonic() + 60
    while len(seen) < len(stream.acked) and time.monotonic() < deadline:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                position = (message.partition(), message.offset())
                seen.setdefault(message.value(), []).append(position)
    consumer.close()
    assert {value: [position] for value, position in stream.acked.items()} == seen
