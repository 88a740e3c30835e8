"""Transactions: how many one producer has in a second, and what they cost producers and consumers.

The producers are Kafka's own, which use version 2 of the protocol (KIP-890) with both brokers.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.brokers import KAFKA, Candidate
from bench.comparison import Comparison, Figures
from bench.consumption import consume
from bench.producer_perf import LARGE, RECORD_BYTES, TOOL_FLAGS, produce
from services import java, s3_server
from services.broker import BrokerProcess
from services.client_program import HOME
from services.exposition import sample
from services.s3_server import broker_settings

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

TRANSACTIONS = {1: 600, 100: 150}
"""How many transactions are measured, by the number of partitions that each writes to."""
WARM_UP_SHARE = 0.5
ROUNDS = 3
S3 = {
    "Kafscale, S3": ({}, 10),
    "Kafscale, S3, PUTs unbounded": ({"storage_wal_puts_per_second": "1000"}, 300),
}
"""Settings, and how many transactions are measured at most."""

PARTITIONS = 6
RECORDS = 300_000
COMMIT_MS = 100
THROUGHPUT_SHARE_MIN = 0.8
"""Throughput with transactions, of that without."""

READ_ROUNDS = 5
CPU_RATIO_MAX = 1.1
"""CPU time of a broker for a reader of committed records, beside that for a plain one."""


# --- transactions of one producer ---------------------------------------------------------------


@pytest.mark.parametrize("partitions", TRANSACTIONS)
def test_transactions_of_one_producer(comparisons, candidates, scaled, tmp_path, partitions):
    comparison = comparisons.new(
        f"transactions of one producer, a record to each of {partitions} partitions", KAFKA
    )
    count = scaled(TRANSACTIONS[partitions])
    for _ in range(ROUNDS):
        for candidate in candidates:
            comparison.add(candidate.name, transact(candidate, partitions, count))
    if s3_server.is_available():
        measure_on_s3(comparison, tmp_path, partitions, count)


def measure_on_s3(comparison: Comparison, directory: Path, partitions: int, count: int) -> None:
    """On an S3 server of this machine, whose round trips are shorter than those of S3.

    A transaction waits for the PUT of its records, and for that of its markers. With the default
    budget of PUTs, there are few transactions in a second.
    """
    with (
        s3_server.s3_server(directory) as bucket,
        BrokerProcess(directory / "s3-broker", **broker_settings(bucket)) as broker,
    ):
        for name, (settings, count_max) in S3.items():
            broker.terminate()
            broker.settings |= settings
            broker.start()
            candidate = Candidate(name, broker)
            comparison.add(name, transact(candidate, partitions, min(count, count_max)))


def transact(candidate: Candidate, partitions: int, count: int) -> Figures:
    topic = candidate.new_topic(partitions)
    with running(candidate.address, topic, partitions, count) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "warm"
        writes, puts, used = store_writes(candidate), wal_puts(candidate), candidate.cpu_seconds()
        process.stdin.write("\n")
        process.stdin.flush()
        rate, p50, p99 = map(float, process.stdout.readline().split())
        used = candidate.cpu_seconds() - used
        figures = {"transactions/s": rate, "commit p50 ms": p50, "commit p99 ms": p99}
        figures["CPU ms each"] = 1000 * used / count
        if isinstance(candidate.server, BrokerProcess):
            figures["store writes each"] = (store_writes(candidate) - writes) / count
            figures["PUTs each"] = (wal_puts(candidate) - puts) / count
        return figures


@contextmanager
def running(
    address: str, topic: str, partitions: int, count: int
) -> Iterator[subprocess.Popen[str]]:
    """The program that measures; it waits for a line between its warm-up and its measurement."""
    source = HOME / "java" / "TransactionTimes.java"
    numbers = (partitions, max(1, round(count * WARM_UP_SHARE)), count)
    command = ["java", *TOOL_FLAGS, "-cp", f"{java.jars()}/*", source, address, topic]
    with subprocess.Popen(  # noqa: S603 - the command is a bench's own.
        [*command, *map(str, numbers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def store_writes(candidate: Candidate) -> float:
    """How many transactions of the metadata store coordinators have written."""
    return metric(candidate, "consumer_transactions_total")


def wal_puts(candidate: Candidate) -> float:
    return metric(candidate, "wal_puts_total")


def metric(candidate: Candidate, name: str) -> float:
    if not isinstance(candidate.server, BrokerProcess):
        return 0
    return sample(candidate.server.http("/metrics")[1], name)


# --- throughput ---------------------------------------------------------------------------------


def test_throughput_with_transactions(comparisons, candidates, scaled):
    comparison = comparisons.new(
        f"produce 1 KiB records, a commit each {COMMIT_MS} ms, and without transactions", KAFKA
    )
    records = scaled(RECORDS)
    kinds = [("plain MB/s", None), ("transactional MB/s", COMMIT_MS)]
    for _ in range(ROUNDS):
        kinds.reverse()
        for candidate in candidates[:2]:
            figures: Figures = {}
            for name, transaction_ms in kinds:
                topic = candidate.new_topic(PARTITIONS)
                report = produce(
                    candidate.address, topic, records, batching=LARGE, transaction_ms=transaction_ms
                )
                figures[name] = report.megabytes_per_second
                candidate.delete(topic)
            figures["share"] = figures["transactional MB/s"] / figures["plain MB/s"]
            comparison.add(candidate.name, figures)
    assert comparison.medians("Kafscale")["share"] >= THROUGHPUT_SHARE_MIN


# --- consuming ----------------------------------------------------------------------------------


def test_consuming_committed_records(comparisons, candidates, scaled):
    """The same records, with both isolation levels in turns."""
    comparison = comparisons.new("consume 1 KiB records of transactions", KAFKA)
    records = scaled(RECORDS)
    for candidate in candidates[:2]:
        topic = candidate.new_topic(PARTITIONS)
        produce(candidate.address, topic, records, batching=LARGE, transaction_ms=COMMIT_MS)
        isolations = ["read_uncommitted", "read_committed"]
        for _ in range(READ_ROUNDS):
            isolations.reverse()
            figures: Figures = {}
            for isolation in isolations:
                used = candidate.cpu_seconds()
                settings = {"isolation.level": isolation}
                speed = consume(candidate.address, topic, PARTITIONS, records, **settings)
                used = candidate.cpu_seconds() - used
                name = isolation.removeprefix("read_")
                figures[f"{name} MB/s"] = speed
                figures[f"{name} CPU-s/GB"] = used / (records * RECORD_BYTES / 1e9)
            comparison.add(candidate.name, figures)
    medians = comparison.medians("Kafscale")
    plain, committed = medians["uncommitted CPU-s/GB"], medians["committed CPU-s/GB"]
    assert committed <= plain * CPU_RATIO_MAX
