"""A sender: an idempotent producer of librdkafka at a constant rate, which records latencies.

    with Sender(cluster.bootstrap, topic, partitions=12, records_per_second=500) as sender:
        ...
    sender.figures()

All other settings are librdkafka's defaults. It sends round robin to the partitions. When the block
ends, all records are acknowledged.
"""

import statistics
import threading
import time
from functools import partial
from itertools import pairwise
from typing import Any, Self

from confluent_kafka import Producer

from bench.comparison import Figures

VALUE = b"x" * 1024
FLUSH_S_MAX = 120
POLL_S = 0.001


class Sender:
    """One producer in a thread."""

    def __init__(
        self, address: str, topic: str, *, partitions: int, records_per_second: int
    ) -> None:
        self.errors: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0}
        )
        self._topic = topic
        self._period_seconds = 1 / records_per_second
        self._latencies_ms: list[float] = []
        self._acknowledged_at: list[list[float]] = [[] for _ in range(partitions)]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        pending = self._producer.flush(FLUSH_S_MAX)
        assert pending == 0, f"{pending} records were not acknowledged"

    def figures(self) -> Figures:
        """Latencies and errors; a pause is the time between two acknowledgements of a partition."""
        percentiles = statistics.quantiles(self._latencies_ms, n=100)
        return {
            "records": len(self._latencies_ms),
            "errors": len(self.errors),
            "p50 ms": percentiles[49],
            "p95 ms": percentiles[94],
            "p99 ms": percentiles[98],
            "slowest ms": max(self._latencies_ms),
            "longest pause ms": 1000 * max(map(_longest_pause, self._acknowledged_at)),
        }

    def _run(self) -> None:
        due = time.perf_counter()
        number = 0
        while not self._stopped.is_set():
            self._producer.poll(POLL_S)
            now = time.perf_counter()
            while due <= now:
                partition = number % len(self._acknowledged_at)
                self._producer.produce(
                    self._topic,
                    VALUE,
                    partition=partition,
                    on_delivery=partial(self._on_delivery, partition, now),
                )
                number += 1
                due += self._period_seconds

    def _on_delivery(self, partition: int, sent: float, error: Any, _message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        now = time.perf_counter()
        self._latencies_ms.append(1000 * (now - sent))
        self._acknowledged_at[partition].append(now)


def _longest_pause(times: list[float]) -> float:
    return max(after - before for before, after in pairwise(times))
