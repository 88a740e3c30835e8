"""Common parts of Spark commands: options, the location of records, and the session.

A job is a function of a session that returns a `JobResult`:

    location = resolve_location(path)
    run("merge", lambda spark: merge(spark, location), options, location=location)

With a location, the job stores a run record there (`jobs.shared.run_record`).

Only results are printed. The output of Spark's JVM goes to a log file, which is deleted after
success, and named in the output after a failure that it may explain.
"""


# ruff: noqa: PLC0415 - Spark is slow to import, and --help does not need it.

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafscale.cli.commands.config import load_config
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import (
    Output,
    OutputOption,
    Part,
    print_data,
    print_error,
    print_line,
    print_table,
)
from kafscale.cli.secrets import refuse_secrets
from kafscale.errors import ConfigError, KafscaleError, OperatingError
from kafscale.text.formatting import format_size, format_time

if TYPE_CHECKING:
    from kafscale.config import Config
    from kafscale.spark.jobs.shared.run_record import RunRecord
    from kafscale.spark.read.location import Location
    from kafscale.spark.runtime.job_result import Cell, JobResult
    from kafscale.spark.runtime.session import Session

PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        help="s3://bucket/namespace, or a data directory; by default from the settings.",
        show_default=False,
    ),
]

_UNIT = re.compile(r"(Bytes|Ms)$")


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """Options of the Spark session."""

    master: Annotated[
        str,
        typer.Option(
            "--master",
            help="Spark master URL; by default Spark runs on this machine.",
            show_default=False,
        ),
    ] = ""
    conf: Annotated[
        list[str],
        typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated."),
    ] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse secrets among the settings."""
        refuse_secrets(
            "--conf", parse_pairs(self.conf), "spark-defaults.conf in the directory SPARK_CONF_DIR"
        )


@dataclass(frozen=True, kw_only=True)
class SparkOptions(SessionOptions):
    """Options of all jobs."""

    output: OutputOption = Output.TABLE


def run(
    name: str,
    job: "Callable[[Session], JobResult]",
    options: SparkOptions,
    *,
    location: "Location | None" = None,
    topics: Sequence[str] = (),
) -> None:
    """Run a job and print its result; exit with 1 if it reports problems."""
    with recorded_session(name, location, topics, options) as (spark, record):
        summary = job(spark)
        record.set_summary(summary)
    show(summary, options.output)


@contextmanager
def recorded_session(
    name: str, location: "Location | None", topics: Sequence[str], options: SessionOptions
) -> "Iterator[tuple[Session, RunRecord]]":
    """A session for a job, and the record of its run."""
    from kafscale.spark.jobs.shared.run_record import record_run

    with record_run(location, name, topics) as record, session(name, options) as spark:
        yield spark, record


def show(summary: "JobResult", output: Output) -> None:
    """Print the result of a job; exit with 1 if it reports problems."""
    if output is Output.TABLE:
        print_summary(summary)
    else:
        print_data(summary.data(), output)
    if summary.problems:
        raise typer.Exit(1)


@contextmanager
def session(name: str, options: SessionOptions) -> "Iterator[Session]":
    """A session for a command of this name."""
    from kafscale.spark.runtime import session as sessions

    _log()
    master = {"spark.master": options.master} if options.master else {}
    settings = dict(parse_pairs(options.conf)) | master
    with tempfile.NamedTemporaryFile(prefix="kafscale-spark-", suffix=".log", delete=False) as file:
        log = Path(file.name)
    keep_log = False
    try:
        with sessions.session(f"kafscale {name}", settings=settings, log=log) as spark:
            yield spark
    except Exception as error:
        keep_log = _may_be_explained(error) and log.stat().st_size > 0
        raise
    finally:
        if keep_log:
            typer.echo(f"the output of Spark is in {log}", err=True)
        else:
            log.unlink()


def resolve_location(path: str) -> "Location":
    """The location of the records: a path, or that of the settings.

    Credentials and the endpoint of a bucket always come from the settings.
    """
    from kafscale.spark.read.location import Location
    from kafscale.storage.objects.factory import bucket

    config = load_config()
    if not path:
        return _configured(config)
    location = Location.parse(path)
    if location.bucket is None:
        return location
    return replace(location, bucket=replace(bucket(config), name=location.bucket.name))


def configured_location() -> "Location | None":
    """The location of the settings, or None, for jobs that do not read records there."""
    with suppress(KafscaleError):
        return resolve_location("")
    return None


def _configured(config: "Config") -> "Location":
    from kafscale.spark.read.location import Location
    from kafscale.storage.objects.factory import bucket

    if config.s3.use_memory:
        raise ConfigError("records are in the memory of a broker, where jobs cannot read them")
    if config.s3.bucket:
        return Location(namespace=config.s3.namespace, bucket=bucket(config))
    return Location.parse(config.broker.data_dir, {"namespace": config.s3.namespace})


def _log() -> None:
    """Configure logging; libraries log only warnings and errors."""
    import logging as standard

    from kafscale.observability import logging

    config = load_config()
    logging.configure(config.logging.level, config.logging.format)
    for name in ("py4j", "pyiceberg"):
        standard.getLogger(name).setLevel(standard.WARNING)


def _may_be_explained(error: Exception) -> bool:
    """Whether the log of Spark may explain the error; not for wrong names and settings."""
    return isinstance(error, OperatingError) or not isinstance(error, KafscaleError | typer.Exit)


def print_summary(summary: "JobResult") -> None:
    if summary.rows:
        print_table(
            [title(column) for column in summary.columns],
            (
                [cell(column, value) for column, value in zip(summary.columns, row, strict=True)]
                for row in summary.rows
            ),
        )
        print_line()
    facts = [f"{title(name)} {cell(name, value)}" for name, value in summary.facts.items()]
    print_line((summary.job, "bold"), ": ", ", ".join(facts) or "done")
    for problem in summary.problems:
        print_error(problem)


def print_diagnostics(diagnostics: dict[str, Any]) -> None:
    for name, version in diagnostics["packages"].items():
        _print_fact(name, version)
    _print_fact("python", "{version}, {program}".format_map(diagnostics["python"]))
    if problem := diagnostics["java"].get("problem"):
        _print_fact("java", (problem, "red"))
    else:
        _print_fact("java", "{version}, {home}, found by {foundBy}".format_map(diagnostics["java"]))
    if diagnostics["sparkHome"]:
        _print_fact("SPARK_HOME", diagnostics["sparkHome"])
    _print_fact("jars", diagnostics["jars"]["directory"])
    connector = diagnostics["jars"]["kafkaConnector"]
    _print_fact(
        "", ", ".join(connector) or "no Kafka connector; download it with: kafscale spark jars"
    )


def title(name: str) -> str:
    """A JSON name as words, without its unit.

    >>> title("writtenBytes"), title("recordCount"), title("topic"), title("bytes")
    ('written', 'record count', 'topic', 'bytes')
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", _UNIT.sub("", name) or name).lower()


def cell(name: str, value: "Cell") -> str:
    """Format a value by the unit in its name.

    >>> cell("writtenBytes", 2048), cell("records", 12345), cell("oldestMs", 0), cell("key", None)
    ('2.0 KiB', '12,345', '1970-01-01T00:00:00.000Z', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name.endswith(("Bytes", "bytes")):
        return format_size(value)
    if isinstance(value, float):
        return f"{value:,.1f}"
    return format_time(value) if name.endswith("Ms") else f"{value:,}"


def _print_fact(label: str, fact: Part) -> None:
    print_line((f"  {label:<11}", "dim"), fact)
