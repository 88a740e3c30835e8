"""`kafscale group reset-offsets`: change the committed offsets of a group."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection import BootstrapOption, run
from kafscale.cli.output import Output, OutputOption, print_data
from kafscale.text.formatting import parse_time, pluralize

if TYPE_CHECKING:
    from kafscale.admin.groups.reset import ResetTarget, Topics

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
TopicOption = Annotated[
    list[str],
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:N,N]",
        help="A topic, or partitions of it; may be repeated.",
    ),
]
AllTopicsOption = Annotated[
    bool, typer.Option("--all-topics", help="All topics with committed offsets.")
]
ExecuteOption = Annotated[
    bool, typer.Option("--execute/--dry-run", help="Commit the new offsets, or only show them.")
]
OffsetOption = Annotated[
    int | None, typer.Option("--to-offset", min=0, metavar="N", help="Reset to offset N.")
]
ShiftOption = Annotated[
    int | None,
    typer.Option("--shift-by", metavar="N", help="Shift offsets by N; a negative N moves back."),
]
DatetimeOption = Annotated[
    str,
    typer.Option(
        "--to-datetime", metavar="TIME", help="Reset to the first record at or after this time."
    ),
]
DurationOption = Annotated[
    str,
    typer.Option(
        "--by-duration",
        metavar="PT1H|1h",
        help="Reset to the first record newer than this duration.",
    ),
]
EarliestOption = Annotated[
    bool, typer.Option("--to-earliest", help="Reset to the start of the partitions.")
]
LatestOption = Annotated[
    bool, typer.Option("--to-latest", help="Reset to the end of the partitions.")
]
CurrentOption = Annotated[
    bool, typer.Option("--to-current", help="Reset to the current committed offsets.")
]


def reset_offsets(
    group: GroupArgument,
    *,
    topic: TopicOption = [],  # noqa: B006 - typer makes a list of its own.
    all_topics: AllTopicsOption = False,
    to_offset: OffsetOption = None,
    shift_by: ShiftOption = None,
    to_datetime: DatetimeOption = "",
    by_duration: DurationOption = "",
    to_earliest: EarliestOption = False,
    to_latest: LatestOption = False,
    to_current: CurrentOption = False,
    execute: ExecuteOption = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = "",
) -> None:
    """Reset the offsets of a group without members; without --execute, only show the plan.

    \b
    kafscale group reset-offsets billing --topic orders --to-earliest --execute
    kafscale group reset-offsets billing -t orders:0,2 --shift-by -100
    kafscale group reset-offsets billing --all-topics --to-datetime 2026-01-31
    kafscale group reset-offsets billing --all-topics --by-duration PT1H30M
    """
    from kafscale.admin.groups import reset as group_reset
    from kafscale.admin.groups.reset import ResetTarget, TargetKind, parse_age
    from kafscale.cli.commands.group import tables

    try:
        target = _single_target(
            None if to_offset is None else ResetTarget(TargetKind.OFFSET, to_offset),
            None if shift_by is None else ResetTarget(TargetKind.SHIFT, shift_by),
            ResetTarget(TargetKind.TIME, max(0, parse_time(to_datetime))) if to_datetime else None,
            ResetTarget(TargetKind.TIME, max(0, clock() - parse_age(by_duration)))
            if by_duration
            else None,
            ResetTarget(TargetKind.EARLIEST) if to_earliest else None,
            ResetTarget(TargetKind.LATEST) if to_latest else None,
            ResetTarget(TargetKind.CURRENT) if to_current else None,
        )
        topics = _topics(topic, all_topics=all_topics)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    plan = run(
        bootstrap, lambda client: group_reset.reset(client, group, topics, target, execute=execute)
    )
    if output is not Output.TABLE:
        print_data(plan, output)
        return
    tables.print_resets(plan)
    if execute:
        typer.echo(f"\nreset {pluralize(len(plan), 'partition')} of group {group}", err=True)
    else:
        typer.echo("\nnothing was changed; add --execute to commit the new offsets", err=True)


def _single_target(*targets: "ResetTarget | None") -> "ResetTarget":
    chosen = [target for target in targets if target is not None]
    if len(chosen) != 1:
        raise ValueError(
            "give exactly one of --to-offset, --shift-by, --to-datetime, --by-duration,"
            " --to-earliest, --to-latest or --to-current"
        )
    return chosen[0]


def _topics(texts: list[str], *, all_topics: bool) -> "Topics | None":
    """The partitions of the options; None stands for all with committed offsets."""
    from kafscale.admin.groups.reset import parse_topic

    if bool(texts) == all_topics:
        raise ValueError("give either --topic, once or several times, or --all-topics")
    topics: dict[str, list[int]] = {}
    for name, partitions in map(parse_topic, texts):
        topics.setdefault(name, []).extend(partitions)
    return None if all_topics else topics
