"""`kafscale consume`: the records of topics, on standard output."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.config import effective
from kafscale.cli.connection.client_run import client_of
from kafscale.cli.connection.kafka import BootstrapOption
from kafscale.cli.options import Format, FormatOption
from kafscale.groups.assignors import Assignor

if TYPE_CHECKING:
    from kafscale.cli.commands.consume.format import Formatter
    from kafscale.cli.commands.consume.printer import Wanted
    from kafscale.client.client import Client

StartOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="PLACE",
        help="earliest, latest, an offset, -N for the last N, a time, or how long ago.",
    ),
]
PartitionOption = Annotated[
    list[int],
    typer.Option("--partition", "-p", metavar="N", help="Only this one; may be repeated."),
]
GroupOption = Annotated[
    str,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        help="Share the partitions with all others in this group, and go on where it has come to.",
        show_default=False,
    ),
]
AssignorOption = Annotated[
    Assignor, typer.Option("--assignor", help="How the group shares the partitions out.")
]
CountOption = Annotated[
    int | None, typer.Option("--max-messages", "-n", min=1, metavar="N", help="End after so many.")
]
NoFollowOption = Annotated[
    bool, typer.Option("--no-follow", "-e", help="End at the end, rather than wait for more.")
]
ShowOption = Annotated[
    str,
    typer.Option(
        "--show", metavar="FIELDS", help="Of topic, partition, offset, timestamp, key, headers."
    ),
]
TemplateOption = Annotated[
    str, typer.Option("--template", "-t", metavar="TEXT", help="With %k %v %n %p %o %t %T %h.")
]


def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics to read.")],
    *,
    start: StartOption = "earliest",
    partition: PartitionOption = [],  # noqa: B006 - typer makes a list of its own.
    group: GroupOption = "",
    assignor: AssignorOption = Assignor.RANGE,
    count_max: CountOption = None,
    no_follow: NoFollowOption = False,
    form: FormatOption = Format.TEXT,
    show: ShowOption = "",
    template: TemplateOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Print the records of topics, from their beginning, and wait for more.

    A time is written as 2026-01-31T12:00:00Z, in UTC where it names no zone, or
    as @ and milliseconds since 1970; 15m means fifteen minutes ago. In a template
    %n is the topic, %t the timestamp as a number and %T as a time. Ctrl-C ends.

    In a group, what was printed is committed every few seconds and at the end;
    --from says where to begin in partitions of which nothing is committed yet.

    \b
    kafscale consume greetings --no-follow
    kafscale consume orders --from -10 --show partition,offset,key
    kafscale consume orders --from 1h --format json | jq .value
    kafscale consume orders -t '%p/%o %k: %v'
    kafscale consume orders payments --group billing
    """
    from kafscale.cli.commands.consume.printer import Wanted
    from kafscale.client.consumer.start_position import parse_start

    if group and partition:
        raise typer.BadParameter("--group and --partition exclude each other: the group decides")
    try:
        begin = parse_start(start, now_ms=clock())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None
    names = list(dict.fromkeys(topics))
    formatter = _formatter(form, show, template)
    wanted = Wanted(names, begin, formatter, not no_follow, count_max, _tell)
    try:
        asyncio.run(_consume(client_of(bootstrap), wanted, partition, group, assignor))
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass  # The ways to end it.
    except BrokenPipeError:
        # Whoever read has seen enough. What Python would still flush at its end has no place to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _consume(
    client: "Client", wanted: "Wanted", partitions: list[int], group: str, assignor: Assignor
) -> None:
    from kafscale.cli.commands.consume import printer

    async with client:
        if group:
            _end_in_order_when_terminated()
            settings = effective().consumer
            await printer.in_group(client, wanted, group, assignor, settings)
        else:
            await printer.alone(client, wanted, partitions)


def _end_in_order_when_terminated() -> None:
    """Let a member leave its group when it is told to stop, as Ctrl-C does anyway."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _formatter(form: Format, show: str, template: str) -> "Formatter":
    from kafscale.cli.commands.consume import format as consume_format

    if show and template:
        raise typer.BadParameter("--show and --template exclude each other")
    if form is Format.JSON:
        if show or template:
            raise typer.BadParameter("--format json shows everything; leave out the other")
        return consume_format.as_json
    try:
        if template:
            return consume_format.by_template(form, template)
        names = [name.strip() for name in show.split(",") if name.strip()]
        fields = [consume_format.Field(name) for name in names if name != "value"]
        return consume_format.by_fields(form, fields)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _tell(message: str) -> None:
    typer.echo(message, err=True)
