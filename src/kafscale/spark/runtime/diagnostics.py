"""Diagnoses the environment of jobs: this machine, and the workers of a session."""

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
"""The packages that jobs use."""

REQUIRED: Final = ("kafscale", "pyarrow", "numba")
"""The packages that a worker needs."""

_PROBE_S: Final = 0.2
"""How long a probe occupies its task slot, so that every slot gets one."""


class Worker(NamedTuple):
    """A Python process that runs tasks."""

    host: str
    python: str
    versions: tuple[str | None, ...]
    """The versions of `REQUIRED`, in that order."""


def inspect_machine(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what can be found out without starting a process, as JSON data."""
    cache = cache_directory(environ)
    connector = maven.cached(maven.KAFKA_CONNECTOR, cache)
    return {
        "packages": versions(),
        "python": {"version": platform.python_version(), "program": sys.executable},
        "java": _java(environ),
        "sparkHome": environ.get("SPARK_HOME", ""),
        "jars": {
            "directory": str(maven.jar_directory(cache)),
            "kafkaConnector": [jar.name for jar in connector],
        },
    }


def probe_workers(spark: "SparkSession") -> JobResult:
    """Run tasks that report their host and package versions."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    began = time.monotonic()
    context = spark.sparkContext
    slots = range(max(2, context.defaultParallelism))
    workers = Counter(parallel_map(spark, slots, _describe_worker, description="probing workers"))
    local = _required_versions()
    problems = [
        f"{worker.host}: {name} is {version or 'missing'}, the driver has {expected}"
        for worker in workers
        for name, version, expected in zip(REQUIRED, worker.versions, local, strict=True)
        if version != expected
    ]
    return JobResult(
        "check",
        ("host", "tasks", "python", *REQUIRED),
        tuple(
            (worker.host, count, worker.python, *worker.versions)
            for worker, count in sorted(workers.items())
        ),
        {
            "master": context.master,
            "spark": spark.version,
            "java": _java_version(spark),
            "slots": context.defaultParallelism,
            "seconds": round(time.monotonic() - began, 1),
        },
        tuple(problems),
    )


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def _required_versions() -> tuple[str | None, ...]:
    installed = versions()
    return tuple(installed.get(name) for name in REQUIRED)


def _describe_worker(_: int) -> Worker:
    time.sleep(_PROBE_S)
    return Worker(socket.gethostname(), platform.python_version(), _required_versions())


def _java(environ: Mapping[str, str]) -> dict[str, str]:
    try:
        runtime = java.find(environ)
    except KafscaleError as error:
        return {"problem": str(error)}
    home = java.home_for_spark(runtime, cache_directory(environ))
    return {"version": runtime.version, "home": str(home), "foundBy": runtime.origin}


def _java_version(spark: "SparkSession") -> str:
    properties = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr] # noqa: SLF001
    return str(properties.getProperty("java.version"))
