"""`kafscale spark restore`: a topic as it was at a time, as a new topic."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

from typing import Annotated

import typer

from kafscale.cli.commands.spark.copy_options import (
    PartitionsOption,
    TargetArgument,
    TopicArgument,
    TopicConfigOption,
    brokers,
    read_time,
)
from kafscale.cli.commands.spark.session import ConfOption, MasterOption, locate, run
from kafscale.cli.connection.kafka import BootstrapOption, client_security
from kafscale.cli.options import parse_pairs
from kafscale.cli.output import Output, OutputOption


def restore(  # noqa: PLR0917 - typer makes options of them.
    topic: TopicArgument,
    target: TargetArgument,
    as_of: Annotated[
        str, typer.Option("--as-of", help="The time of the latest record that is wanted.")
    ] = "",
    offsets: Annotated[
        str,
        typer.Option(
            "--offsets", metavar="JSON", help='Where partitions end: {"orders": {"0": 23}}.'
        ),
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PATH",
            help="s3://bucket/namespace, or a data directory; by default what the settings say.",
            show_default=False,
        ),
    ] = "",
    bootstrap: BootstrapOption = "",
    partitions: PartitionsOption = None,
    topic_config: TopicConfigOption = [],
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore a topic, as it was at a time, into a new one; exact to the record.

    Every record whose timestamp is not after the time is restored, with its key, value, headers,
    timestamp and partition. It is read from the bucket alone: of a running cluster, of a backup, or
    where the topic is deleted and its objects are still there. Killed, it goes on when run again.

    \b
    kafscale spark restore orders orders-restored --as-of 2026-01-31T12:00:00Z
    kafscale spark restore orders orders-restored --as-of 2h --from s3://backup/production
    """
    if as_of and offsets:
        raise typer.BadParameter("give a time or offsets, not both", param_hint="--as-of")
    until_ms = read_time("--as-of", as_of)
    servers, security = brokers(bootstrap), client_security()
    configs = dict(parse_pairs(topic_config))

    from kafscale.spark.jobs.restore import job

    settings = job.RestoreSettings(
        location=locate(source),
        topic=topic,
        target=target,
        bootstrap=servers,
        security=security,
        until_ms=until_ms,
        end_offsets=offsets,
        partition_count=partitions,
        configs=configs,
    )
    run(
        "restore",
        lambda spark: job.run(spark, settings),
        master=master,
        conf=conf,
        output=output,
        location=settings.location,
        topics=(topic,),
    )
