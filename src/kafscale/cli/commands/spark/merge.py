"""`kafscale spark merge`: many small segments become few large ones."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

from random import SystemRandom

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.segment_options import TargetOption, TopicsOption, read_target
from kafscale.cli.commands.spark.session import ConfOption, MasterOption, PathOption, locate, run
from kafscale.cli.connection.control_plane import ControlOption, control_addresses, control_tls
from kafscale.cli.output import Output, OutputOption


def merge(  # noqa: PLR0917 - typer makes options of them.
    topic: TopicsOption = [],
    target: TargetOption = "",
    path: PathOption = "",
    control: ControlOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Make few large segments of many small ones; readers notice nothing.

    \b
    kafscale spark merge
    kafscale spark merge --topic orders --target 500Mi
    kafscale spark merge --path s3://records/production --control broker-0:9093
    """
    from kafscale.spark.jobs.merge import job

    settings = job.MergeSettings(
        location=locate(path),
        control=tuple(map(str, control_addresses(control))),
        control_tls=control_tls(),
        topics=tuple(topic),
        target_bytes=read_target(target),
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
