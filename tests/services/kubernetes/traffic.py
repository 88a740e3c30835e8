"""Clients at work while a cluster is changed around them, and whether they noticed.

with Traffic(servers, topic, partitions=12) as traffic:
    ...            # restart, add and remove brokers
traffic.verify()

An idempotent producer sends to every partition in turn, a consumer group reads along. Nothing may
reach either of them as an error; every record that was acknowledged is where the acknowledgement
says, once, and the group has had it.
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
SETTLED_S_MAX = 60
CONSUMED_S_MAX = 120
ANSWER_S = 20
_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}
"""What librdkafka tells of connections, which it makes anew by itself."""


class Traffic:
    """A producer and a consumer group, each in a thread of its own until the block ends."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.errors: list[str] = []
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """By number: the partition and the offset."""
        self._topic = topic
        self._partitions = partitions
        self._seen: set[int] = set()
        self._is_over = threading.Event()
        self._common = {"bootstrap.servers": servers, "error_cb": self._complain}
        self._threads = [
            threading.Thread(target=self._work, args=[each])
            for each in (self._produce, self._consume)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        try:
            wait_until(
                lambda: len(self._seen) > 50 or self.errors,
                "the first records",
                seconds_max=SETTLED_S_MAX,
                seen=self.errors,
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def verify(self) -> None:
        """Nobody was troubled, and everything is there."""
        assert not self.errors, self.errors[:5]
        self.verify_kept()

    def verify_kept(self) -> None:
        """Everything is there, whatever clients were told meanwhile."""
        missed = self.acknowledged.keys() - self._seen
        assert not missed, f"the group has not had {len(missed)}: {sorted(missed)[:5]}"
        log = self._log()
        places: dict[int, list[tuple[int, int]]] = {}
        for place, number in log.items():
            places.setdefault(number, []).append(place)
        assert places == {number: [place] for number, place in self.acknowledged.items()}

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - it is told of by whoever verifies.
            self.errors.append(repr(error))

    def _produce(self) -> None:
        producer = Producer(
            self._common
            | {"enable.idempotence": True, "linger.ms": 5, "reconnect.backoff.max.ms": 500}
        )
        wait_until(lambda: self._knows_all(producer), f"a client to know all of {self._topic}")
        number = 0
        while not self._is_over.wait(PAUSE_S):
            for _ in range(BATCH):
                producer.produce(
                    self._topic,
                    str(number),
                    partition=number % self._partitions,
                    on_delivery=self._on_delivery,
                )
                number += 1
            producer.poll(0)
        if left := producer.flush(SETTLED_S_MAX):
            self.errors.append(f"{left} records were never told about")

    def _knows_all(self, producer: Producer) -> bool:
        """Whether a client has been told of all partitions; brokers hear of them from etcd."""
        found = producer.list_topics(self._topic, ANSWER_S).topics[self._topic]
        return len(found.partitions) == self._partitions

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
                self._see(consumer.poll(0.1))
                if self._is_over.is_set():
                    ends_s = min(ends_s, time.monotonic() + SETTLED_S_MAX)
                    if not self._threads[0].is_alive() and self.acknowledged.keys() <= self._seen:
                        break
        finally:
            consumer.close()

    def _see(self, message: Any) -> None:
        if message is None:
            return
        if message.error() is None:
            self._seen.add(int(message.value()))
        else:
            self._complain(message.error())

    def _complain(self, error: KafkaError) -> None:
        if error.code() not in _PASSING:
            self.errors.append(f"{error.name()}: {error.str()}")

    def _log(self) -> dict[tuple[int, int], int]:
        """Everything that is in the topic now, by its place."""
        return {
            (message.partition(), message.offset()): int(message.value())
            for message in everything(self._common, self._topic, self._partitions)
        }


def everything(settings: dict[str, Any], topic: str, partitions: int) -> list[Message]:
    """All records that are in a topic now, in the order of each partition."""
    reader = Consumer(settings | {"group.id": "nobody", "enable.auto.commit": False})
    places = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
    found: list[Message] = []
    try:
        marks = [reader.get_watermark_offsets(place, ANSWER_S) for place in places]
        count = sum(end - start for start, end in marks)
        reader.assign(places)
        deadline_s = time.monotonic() + SETTLED_S_MAX
        while len(found) < count and time.monotonic() < deadline_s:
            for message in reader.consume(500, 0.5):
                assert message.error() is None, message.error()
                found.append(message)
    finally:
        reader.close()
    assert len(found) == count, f"{count} records are said to be there, {len(found)} are"
    return found


def consumed(servers: str, topic: str, count: int) -> set[str]:
    """The values of a topic, once there are so many, for one who begins with these servers."""
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
