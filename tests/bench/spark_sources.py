"""What the Spark benches share: filled topics, a session, and the measured CPU time.

The CPU time of a read is that of all processes: this process, Spark's Java, its Python
workers, and the broker that is read from, if one is.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.brokers import Candidate
from bench.process_usage import ProcessTreeUsage
from bench.producer_perf import LARGE, produce
from kafscale.spark import register
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer
from services.spark import running

OURS = "kafscale source"
KAFKA_ON_OURS = "Kafka source, Kafscale"
KAFKA_ON_KAFKA = "Kafka source, Apache Kafka"
PARTITIONS = 6


@dataclass(frozen=True)
class Filled:
    """A topic with the same records at both brokers."""

    name: str
    record_bytes: int
    count: int

    @property
    def size_bytes(self) -> int:
        return self.count * self.record_bytes


@dataclass(frozen=True)
class SparkSources:
    spark: SparkSession
    ours: BrokerProcess
    kafka: KafkaServer

    @property
    def sources(self) -> list[str]:
        """The sources that can read a topic."""
        return [KAFKA_ON_KAFKA, KAFKA_ON_OURS, OURS]

    def fill(self, record_bytes: int, size_bytes: int, name: str) -> Filled:
        """A new topic at both brokers."""
        filled = Filled(f"{name}-{record_bytes}", record_bytes, size_bytes // record_bytes)
        for broker in (self.ours, self.kafka):
            topic = Candidate("", broker).new_topic(PARTITIONS, filled.name)
            produce(broker.address, topic, filled.count, batching=LARGE, record_bytes=record_bytes)
        return filled

    def read(self, source: str, topic: Filled, **options: str) -> DataFrame:
        if source == OURS:
            reader = self.spark.read.format("kafscale").option("path", str(self.ours.data))
        else:
            broker = self.ours if source == KAFKA_ON_OURS else self.kafka
            reader = self.spark.read.format("kafka")
            reader = reader.option("kafka.bootstrap.servers", broker.address)
        return reader.option("subscribe", topic.name).options(**options).load()

    def measured(self, topic: Filled, work: Callable[[], object]) -> dict[str, float]:
        """Measure the wall clock time and CPU time of the work."""
        with ProcessTreeUsage() as usage:
            start = time.perf_counter()
            work()
            seconds = time.perf_counter() - start
        return {
            "MB/s": topic.size_bytes / 1e6 / seconds,
            "krecords/s": topic.count / 1e3 / seconds,
            "CPU-s/GB": usage.cpu_seconds / (topic.size_bytes / 1e9),
        }


@contextmanager
def prepare_sources(directory: Path) -> Iterator[SparkSources]:
    with (
        KafkaServer(directory / "kafka") as kafka,
        BrokerProcess(directory / "ours", local_fsync="false") as ours,
        running(directory / "spark.log") as spark,
    ):
        register(spark)
        yield SparkSources(spark, ours, kafka)
