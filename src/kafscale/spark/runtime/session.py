"""The Spark session of a job: the active one, or a new one that needs no settings.

Settings of `spark-submit`, a notebook or a shell are kept. Without any, Spark starts on this
machine with all its processors. Invariants: a setting of the user is never replaced by a default;
if Spark does not start, the error gives the reason in one sentence.

PySpark and Java take the paths of Java and Python from the environment of this process;
`set_environment` sets them. No other module of this package uses the environment.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafscale.errors import ConfigError, OperatingError
from kafscale.spark.runtime import java
from kafscale.spark.runtime.errors import launch_reason, spark_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session: TypeAlias = "SparkSession"
"""The type of sessions, for callers that may not import PySpark."""

DEFAULTS: Final = {
    "spark.python.daemon.module": "kafscale.spark.runtime.worker_daemon",
    # Over TCP every task waits for delayed acknowledgements: 30 ms in place of 10, measured.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
"""Defaults of the settings."""

LOCAL_DEFAULTS: Final = {
    # The host name may not resolve to this machine, and no other machine connects.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Further defaults if Spark runs on this machine only."""

_LAUNCH_DEFAULTS: Final = {"spark.ui.showConsoleProgress": "false"}
"""Defaults that must be set before Spark is launched."""

_GATEWAY_PORT: Final = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit`, which has started Java already."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the cache directory, for jars and other files that can be recreated."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafscale"


def build_session(
    name: str, *, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> "SparkSession":
    """Return the active session, or a new one with this application name.

    `settings` are Spark's and take precedence over all defaults. The output of Java goes to the
    file `log` if given, else to standard error.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it loads slowly, or is not installed.
    except ImportError as error:
        raise ConfigError(
            f"Spark is not installed ({error}): pip install 'kafscale[spark]'"
        ) from error

    settings = dict(settings or {})
    if (active := SparkSession.getActiveSession()) is not None:
        for key, value in settings.items():
            active.conf.set(key, value)
        return active
    return _start(name, settings, log)


@contextmanager
def session(
    name: str, *, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator["SparkSession"]:
    """Provide a session for the block; a session that was active before is not stopped."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above.

    was_active = SparkSession.getActiveSession() is not None
    spark = build_session(name, settings=settings, log=log)
    with ExitStack() as stack:
        if not was_active:
            stack.callback(spark.stop)
        yield spark


def set_environment(master: str) -> None:
    """Set the paths of Java and Python for Spark in the environment."""
    environ = os.environ
    home = java.find(environ)
    environ["JAVA_HOME"] = str(java.home_for_spark(home, cache_directory(environ)))
    environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):  # On a cluster, the path of Python may differ.
        environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _start(name: str, settings: dict[str, str], log: Path | None) -> "SparkSession":
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above.
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    gateway = _gateway(settings, log)
    # Now includes the settings of spark-submit and of Spark's files.
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(settings.items()))
    defaults = dict(DEFAULTS)
    if _GATEWAY_PORT not in os.environ:
        defaults["spark.log.level"] = "WARN" if log else "ERROR"
    if conf.get("spark.master", "local").startswith("local"):
        defaults |= LOCAL_DEFAULTS
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    conf.setIfMissing("spark.master", "local[*]")
    given = conf.get("spark.app.name", "")
    if given in {"", "pyspark-shell"} or given.endswith(".py"):  # A default of Spark.
        conf.setAppName(name)
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException) as error:
        raise OperatingError(f"Spark failed to start: {spark_reason(error)}") from error


def _gateway(settings: Mapping[str, str], log: Path | None) -> Any:
    """Return the gateway to Spark's Java process, which is started if needed."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - as above.
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if (running := SparkContext._gateway) is not None:  # noqa: SLF001 - there can be only one.
        return running
    if _GATEWAY_PORT not in os.environ:
        set_environment(settings.get("spark.master", "local"))
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab")) if log else None
        try:
            conf = SparkConf(loadDefaults=False)
            conf.setAll(list((_LAUNCH_DEFAULTS | dict(settings)).items()))
            return launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            reason = (
                launch_reason(log.read_text(errors="replace")) if log else "see the output above"
            )
            home = os.environ["JAVA_HOME"]
            raise OperatingError(f"Java ({home}) failed to start Spark: {reason}") from None
