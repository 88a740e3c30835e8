"""Spark on this machine, in one session for all tests of a process: it takes long to start.

It has the settings of our own sessions, little of everything, and Spark's Kafka connector where its
jars can be had. What its Java prints is kept in a file.
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
    # Functions of tests run in workers, too.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    "spark.sql.shuffle.partitions": "2",
    # A test that streams looks at many small batches, and remembers none of them.
    "spark.sql.streaming.ui.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


@contextmanager
def running(log: Path) -> Iterator["SparkSession"]:
    """A session, with the connector if there is one."""
    jars = ",".join(map(str, connector_jars()))
    settings = SETTINGS | ({"spark.jars": jars} if jars else {})
    with session("kafscale-tests", settings=settings, log=log) as spark:
        yield spark


@cache
def connector_jars() -> list[Path]:
    """The jars of Spark's Kafka connector; none, where they cannot be fetched."""
    home = java.find(os.environ).home
    try:
        return maven.fetch(maven.KAFKA_CONNECTOR, cache_directory(os.environ), home)
    except KafscaleError:
        return []


def missing() -> str:
    """What Spark lacks here to run at all; nothing, as a rule."""
    try:
        java.find(os.environ)
    except KafscaleError as error:
        return str(error)
    return ""
