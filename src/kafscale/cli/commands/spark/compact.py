"""`kafscale spark compact` and `kafscale spark merge`: rewrite the segments of topics."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from random import SystemRandom
from typing import Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.options import SegmentBytesOption, TopicsOption, read_segment_bytes
from kafscale.cli.commands.spark.session import PathOption, SparkOptions, resolve_location, run
from kafscale.cli.connection import ControlOption, control_addresses, control_tls


def compact(
    *,
    topic: TopicsOption = [],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Compact the named topics whatever their cleanup.policy and"
            " min.cleanable.dirty.ratio; min.compaction.lag.ms still applies.",
        ),
    ] = False,
    target: SegmentBytesOption = "",
    path: PathOption = "",
    control: ControlOption = "",
    spark: SparkOptions,
) -> None:
    """Keep only the latest record of each key, in topics with cleanup.policy=compact.

    The topic configs of Kafka's log cleaner decide what is compacted and when. Schedule this job
    regularly; it does nothing if there is nothing to compact.

    \b
    kafscale spark compact
    kafscale spark compact --topic customers
    kafscale spark compact --topic customers --force
    """
    from kafscale.spark.jobs.compact import job

    if force and not topic:
        raise typer.BadParameter("--force needs --topic", param_hint="--force")
    settings = job.CompactSettings(
        location=resolve_location(path),
        control=tuple(map(str, control_addresses(control))),
        control_tls=control_tls(),
        topics=tuple(topic),
        is_forced=force,
        target_bytes=read_segment_bytes(target),
    )
    run(
        "compact",
        lambda session: job.run(session, settings, clock=clock, random=SystemRandom()),
        spark,
        location=settings.location,
        topics=topic,
    )


def merge(
    *,
    topic: TopicsOption = [],
    target: SegmentBytesOption = "",
    path: PathOption = "",
    control: ControlOption = "",
    spark: SparkOptions,
) -> None:
    """Merge small segments into large ones, while brokers continue to serve them.

    \b
    kafscale spark merge
    kafscale spark merge --topic orders --target 500Mi
    kafscale spark merge --path s3://records/production --control broker-0:9095
    """
    from kafscale.spark.jobs.merge import job
    from kafscale.spark.jobs.shared.segment_install import RewriteSettings

    settings = RewriteSettings(
        location=resolve_location(path),
        control=tuple(map(str, control_addresses(control))),
        control_tls=control_tls(),
        topics=tuple(topic),
        target_bytes=read_segment_bytes(target),
    )
    run(
        "merge",
        lambda session: job.run(session, settings, clock=clock, random=SystemRandom()),
        spark,
        location=settings.location,
        topics=topic,
    )
