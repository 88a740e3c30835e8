"""The session that a job runs on: the one that is there, or a new one that needs no settings.

`spark-submit`, a notebook or a shell may have prepared everything: whatever they say holds. Where
there is nothing, Spark starts on this machine, with all its processors, quietly. The law: a setting
of the user's is never replaced by one of ours, and what keeps Spark from starting is told in a
sentence.

PySpark and the Java that it starts take their Java and their Python from the environment of this
process, whence `prepare` puts them there; it is the only place in this room that knows it.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafscale.errors import ConfigError, OperatingError
from kafscale.spark.runtime import java
from kafscale.spark.runtime.errors import launch_reason, spark_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.python.daemon.module": "kafscale.spark.runtime.worker_daemon",
    # Over TCP every task waits for delayed acknowledgements: 30 ms in place of 10, measured.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
"""What holds unless the user says otherwise."""

LOCAL_DEFAULTS: Final = {
    # The name of a machine need not lead to it, and nobody else has to come in.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""What holds, too, where all of Spark is this machine."""

_LAUNCH_DEFAULTS: Final = {"spark.ui.showConsoleProgress": "false"}
"""What Spark decides for itself as soon as it is launched."""

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit`, whose Java runs already."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Where jars are kept, and whatever else can be made again."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafscale"


def build_session(
    name: str, *, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> "SparkSession":
    """The active session, or a new one of this name.

    `settings` are Spark's, and stand above all defaults. What a Java that is started here prints
    goes to the file `log`, if there is one, and otherwise where this process prints errors.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it loads slowly, or is not there.
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
    """A session for as long as the block lasts; one that was there before stays."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above.

    was_there = SparkSession.getActiveSession() is not None
    spark = build_session(name, settings=settings, log=log)
    with ExitStack() as stack:
        if not was_there:
            stack.callback(spark.stop)
        yield spark


def prepare(master: str) -> None:
    """Put into the environment which Java and which Python Spark is to run."""
    environ = os.environ
    found = java.find(environ)
    environ["JAVA_HOME"] = str(java.home_for_spark(found, cache_directory(environ)))
    environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):  # Elsewhere, Python may be anywhere.
        environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _start(name: str, settings: dict[str, str], log: Path | None) -> "SparkSession":
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above.
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    gateway = _gateway(settings, log)
    # The settings of spark-submit and of Spark's files, which are known now.
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(settings.items()))
    defaults = dict(DEFAULTS)
    if _SUBMITTED not in os.environ:
        defaults["spark.log.level"] = "WARN" if log else "ERROR"
    if conf.get("spark.master", "local").startswith("local"):
        defaults |= LOCAL_DEFAULTS
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    conf.setIfMissing("spark.master", "local[*]")
    if _is_nobodys_choice(conf.get("spark.app.name", "")):
        conf.setAppName(name)
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException) as error:
        raise OperatingError(f"Spark does not start: {spark_reason(error)}") from error


def _gateway(settings: Mapping[str, str], log: Path | None) -> Any:
    """The Java that Spark runs in, started if need be."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - as above.
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if (running := SparkContext._gateway) is not None:  # noqa: SLF001 - a second would be in its way.
        return running
    if _SUBMITTED not in os.environ:
        prepare(settings.get("spark.master", "local"))
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab")) if log else None
        try:
            conf = SparkConf(loadDefaults=False)
            conf.setAll(list((_LAUNCH_DEFAULTS | dict(settings)).items()))
            return launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            reason = launch_reason(log.read_text(errors="replace")) if log else "as it says above"
            home = os.environ["JAVA_HOME"]
            raise OperatingError(f"Java ({home}) does not start Spark: {reason}") from None


def _is_nobodys_choice(name: str) -> bool:
    """Whether the name of an application is only what Spark calls those without one."""
    return name in {"", "pyspark-shell"} or name.endswith(".py")
