"""Test data of a web shop: topics, records, consumer groups and job runs.

    stock(broker.address)
    write_runs(lambda: LocalObjectStore(broker.data / "objects", fsync=False, shared=True))
    with trade(broker.address):
        ...

The browser tests of the console and the screenshots in the documentation use it. The data depends
only on a seed and on the current time. `trade` produces and consumes continuously until its block
ends, so that charts change.
"""

import asyncio
import io
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafscale.storage.job_runs import JobRun, JobRuns, Outcome, TopicRun
from kafscale.storage.objects.store import ObjectStore

ORDERS, PAYMENTS, CLICKS, INVENTORY = "orders", "payments", "clicks", "inventory"
ORDER_COUNT = 400
BILLING, ANALYTICS, FRAUD = "billing", "analytics", "fraud-detection"

PARTITION_COUNTS = {ORDERS: 6, PAYMENTS: 3, CLICKS: 12, INVENTORY: 1}
CONFIGS = {INVENTORY: {"cleanup.policy": "compact"}, CLICKS: {"retention.ms": "86400000"}}

PAYMENT_SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "order", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "method", "type": {"type": "enum", "name": "Method", "symbols": ["CARD", "IBAN"]}},
    ],
}
CITIES = ("Bern", "Lisbon", "Oslo", "Porto", "Turin", "Vienna")
PAGES = ("/", "/shoes", "/shoes/42", "/cart", "/checkout")
WAIT_S_MAX = 30
PAUSE_S = 4.0
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Record:
    """One record to produce."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def order(number: int) -> dict[str, Any]:
    """An order as JSON; the city depends on the number."""
    return {
        "order": f"order-{number}",
        "customer": {"name": f"customer {number % 40}", "city": CITIES[number % len(CITIES)]},
        "items": 1 + number % 4,
        "total": round(9.99 + 3.5 * (number % 23), 2),
    }


def payment(number: int) -> bytes:
    value = {"order": f"order-{number}", "cents": 999 + number, "method": "CARD"}
    output = io.BytesIO()
    fastavro.schemaless_writer(output, fastavro.parse_schema(PAYMENT_SCHEMA), value)
    return output.getvalue()


def stock(bootstrap: str, settings: Mapping[str, Any] | None = None) -> None:
    """Create the topics, produce records of a few hours, and commit offsets of three groups."""
    client = {"bootstrap.servers": bootstrap, **(settings or {})}
    _create_topics(client)
    _produce(client, _records(time.time_ns() // 1_000_000))
    _commit(client, BILLING, ORDERS, 1.0)
    _commit(client, ANALYTICS, CLICKS, 0.4)
    _commit(client, ANALYTICS, ORDERS, 0.9)
    _commit(client, FRAUD, PAYMENTS, 0.75)


@contextmanager
def trade(bootstrap: str, *, orders_per_s: int = 40) -> Iterator[None]:
    """Produce orders and clicks, and consume them with two groups, until the block ends."""
    stopped = threading.Event()
    client = {"bootstrap.servers": bootstrap}
    workers = [
        threading.Thread(target=_produce_continuously, args=(client, stopped, orders_per_s)),
        threading.Thread(target=_consume, args=(client, stopped, BILLING, [ORDERS], 0.0)),
        threading.Thread(
            target=_consume, args=(client, stopped, ANALYTICS, [CLICKS, ORDERS], PAUSE_S)
        ),
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stopped.set()
        for worker in workers:
            worker.join()


def write_runs(open_store: Callable[[], ObjectStore]) -> None:
    """Write run records of jobs to the bucket."""
    now_ms = time.time_ns() // 1_000_000

    async def write() -> None:
        store = open_store()
        for run in _runs(now_ms):
            await JobRuns(store, "default").write(run)
        await store.close()

    # In a separate thread, because the caller may run in Playwright's event loop.
    with ThreadPoolExecutor(1) as worker:
        worker.submit(asyncio.run, write()).result()


def _create_topics(client: Mapping[str, Any]) -> None:
    topics = [
        NewTopic(name, count, config=CONFIGS.get(name, {}))
        for name, count in PARTITION_COUNTS.items()
    ]
    admin = AdminClient(dict(client))  # Must stay alive until all futures are done.
    for future in admin.create_topics(topics).values():
        future.result(timeout=WAIT_S_MAX)


def _records(now_ms: int) -> Iterator[Record]:
    rng = random.Random(10)
    for number in range(ORDER_COUNT):
        # The rate of orders grows over time.
        age_ms = int(6 * HOUR_MS * (1 - number / ORDER_COUNT) ** 1.5)
        key = f"order-{number}".encode()
        yield Record(ORDERS, key, json.dumps(order(number)).encode(), now_ms - age_ms)
        if number % 8:
            yield Record(PAYMENTS, key, payment(number), now_ms - age_ms + 700)
        for _ in range(rng.randrange(3, 9)):
            click = {"page": rng.choice(PAGES), "visitor": rng.randrange(9_999)}
            yield Record(CLICKS, None, json.dumps(click).encode(), now_ms - age_ms)
        article = f"article-{number % 50}".encode()
        stock_count = None if number % 50 == 13 else str(rng.randrange(100)).encode()
        yield Record(INVENTORY, article, stock_count, now_ms - age_ms)


def _produce(client: Mapping[str, Any], records: Iterator[Record]) -> None:
    producer = Producer({**client, "linger.ms": 20, "compression.type": "zstd"})
    for record in records:
        producer.produce(
            record.topic,
            record.value,
            record.key,
            timestamp=record.timestamp_ms,
            headers={"source": b"shop"},
        )
    assert producer.flush(WAIT_S_MAX) == 0, "the records could not be produced"


def _commit(client: Mapping[str, Any], group: str, topic: str, share: float) -> None:
    """Commit offsets of a group, as if it had read that share of every partition."""
    consumer = Consumer({**client, "group.id": group, "enable.auto.commit": False})
    try:
        offsets = []
        for partition in range(PARTITION_COUNTS[topic]):
            topic_partition = TopicPartition(topic, partition)
            _, end = consumer.get_watermark_offsets(topic_partition, timeout=WAIT_S_MAX)
            offsets.append(TopicPartition(topic, partition, int(end * share)))
        consumer.commit(offsets=offsets, asynchronous=False)
    finally:
        consumer.close()


def _produce_continuously(
    client: Mapping[str, Any], stopped: threading.Event, orders_per_s: int
) -> None:
    producer = Producer({**client, "linger.ms": 20})
    rng = random.Random(11)
    number = ORDER_COUNT
    while not stopped.wait(1 / orders_per_s):
        number += 1
        producer.produce(ORDERS, json.dumps(order(number)).encode(), f"order-{number}".encode())
        for _ in range(rng.randrange(6)):
            producer.produce(CLICKS, json.dumps({"page": rng.choice(PAGES)}).encode())
        producer.poll(0)
    producer.flush(WAIT_S_MAX)


def _consume(
    client: Mapping[str, Any],
    stopped: threading.Event,
    group: str,
    topics: list[str],
    pause_s: float,
) -> None:
    """Consume as a member of a group; pauses between polls cause lag."""
    settings = {"group.id": group, "client.id": f"{group}-1", "auto.commit.interval.ms": 1000}
    consumer = Consumer({**client, **settings})
    consumer.subscribe(topics)
    while not stopped.wait(pause_s):
        consumer.consume(1_000, timeout=0.5)
    consumer.close()


def _runs(now_ms: int) -> Iterator[JobRun]:
    """Runs of three jobs: the merge failed once, and the latest report has the cost of topics."""
    for hours in range(8):
        ended_ms = now_ms - hours * HOUR_MS - 240_000
        yield _run("merge", hours, ended_ms, "the bucket is unreachable" if hours == 3 else "")
        yield _run("lake", hours, ended_ms + 60_000)
    report = {
        ORDERS: TopicRun(records_in=400, size_bytes=61_000, details={"dollarsPerDay": 0.42}),
        CLICKS: TopicRun(records_in=2200, size_bytes=93_000, details={"dollarsPerDay": 1.31}),
        PAYMENTS: TopicRun(records_in=350, size_bytes=17_000, details={"dollarsPerDay": 0.18}),
    }
    yield JobRun(
        job="report",
        run="000000ff",
        started_at_ms=now_ms - 130_000,
        outcome=Outcome.SUCCEEDED,
        updated_at_ms=now_ms - 120_000,
        ended_at_ms=now_ms - 120_000,
        by_topic=report,
        details={"now.s3DollarsPerDay": 1.91},
    )


def _run(job: str, hours: int, ended_ms: int, error: str = "") -> JobRun:
    newest_ms = ended_ms - 45_000
    count = 2_900 - 250 * hours
    topic_run = TopicRun(records_in=count, records_out=count, newest_timestamp_ms=newest_ms)
    return JobRun(
        job=job,
        run=f"{hours:08x}",
        started_at_ms=ended_ms - 38_000 - 900 * hours,
        outcome=Outcome.FAILED if error else Outcome.SUCCEEDED,
        updated_at_ms=ended_ms,
        ended_at_ms=ended_ms,
        error=error,
        topics=(ORDERS, CLICKS),
        records_in=count,
        records_out=None if error else count,
        size_bytes=count * 48,
        newest_timestamp_ms=newest_ms,
        by_topic={} if error else {ORDERS: topic_run},
        details={} if error else {"merged": 12 - hours},
    )
