"""`kafscale spark compact`: the latest record of each key."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

from random import SystemRandom
from typing import Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.segment_options import TargetOption, TopicsOption, read_target
from kafscale.cli.commands.spark.session import ConfOption, MasterOption, PathOption, locate, run
from kafscale.cli.connection.control_plane import ControlOption, control_addresses, control_tls
from kafscale.cli.output import Output, OutputOption


def compact(  # noqa: PLR0917 - typer makes options of them.
    topic: TopicsOption = [],
    force: Annotated[
        bool,
        typer.Option("--force", help="Whatever cleanup.policy says, and however little is dirty."),
    ] = False,
    target: TargetOption = "",
    path: PathOption = "",
    control: ControlOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Leave the latest record of each key, in topics whose cleanup.policy has compact.

    When it is worthwhile, and what stays as it is, the topic's configs say: those of Kafka's log
    cleaner. Run it as often as you like.

    \b
    kafscale spark compact
    kafscale spark compact --topic customers
    kafscale spark compact --topic customers --force
    """
    from kafscale.spark.jobs.compact import job

    if force and not topic:
        raise typer.BadParameter("name the topics with --topic", param_hint="--force")
    settings = job.CompactSettings(
        location=locate(path),
        control=tuple(map(str, control_addresses(control))),
        control_tls=control_tls(),
        topics=tuple(topic),
        is_forced=force,
        target_bytes=read_target(target),
    )
    run(
        "compact",
        lambda spark: job.run(spark, settings, clock=clock, random=SystemRandom()),
        master=master,
        conf=conf,
        output=output,
        location=settings.location,
        topics=topic,
    )
