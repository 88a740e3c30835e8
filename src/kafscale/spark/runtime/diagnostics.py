"""What there is to run jobs on: on this machine, and at the workers of a session."""

import platform
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafscale.errors import KafscaleError
from kafscale.spark.runtime import java, maven
from kafscale.spark.runtime.job_result import JobResult
from kafscale.spark.runtime.session import cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("kafscale", "pyspark", "pyarrow", "numba", "pyiceberg", "deltalake")
"""What jobs are made of."""

NEEDED: Final = ("kafscale", "pyarrow", "numba")
"""What a worker cannot do without."""

_LINGER_S: Final = 0.2
"""How long a worker keeps its place, so that all places are asked."""


class Worker(NamedTuple):
    """What a process that runs tasks says of itself."""

    host: str
    python: str
    versions: tuple[str | None, ...]
    """Of the packages that it needs, in their order."""


def examine(environ: Mapping[str, str]) -> dict[str, Any]:
    """All that can be found out without starting anything; for programs."""
    cache = cache_directory(environ)
    connector = maven.kept(maven.KAFKA_CONNECTOR, cache)
    return {
        "packages": versions(),
        "python": {"version": platform.python_version(), "program": sys.executable},
        "java": _java(environ),
        "sparkHome": environ.get("SPARK_HOME", ""),
        "jars": {
            "directory": str(maven.directory_of(cache)),
            "kafkaConnector": [jar.name for jar in connector],
        },
    }


def ask_workers(spark: "SparkSession") -> JobResult:
    """Have tasks tell where they run and what they find there."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it needs Spark, the rest of this does not.

    began = time.monotonic()
    context = spark.sparkContext
    places = range(max(2, context.defaultParallelism))
    workers = Counter(parallel_map(spark, places, _introduce, description="asking workers"))
    here = _needed()
    problems = [
        f"{worker.host}: {name} is {there or 'missing'}, here it is {ours}"
        for worker in workers
        for name, there, ours in zip(NEEDED, worker.versions, here, strict=True)
        if there != ours
    ]
    return JobResult(
        "check",
        ("host", "tasks", "python", *NEEDED),
        tuple(
            (worker.host, count, worker.python, *worker.versions)
            for worker, count in sorted(workers.items())
        ),
        {
            "master": context.master,
            "spark": spark.version,
            "java": _java_of(spark),
            "slots": context.defaultParallelism,
            "seconds": round(time.monotonic() - began, 1),
        },
        tuple(problems),
    )


def versions() -> dict[str, str]:
    """The packages that are there."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _needed() -> tuple[str | None, ...]:
    found = versions()
    return tuple(found.get(name) for name in NEEDED)


def _introduce(_: int) -> Worker:
    time.sleep(_LINGER_S)
    return Worker(socket.gethostname(), platform.python_version(), _needed())


def _java(environ: Mapping[str, str]) -> dict[str, str]:
    try:
        found = java.find(environ)
    except KafscaleError as error:
        return {"problem": str(error)}
    home = java.home_for_spark(found, cache_directory(environ))
    return {"version": found.version, "home": str(home), "foundBy": found.origin}


def _java_of(spark: "SparkSession") -> str:
    properties = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr] # noqa: SLF001
    return str(properties.getProperty("java.version"))
