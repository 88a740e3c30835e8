"""Clients under load while a cluster is changed, and checks that they did not notice.

with Traffic(servers, topic, partitions=12) as traffic:
    ...            # restart, add and remove brokers
traffic.verify()

An idempotent producer sends to every partition in turn, and a consumer group reads. Neither may see
an error; every acknowledged record is stored once, at the acknowledged offset, and was consumed by
the group.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from services.waiting import wait_until

PAUSE_S = 0.02
BATCH = 3
DRAIN_S_MAX = 60
CONSUMED_S_MAX = 120
REQUEST_S = 20
_TRANSIENT_ERRORS = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}
"""Connection errors of librdkafka, after which it reconnects. A pod that restarts has no name."""


class Traffic:
    """A producer and a consumer group, each in its own thread until the block ends."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.errors: list[str] = []
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """By number: the partition and the offset."""
        self._topic = topic
        self._partitions = partitions
        self._consumed: set[int] = set()
        self._is_stopped = threading.Event()
        self._common = {"bootstrap.servers": servers, "error_cb": self._record_error}
        self._threads = [
            threading.Thread(target=self._work, args=[each])
            for each in (self._produce, self._consume)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        try:
            wait_until(
                lambda: len(self._consumed) > 50 or self.errors,
                "the first records",
                seconds_max=DRAIN_S_MAX,
                seen=self.errors,
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def verify(self) -> None:
        """Clients saw no errors, and all records are stored."""
        assert not self.errors, self.errors[:5]
        self.verify_records()

    def verify_records(self) -> None:
        """All records are stored, whatever errors clients saw."""
        missing = self.acknowledged.keys() - self._consumed
        assert not missing, f"the group has not consumed {len(missing)}: {sorted(missing)[:5]}"
        log = self._log()
        positions: dict[int, list[tuple[int, int]]] = {}
        for position, number in log.items():
            positions.setdefault(number, []).append(position)
        assert positions == {number: [position] for number, position in self.acknowledged.items()}

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - `verify` reports it.
            self.errors.append(repr(error))

    def _produce(self) -> None:
        producer = Producer(
            self._common
            | {"enable.idempotence": True, "linger.ms": 5, "reconnect.backoff.max.ms": 500}
        )
        wait_until(
            lambda: self._knows_all(producer), f"all partitions of {self._topic} in a client"
        )
        number = 0
        while not self._is_stopped.wait(PAUSE_S):
            for _ in range(BATCH):
                producer.produce(
                    self._topic,
                    str(number),
                    partition=number % self._partitions,
                    on_delivery=self._on_delivery,
                )
                number += 1
            producer.poll(0)
        if undelivered := producer.flush(DRAIN_S_MAX):
            self.errors.append(f"{undelivered} records were neither acknowledged nor rejected")

    def _knows_all(self, producer: Producer) -> bool:
        """Whether a client sees all partitions; brokers learn of them from etcd."""
        messages = producer.list_topics(self._topic, REQUEST_S).topics[self._topic]
        return len(messages.partitions) == self._partitions

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.errors.append(f"not delivered: {error}")
            return
        self.acknowledged[int(message.value())] = (message.partition(), message.offset())

    def _consume(self) -> None:
        consumer = Consumer(
            self._common
            | {
                "group.id": f"readers-of-{self._topic}",
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 500,
            }
        )
        consumer.subscribe([self._topic])
        ends_s = float("inf")
        try:
            while time.monotonic() < ends_s:
                self._record_message(consumer.poll(0.1))
                if self._is_stopped.is_set():
                    ends_s = min(ends_s, time.monotonic() + DRAIN_S_MAX)
                    if (
                        not self._threads[0].is_alive()
                        and self.acknowledged.keys() <= self._consumed
                    ):
                        break
        finally:
            consumer.close()

    def _record_message(self, message: Any) -> None:
        if message is None:
            return
        if message.error() is None:
            self._consumed.add(int(message.value()))
        else:
            self._record_error(message.error())

    def _record_error(self, error: KafkaError) -> None:
        if error.code() not in _TRANSIENT_ERRORS:
            self.errors.append(f"{error.name()}: {error.str()}")

    def _log(self) -> dict[tuple[int, int], int]:
        """All records of the topic now, by partition and offset."""
        return {
            (message.partition(), message.offset()): int(message.value())
            for message in read_all(self._common, self._topic, self._partitions)
        }


def read_all(settings: dict[str, Any], topic: str, partitions: int) -> list[Message]:
    """All records of a topic now, in the order of each partition."""
    reader = Consumer(settings | {"group.id": "no-group", "enable.auto.commit": False})
    positions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
    messages: list[Message] = []
    try:
        watermarks = [reader.get_watermark_offsets(position, REQUEST_S) for position in positions]
        count = sum(end - start for start, end in watermarks)
        reader.assign(positions)
        deadline_s = time.monotonic() + DRAIN_S_MAX
        while len(messages) < count and time.monotonic() < deadline_s:
            for message in reader.consume(500, 0.5):
                assert message.error() is None, message.error()
                messages.append(message)
    finally:
        reader.close()
    assert len(messages) == count, f"{count} records expected by watermarks, {len(messages)} read"
    return messages


def consume_values(servers: str, topic: str, count: int) -> set[str]:
    """The values of a topic, once there are `count`, read from these servers."""
    settings = {"bootstrap.servers": servers, "group.id": "all", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: set[str] = set()
    try:
        for _ in range(CONSUMED_S_MAX * 5):
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                values.add(message.value().decode())
            if len(values) >= count:
                break
    finally:
        consumer.close()
    return values
