"""`kafscale consume`: print the records of topics."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

import asyncio
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.aio.clock import clock
from kafscale.cli.commands.config import load_config
from kafscale.cli.connection import BootstrapOption, create_client
from kafscale.cli.options import Format, FormatOption
from kafscale.client.isolation import IsolationLevel
from kafscale.groups.assignors import Assignor

if TYPE_CHECKING:
    from kafscale.cli.commands.consume.format import Formatter
    from kafscale.cli.commands.consume.printer import ConsumeRequest
    from kafscale.client.client import Client

StartOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="POSITION",
        help="earliest, latest, an offset, -N for the last N records, a time, or a duration ago.",
    ),
]
PartitionOption = Annotated[
    list[int],
    typer.Option("--partition", "-p", metavar="N", help="Only this partition; may be repeated."),
]
GroupOption = Annotated[
    str,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        help="Consume as a member of this group, from its committed offsets.",
        show_default=False,
    ),
]
AssignorOption = Annotated[
    Assignor, typer.Option("--assignor", help="Partition assignor of the group.")
]
IsolationOption = Annotated[
    IsolationLevel,
    typer.Option(
        "--isolation-level", help="Whether records of open and aborted transactions are printed."
    ),
]
CountOption = Annotated[
    int | None,
    typer.Option("--max-messages", "-n", min=1, metavar="N", help="Exit after N records."),
]
NoFollowOption = Annotated[
    bool,
    typer.Option(
        "--no-follow", "-e", help="Exit at the end of the partitions instead of waiting for more."
    ),
]
ShowOption = Annotated[
    str,
    typer.Option(
        "--show",
        metavar="FIELDS",
        help="Also print topic, partition, offset, timestamp, key or headers.",
    ),
]
TemplateOption = Annotated[
    str,
    typer.Option(
        "--template", "-t", metavar="TEXT", help="Output template with %k %v %n %p %o %t %T %h."
    ),
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
    isolation: IsolationOption = IsolationLevel.READ_UNCOMMITTED,
    form: FormatOption = Format.TEXT,
    show: ShowOption = "",
    template: TemplateOption = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Print the records of topics from the beginning, and wait for more until Ctrl-C.

    A time is 2026-01-31T12:00:00Z, in UTC unless it names a zone, or @ and
    milliseconds since 1970; 15m means fifteen minutes ago. In a template, %k is
    the key, %v the value, %n the topic, %p the partition, %o the offset, %t the
    timestamp as a number, %T the timestamp as a time and %h the headers.

    In a group, offsets of printed records are committed every few seconds and at
    exit; --from is the start of partitions without a committed offset.

    \b
    kafscale consume greetings --no-follow
    kafscale consume orders --from -10 --show partition,offset,key
    kafscale consume orders --from 1h --format json | jq .value
    kafscale consume orders -t '%p/%o %k: %v'
    kafscale consume orders payments --group billing
    """
    from kafscale.cli.commands.consume.printer import ConsumeRequest
    from kafscale.client.consumer.start_position import parse_start

    if group and partition:
        raise typer.BadParameter(
            "--group and --partition exclude each other: the group assigns partitions"
        )
    try:
        position = parse_start(start, now_ms=clock())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None
    names = list(dict.fromkeys(topics))
    formatter = _formatter(form, show, template)
    notify = partial(typer.echo, err=True)
    request = ConsumeRequest(
        names, position, formatter, not no_follow, count_max, notify, isolation
    )
    try:
        asyncio.run(_consume(create_client(bootstrap), request, partition, group, assignor))
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass  # The user or SIGTERM ended it.
    except BrokenPipeError:
        # The reader of the pipe is gone. Python flushes stdout at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _consume(
    client: "Client",
    request: "ConsumeRequest",
    partitions: list[int],
    group: str,
    assignor: Assignor,
) -> None:
    from kafscale.cli.commands.consume import printer

    async with client:
        if group:
            _cancel_on_sigterm()
            settings = load_config().consumer
            await printer.print_group(client, request, group, assignor, settings)
        else:
            await printer.print_partitions(client, request, partitions)


def _cancel_on_sigterm() -> None:
    """Cancel the task on SIGTERM, as on Ctrl-C, so that the member leaves its group."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _formatter(form: Format, show: str, template: str) -> "Formatter":
    from kafscale.cli.commands.consume import format as consume_format

    if show and template:
        raise typer.BadParameter("--show and --template exclude each other")
    if form is Format.JSON:
        if show or template:
            raise typer.BadParameter(
                "--format json prints all fields; leave out --show and --template"
            )
        return consume_format.as_json
    try:
        if template:
            return consume_format.by_template(form, template)
        names = [name.strip() for name in show.split(",") if name.strip()]
        fields = [consume_format.Field(name) for name in names if name != "value"]
        return consume_format.by_fields(form, fields)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
