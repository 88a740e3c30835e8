"""`kafscale spark replay`: copy a topic into another, filtered and transformed."""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# Spark is slow to import.

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from kafscale.cli.commands.spark.options import (
    IsolationOption,
    TargetArgument,
    TargetOptions,
    TopicArgument,
    read_time,
)
from kafscale.cli.commands.spark.session import PathOption, SparkOptions, resolve_location, run
from kafscale.cli.options import Compression

WhereOption = Annotated[
    str, typer.Option("--where", metavar="SQL", help="Condition on records; by default all.")
]
SelectOption = Annotated[
    list[str],
    typer.Option(
        "--select",
        metavar="SQL",
        help="Expression for key, value, timestamp or headers: 'upper(text) AS value'.",
    ),
]
FunctionOption = Annotated[
    str,
    typer.Option(
        "--function",
        metavar="MODULE:NAME",
        help="Function that transforms Arrow batches; searched in the working directory.",
    ),
]
SinceOption = Annotated[str, typer.Option("--since", help="Only records at or after this time.")]
UntilOption = Annotated[str, typer.Option("--until", help="Only records before this time.")]
StartingOption = Annotated[
    str, typer.Option("--starting-offsets", metavar="JSON", help='{"orders": {"0": 23, "1": -2}}')
]
EndingOption = Annotated[
    str, typer.Option("--ending-offsets", metavar="JSON", help='{"orders": {"0": 99, "1": -1}}')
]
PartitionerOption = Annotated[
    Literal["keep", "key"], typer.Option(help="Keep the partition, or choose it by key.")
]
CompressionOption = Annotated[
    Compression, typer.Option(help="Compression type of written batches.")
]


def replay(
    *,
    topic: TopicArgument,
    target: TargetArgument,
    where: WhereOption = "",
    select: SelectOption = [],
    function: FunctionOption = "",
    since: SinceOption = "",
    until: UntilOption = "",
    starting_offsets: StartingOption = "",
    ending_offsets: EndingOption = "",
    partitioner: PartitionerOption = "keep",
    compression: CompressionOption = "lz4",
    isolation_level: IsolationOption = "read_committed",
    path: PathOption = "",
    to: TargetOptions,
    spark: SparkOptions,
) -> None:
    """Copy a topic, or a part of it, into another topic, filtered and transformed.

    SQL expressions can use the columns key, value, timestamp, headers, partition and offset, and
    the value as text and json. If the job is run again, it writes only the missing records.

    \b
    kafscale spark replay orders large-orders --where "json:amount::int > 1000"
    kafscale spark replay orders masked --select "regexp_replace(text, '[0-9]', 'x') AS value"
    kafscale spark replay orders orders-12 --partitioner key --partitions 12
    """
    bounds = {
        "startingOffsets": starting_offsets,
        "endingOffsets": ending_offsets,
        "startingTimestamp": _text(read_time("--since", since)),
        "endingTimestamp": _text(read_time("--until", until)),
    }
    settings_of_target = to.settings()

    from kafscale.records import Codec
    from kafscale.spark.jobs.replay import job

    if function:
        sys.path.insert(0, str(Path.cwd()))
    settings = job.ReplaySettings(
        location=resolve_location(path),
        topic=topic,
        target=target,
        where=where,
        select=tuple(select),
        function=function,
        partitioner=partitioner,
        bounds={name: text for name, text in bounds.items() if text},
        codec=Codec[compression.upper()],
        isolation=isolation_level,
        **settings_of_target,
    )
    run(
        "replay",
        lambda session: job.run(session, settings),
        spark,
        location=settings.location,
        topics=(topic,),
    )


def _text(time_ms: int | None) -> str:
    return "" if time_ms is None else str(time_ms)
