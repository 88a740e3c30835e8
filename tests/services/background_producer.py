"""A producer that sends at a low rate, through every failure of the broker.

with BackgroundProducer(address, topic, partitions):
    ...
# Here every record that was sent is acknowledged.
"""

import threading
import time
from typing import Self

from confluent_kafka import Producer

PAUSE_S = 0.02
FLUSH_S_MAX = 40


class BackgroundProducer:
    """Sends one record to each partition in turn, in a thread, until the block ends."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 300,
            }
        )
        self._errors: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(FLUSH_S_MAX) == 0
        assert not self._errors, self._errors[:3]

    def _run(self) -> None:
        while not self._ended.is_set():
            for partition in range(self._partitions):
                self._producer.produce(
                    self._topic, b"record", partition=partition, on_delivery=self._delivered
                )
            self._producer.poll(0)
            time.sleep(PAUSE_S)

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._errors.append(str(error))
