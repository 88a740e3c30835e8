"""Many partitions at the start of a broker, and many idle connections."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from bench.brokers import KAFKA, Candidate
from bench.process_usage import resident_bytes
from services import java
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

PARTITIONS = 5_000
CONNECTIONS = 10_000
SPARE_FILES = 5_000
IDLE_SECONDS = 5

ASK_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""ApiVersions v0: a connection without any request is closed soon."""


@pytest.fixture
def unlimited_candidates(tmp_path) -> Iterator[list[Candidate]]:
    """Brokers with the highest connection and file limits of this machine."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    settings = {"local_fsync": "false", "network_max_connections": str(2 * CONNECTIONS)}
    with (
        KafkaServer(tmp_path / "kafka") as kafka,
        BrokerProcess(tmp_path / "kafscale", **settings) as ours,
    ):
        yield [Candidate(KAFKA, kafka), Candidate("Kafscale", ours)]


def test_idle_connections(comparisons, unlimited_candidates, scaled):
    count = scaled(CONNECTIONS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count + SPARE_FILES:
        pytest.skip(f"this machine allows a process {hard} open files")
    comparison = comparisons.new(f"{count:,} idle connections", KAFKA)
    for candidate in unlimited_candidates:
        process_id = candidate.server.process_id
        before = resident_bytes(process_id)
        with ExitStack() as stack:
            started = time.perf_counter()
            for _ in range(count):
                stack.enter_context(connect(candidate.address))
            opened = time.perf_counter() - started
            used = candidate.cpu_seconds()
            time.sleep(IDLE_SECONDS)
            idle = candidate.cpu_seconds() - used
            after = resident_bytes(process_id)
        comparison.add(
            candidate.name,
            {
                "s to open": opened,
                "KB a connection": (after - before) / 1e3 / count,
                "MB in all": after / 1e6,
                "idle CPU %": 100 * idle / IDLE_SECONDS,
            },
        )


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(ASK_VERSIONS)
    assert connection.recv(4)
    return connection


def test_many_partitions(comparisons, unlimited_candidates, scaled):
    count = scaled(PARTITIONS)
    comparison = comparisons.new(f"{count:,} partitions, a record in each", KAFKA)
    for candidate in unlimited_candidates:
        started = time.perf_counter()
        topic = candidate.new_topic(count)
        created = time.perf_counter() - started
        produce_to_each(candidate.address, topic, count)
        used = candidate.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        idle = candidate.cpu_seconds() - used
        stopping = time.perf_counter()
        candidate.server.terminate()
        starting = time.perf_counter()
        candidate.server.start()
        comparison.add(
            candidate.name,
            {
                "s to create": created,
                "idle CPU %": 100 * idle / IDLE_SECONDS,
                "s to stop": starting - stopping,
                "s to start": time.perf_counter() - starting,
                "MB": resident_bytes(candidate.server.process_id) / 1e6,
            },
        )


def produce_to_each(address: str, topic: str, partitions: int) -> None:
    failures = []
    producer = Producer({"bootstrap.servers": address, "linger.ms": 100, "log_level": 0})
    for partition in range(partitions):
        producer.produce(
            topic,
            b"record",
            partition=partition,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(120) == 0
    assert not failures, failures[0]
