"""`kafscale spark merge`: merge small segments."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from random import SystemRandom

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.options import SegmentBytesOption, TopicsOption, read_segment_bytes
from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    PathOption,
    resolve_location,
    run,
)
from kafscale.cli.connection.control_plane import ControlOption, control_addresses, control_tls
from kafscale.cli.output import Output, OutputOption


def merge(  # noqa: PLR0917 - typer makes options of them.
    topic: TopicsOption = [],
    target: SegmentBytesOption = "",
    path: PathOption = "",
    control: ControlOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Merge small segments into large ones, while brokers continue to serve them.

    \b
    kafscale spark merge
    kafscale spark merge --topic orders --target 500Mi
    kafscale spark merge --path s3://records/production --control broker-0:9093
    """
    from kafscale.spark.jobs.merge import job

    settings = job.MergeSettings(
        location=resolve_location(path),
        control=tuple(map(str, control_addresses(control))),
        control_tls=control_tls(),
        topics=tuple(topic),
        target_bytes=read_segment_bytes(target),
    )
    run(
        "merge",
        lambda spark: job.run(spark, settings, clock=clock, random=SystemRandom()),
        master=master,
        conf=conf,
        output=output,
        location=settings.location,
        topics=topic,
    )
