"""Reading a topic with Spark: our source, which reads the files, and Spark's Kafka source.

The Kafka source reads from our broker and from Apache Kafka. Everything runs once before it is
measured, so that the JIT compiler has finished.
"""

import pytest

from bench.spark_sources import KAFKA_ON_KAFKA, OURS, prepare_sources
from kafscale.spark.jobs.lake import job
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.read.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.target import TableFormat, Target
from services import java
from services.spark import missing

pytestmark = [
    pytest.mark.bench,
    pytest.mark.spark,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(missing()) or not java.is_available(), reason="Spark needs Java"),
]

SIZE_BYTES = 1_000_000_000
WARM_BYTES = 30_000_000
ROUNDS = 1


@pytest.fixture(scope="module")
def spark_sources(tmp_path_factory):
    with prepare_sources(tmp_path_factory.mktemp("spark")) as opened:
        yield opened


@pytest.fixture(scope="module", params=[1024, 100], ids=["1 KiB", "100 B"])
def topics(request, spark_sources, scaled):
    """A topic to warm up with, and one to measure."""
    warm = spark_sources.fill(request.param, WARM_BYTES, "warm")
    return warm, spark_sources.fill(request.param, scaled(SIZE_BYTES), "bench")


def measure(comparisons, spark_sources, topics, title, works):
    """Measure every kind of work, in turns; each takes the topic."""
    warm, topic = topics
    comparison = comparisons.new(f"Spark: {title}, {topic.record_bytes} B records", KAFKA_ON_KAFKA)
    for work in works.values():
        work(warm)
    for _ in range(ROUNDS):
        for name, work in works.items():
            comparison.add(name, spark_sources.measured(topic, lambda work=work: work(topic)))


def test_count(comparisons, spark_sources, topics):
    works = {
        name: lambda topic, name=name: spark_sources.read(name, topic).count()
        for name in spark_sources.sources
    }
    measure(comparisons, spark_sources, topics, "count()", works)


def test_projection(comparisons, spark_sources, topics):
    works = {
        name: lambda topic, name=name: noop(spark_sources.read(name, topic).select("offset"))
        for name in spark_sources.sources
    }
    works[f"{OURS}, columns=offset"] = lambda topic: noop(
        spark_sources.read(OURS, topic, columns="offset").select("offset")
    )
    measure(comparisons, spark_sources, topics, "select offset", works)


def test_everything(comparisons, spark_sources, topics):
    works = {
        name: lambda topic, name=name: noop(spark_sources.read(name, topic))
        for name in spark_sources.sources
    }
    measure(comparisons, spark_sources, topics, "all columns to nowhere", works)


def test_lake(comparisons, spark_sources, topics, tmp_path):
    numbers = iter(range(1000))
    works = {
        f"{name} to Parquet": lambda topic, name=name: spark_sources.read(
            name, topic
        ).write.parquet(str(tmp_path / f"stock-{next(numbers)}"))
        for name in spark_sources.sources
        if name != OURS
    }
    for kind in ("parquet", "iceberg", "delta"):
        works[f"lake to {kind}"] = lambda topic, kind=kind: export(
            spark_sources, topic, kind, tmp_path / f"lake-{next(numbers)}"
        )
    warm, topic = topics
    comparison = comparisons.new(
        f"Spark: topic to files, {topic.record_bytes} B records", f"{KAFKA_ON_KAFKA} to Parquet"
    )
    for work in works.values():
        work(warm)
    for _ in range(ROUNDS):
        for name, work in works.items():
            comparison.add(name, spark_sources.measured(topic, lambda work=work: work(topic)))


def noop(frame):
    frame.write.format("noop").mode("overwrite").save()


def export(spark_sources, topic, kind, directory):
    settings = LakeSettings(
        location=Location.parse(str(spark_sources.ours.data)),
        subscription=Subscription(names=frozenset({topic.name})),
        is_once=True,
    )
    target = Target(table_format=TableFormat(kind), path=str(directory))
    summary = job.run(spark_sources.spark, settings, target)
    assert summary.rows[0][summary.columns.index("records")] == topic.count
