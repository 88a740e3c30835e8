"""`kafscale spark restore`: restore a topic as of a time into a new topic."""

# ruff: noqa: D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from typing import Annotated

import typer

from kafscale.cli.commands.spark.options import (
    IsolationOption,
    TargetArgument,
    TargetOptions,
    TopicArgument,
    read_time,
)
from kafscale.cli.commands.spark.session import SparkOptions, resolve_location, run


def restore(
    *,
    topic: TopicArgument,
    target: TargetArgument,
    as_of: Annotated[
        str,
        typer.Option(
            "--as-of", help="Restore records up to this time, or up to this duration ago."
        ),
    ] = "",
    offsets: Annotated[
        str,
        typer.Option(
            "--offsets", metavar="JSON", help='End offsets of partitions: {"orders": {"0": 23}}.'
        ),
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PATH",
            help="s3://bucket/namespace, or a data directory; by default from the settings.",
            show_default=False,
        ),
    ] = "",
    isolation_level: IsolationOption = "read_committed",
    to: TargetOptions,
    spark: SparkOptions,
) -> None:
    """Restore a topic, as of a point in time, into a new topic.

    All records up to the time are restored, with key, value, headers, timestamp and partition; by
    default without those of transactions that were aborted or are still open. The job reads only
    the bucket: of a running cluster, of a backup, or of a deleted topic whose objects still exist.
    After an interruption, run it again to continue.

    \b
    kafscale spark restore orders orders-restored --as-of 2026-01-31T12:00:00Z
    kafscale spark restore orders orders-restored --as-of 2h --from s3://backup/production
    """
    if as_of and offsets:
        raise typer.BadParameter("give --as-of or --offsets, not both", param_hint="--as-of")
    until_ms = read_time("--as-of", as_of)
    settings_of_target = to.settings()

    from kafscale.spark.jobs.restore import job

    settings = job.RestoreSettings(
        location=resolve_location(source),
        topic=topic,
        target=target,
        until_ms=until_ms,
        end_offsets=offsets,
        is_committed=isolation_level == "read_committed",
        **settings_of_target,
    )
    run(
        "restore",
        lambda session: job.run(session, settings),
        spark,
        location=settings.location,
        topics=(topic,),
    )
