"""`kafscale spark scrub`: whether everything in a namespace is whole."""

# ruff: noqa: B006, D301, PLC0415 - typer makes lists of its own; \b keeps the lines of examples
# apart; Spark is slow to load.

from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.segment_options import TopicsOption
from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    PathOption,
    locate,
    recorded_session,
)
from kafscale.cli.output import Output, OutputOption, print_data, print_line, print_table

if TYPE_CHECKING:
    from kafscale.spark.jobs.scrub.job import ScrubReport


def scrub(  # noqa: PLR0917 - typer makes options of them.
    topic: TopicsOption = [],
    repair: Annotated[
        bool, typer.Option("--repair", help="Make missing and damaged indexes anew.")
    ] = False,
    path: PathOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],
    output: OutputOption = Output.TABLE,
) -> None:
    """Read everything and prove it: checksums, records, offsets, indexes. Brokers go on meanwhile.

    It exits with 1 if something is damaged.

    \b
    kafscale spark scrub
    kafscale spark scrub --topic orders --repair
    kafscale spark scrub -o json | jq '.findings[] | select(.isDamage)'
    """
    from kafscale.spark.jobs.scrub import job

    settings = job.ScrubSettings(location=locate(path), topics=tuple(topic), repair=repair)
    with recorded_session("scrub", settings.location, topic, master=master, conf=conf) as (
        spark,
        record,
    ):
        report = job.run(spark, settings, clock=clock)
        record.set_summary(report.summary)
    if output is Output.TABLE:
        _print(report)
    else:
        print_data(report.data(), output)
    if report.summary.problems:
        raise typer.Exit(1)


def _print(report: "ScrubReport") -> None:
    from kafscale.cli.commands.spark.tables import print_summary

    others = [each for each in report.findings if not each.is_damage]
    if others:
        print_table(
            ("finding", "object", ""),
            (
                (each.kind, each.key, ("rebuilt", "green") if each.is_repaired else each.reason)
                for each in others
            ),
        )
        print_line()
    print_summary(report.summary)
