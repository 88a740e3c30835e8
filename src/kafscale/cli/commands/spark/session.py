"""What all commands on Spark have in common: their options, where the records are, and a session.

A job is a function of a session that returns a `JobResult`:

    run("merge", lambda spark: merge(spark, locate(path)), master=master, conf=conf, output=output)

Whoever says where the records are has a record of the run left there (`jobs.shared.run_record`).

The law: only results are printed. What Spark's Java prints is kept in a file, which is removed when
the job is done, and named when something failed that it may explain.
"""

# ruff: noqa: PLC0415 - Spark is slow to load, and whoever asks for help does without it.

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.commands.config import load_config
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import Output, print_data
from kafscale.errors import ConfigError, KafscaleError, OperatingError

if TYPE_CHECKING:
    from kafscale.config import Config
    from kafscale.spark.jobs.shared.run_record import RunRecord
    from kafscale.spark.runtime.job_result import JobResult
    from kafscale.spark.runtime.session import Session
    from kafscale.spark.source.location import Location

PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        help="s3://bucket/namespace, or a data directory; by default what the settings say.",
        show_default=False,
    ),
]
MasterOption = Annotated[
    str,
    typer.Option("--master", help="Where to run; by default on this machine.", show_default=False),
]
ConfOption = Annotated[
    list[str],
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]


def run(
    name: str,
    job: "Callable[[Session], JobResult]",
    *,
    master: str,
    conf: Sequence[str],
    output: Output,
    location: "Location | None" = None,
    topics: Sequence[str] = (),
) -> None:
    """Run a job, and print what it says; exits with 1 if it complains."""
    with recorded_session(name, location, topics, master=master, conf=conf) as (spark, record):
        summary = job(spark)
        record.set_summary(summary)
    show(summary, output)


@contextmanager
def recorded_session(
    name: str,
    location: "Location | None",
    topics: Sequence[str],
    *,
    master: str,
    conf: Sequence[str],
) -> "Iterator[tuple[Session, RunRecord]]":
    """A session for a job, and the record of its run."""
    from kafscale.spark.jobs.shared.run_record import record_run

    with record_run(location, name, topics) as record, session(name, master, conf) as spark:
        yield spark, record


def show(summary: "JobResult", output: Output) -> None:
    """Print what a job says; exits with 1 if it complains."""
    from kafscale.cli.commands.spark import tables

    if output is Output.TABLE:
        tables.print_summary(summary)
    else:
        print_data(summary.data(), output)
    if summary.problems:
        raise typer.Exit(1)


@contextmanager
def session(name: str, master: str, conf: Sequence[str]) -> "Iterator[Session]":
    """A session for a command of this name."""
    from kafscale.spark.runtime import session as sessions

    _log()
    settings = dict(parse_pairs(conf)) | ({"spark.master": master} if master else {})
    with tempfile.NamedTemporaryFile(prefix="kafscale-spark-", suffix=".log", delete=False) as made:
        log = Path(made.name)
    is_wanted = False
    try:
        with sessions.session(f"kafscale {name}", settings=settings, log=log) as spark:
            yield spark
    except Exception as error:
        is_wanted = _may_be_explained(error) and log.stat().st_size > 0
        raise
    finally:
        if is_wanted:
            typer.echo(f"what Spark printed is in {log}", err=True)
        else:
            log.unlink()


def locate(path: str) -> "Location":
    """Where the records are: at a path, or where the settings say.

    Whatever a path does not say about a bucket, such as its keys, the settings say as well.
    """
    from kafscale.spark.source.location import Location
    from kafscale.storage.objects.factory import bucket

    config = load_config()
    if not path:
        return _configured(config)
    location = Location.parse(path)
    if location.bucket is None:
        return location
    return replace(location, bucket=replace(bucket(config), name=location.bucket.name))


def locate_if_any() -> "Location | None":
    """Where the settings say that records are, for jobs that read none there; None if nowhere."""
    with suppress(KafscaleError):
        return locate("")
    return None


def _configured(config: "Config") -> "Location":
    from kafscale.spark.source.location import Location
    from kafscale.storage.objects.factory import bucket

    if config.s3.use_memory:
        raise ConfigError("records are kept in the memory of a broker, where no job can read them")
    if config.s3.bucket:
        return Location(namespace=config.s3.namespace, bucket=bucket(config))
    return Location.parse(config.broker.data_dir, {"namespace": config.s3.namespace})


def _log() -> None:
    """What happens is logged; of what libraries have to say, only what is alarming."""
    import logging as standard

    from kafscale.observability import logging

    config = load_config()
    logging.configure(config.logging.level, config.logging.format)
    for name in ("py4j", "pyiceberg"):
        standard.getLogger(name).setLevel(standard.WARNING)


def _may_be_explained(error: Exception) -> bool:
    """Whether Spark may have printed more about it; not about wrong names and settings."""
    return isinstance(error, OperatingError) or not isinstance(error, KafscaleError | typer.Exit)
