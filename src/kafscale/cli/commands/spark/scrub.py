"""`kafscale spark scrub`: verify all objects of a namespace."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.spark.options import TopicsOption
from kafscale.cli.commands.spark.session import (
    PathOption,
    SparkOptions,
    recorded_session,
    resolve_location,
)
from kafscale.cli.output import Output, print_data, print_line, print_table

if TYPE_CHECKING:
    from kafscale.spark.jobs.scrub.job import ScrubReport


def scrub(
    *,
    topic: TopicsOption = [],
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild missing and damaged indexes.")
    ] = False,
    path: PathOption = "",
    spark: SparkOptions,
) -> None:
    """Read and verify all objects: checksums, records, offsets and indexes.

    Brokers may run meanwhile. The command exits with 1 if an object is damaged.

    \b
    kafscale spark scrub
    kafscale spark scrub --topic orders --repair
    kafscale spark scrub -o json | jq '.findings[] | select(.isDamage)'
    """
    from kafscale.spark.jobs.scrub import job

    settings = job.ScrubSettings(
        location=resolve_location(path), topics=tuple(topic), repair=repair
    )
    with recorded_session("scrub", settings.location, topic, spark) as (session, record):
        report = job.run(session, settings, clock=clock)
        record.set_summary(report.summary)
    if spark.output is Output.TABLE:
        _print(report)
    else:
        print_data(report.data(), spark.output)
    if report.summary.problems:
        raise typer.Exit(1)


def _print(report: "ScrubReport") -> None:
    from kafscale.cli.commands.spark.session import print_summary

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
