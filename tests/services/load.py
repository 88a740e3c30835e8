"""Producers that continue through every crash of the broker, and record acknowledgements.

with Load(address, topic, history) as load:
    ...            # kill and restart the broker as often as you like
# Here everything that was sent is acknowledged.
"""

import gc
import logging
import threading
import time
import warnings
from contextlib import ExitStack
from typing import Any, Protocol, Self

from confluent_kafka import Producer
from kafka import KafkaProducer

from services.history import History, Position, Sent

PAUSE_S = 0.002
FLUSH_S_MAX = 40
PADDING = "." * 150

# Tests keep what is logged, and with it the sockets that kafka-python forgets to close.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Client(Protocol):
    """A client library, reduced to sending."""

    def send(self, record: Sent, partition: int) -> None: ...
    def finish(self) -> None: ...


class Librdkafka:
    """confluent-kafka, idempotent or not."""

    def __init__(self, address: str, topic: str, history: History, **settings: Any) -> None:
        self._topic = topic
        self._history = history
        patience = {"reconnect.backoff.max.ms": 300, "linger.ms": 3, "message.timeout.ms": 60_000}
        self._producer = Producer({"bootstrap.servers": address} | patience | settings)
        self.errors: list[str] = []

    def send(self, record: Sent, partition: int) -> None:
        def report(error: object, message: Any) -> None:
            if error is None:
                self._history.acknowledged[record] = Position(partition, message.offset())
            else:
                self.errors.append(str(error))

        self._producer.produce(
            self._topic, value_of(record), partition=partition, on_delivery=report
        )
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(FLUSH_S_MAX) == 0
        assert not self.errors, self.errors[:3]


class KafkaPython:
    """kafka-python, with its defaults but for its patience."""

    def __init__(self, address: str, topic: str, history: History) -> None:
        self._topic = topic
        self._history = history
        self._producer = KafkaProducer(
            bootstrap_servers=address, reconnect_backoff_max_ms=300, linger_ms=3
        )
        self.errors: list[str] = []

    def send(self, record: Sent, partition: int) -> None:
        def acknowledged(metadata: Any) -> None:
            self._history.acknowledged[record] = Position(partition, metadata.offset)

        future = self._producer.send(self._topic, value_of(record), partition=partition)
        future.add_callback(acknowledged)
        future.add_errback(lambda error: self.errors.append(str(error)))

    def finish(self) -> None:
        self._producer.flush(FLUSH_S_MAX)
        self._producer.close(5)
        with warnings.catch_warnings():
            # It forgets to close sockets whose connection was refused; that is not our concern.
            warnings.simplefilter("ignore", ResourceWarning)
            del self._producer
            gc.collect()
        assert not self.errors, self.errors[:3]


class Load:
    """Several clients, each sending from a thread of its own until the block ends."""

    def __init__(self, address: str, topic: str, partitions: int, history: History) -> None:
        self._history = history
        self._partitions = partitions
        self._ended = threading.Event()
        cautious = {"enable.idempotence": False, "max.in.flight": 1}
        self._clients: dict[str, Client] = {
            "plain": Librdkafka(address, topic, history, **cautious),
            "idempotent": Librdkafka(address, topic, history, **{"enable.idempotence": True}),
            "python": KafkaPython(address, topic, history),
        }
        history.idempotent |= {"idempotent", "python"}
        self._threads = [
            threading.Thread(target=self._run, args=each) for each in self._clients.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with ExitStack() as stack:
            for client in self._clients.values():
                stack.callback(client.finish)
            for thread in self._threads:
                thread.join()

    def _run(self, name: str, client: Client) -> None:
        number = 0
        while not self._ended.is_set():
            record, partition = Sent(name, number), number // 10 % self._partitions
            self._history.sent[record] = partition
            client.send(record, partition)
            number += 1
            time.sleep(PAUSE_S)


def value_of(record: Sent) -> bytes:
    return f"{record.producer}:{record.number}:{PADDING}".encode()


def record_of(value: bytes) -> Sent:
    producer, number, _ = value.decode().split(":")
    return Sent(producer, int(number))
