"""A local Spark session, shared by all tests of a process because it starts slowly.

It has the settings of our own sessions with few resources, and Spark's Kafka connector if its jars
can be downloaded. The log of the JVM is a file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafscale.errors import KafscaleError
from kafscale.spark.runtime import java, maven
from kafscale.spark.runtime.session import cache_directory, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    # Functions of tests run in workers.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    # Queries are small: compiling them, in Java or to Java, takes longer than running them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Streaming tests run many small batches, whose history is not needed.
    "spark.sql.streaming.ui.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


@contextmanager
def running(log: Path) -> Iterator["SparkSession"]:
    """Run a session, with the connector if it is available."""
    jars = ",".join(map(str, connector_jars()))
    settings = SETTINGS | ({"spark.jars": jars} if jars else {})
    with session("kafscale-tests", settings=settings, log=log) as spark:
        yield spark


@cache
def connector_jars() -> list[Path]:
    """The jars of Spark's Kafka connector; empty if they cannot be downloaded."""
    home = java.find(os.environ).home
    try:
        return maven.fetch(maven.KAFKA_CONNECTOR, cache_directory(os.environ), home)
    except KafscaleError:
        return []


def missing() -> str:
    """Why Spark cannot run here; empty if it can."""
    try:
        java.find(os.environ)
    except KafscaleError as error:
        return str(error)
    return ""
