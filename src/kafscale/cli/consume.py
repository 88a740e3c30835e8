"""`kafscale consume`: the records of a topic, on standard output."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

import asyncio
import os
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.client_address import Address, BootstrapOption, chosen
from kafscale.cli.options import Format, FormatOption
from kafscale.cli.wording import clock

if TYPE_CHECKING:
    from kafscale.cli.consume_format import Formatter
    from kafscale.cli.consume_start import Start


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.")],
    *,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, an offset, -N for the last N, a time, or how long ago.",
        ),
    ] = "earliest",
    partition: Annotated[
        list[int],
        typer.Option("--partition", "-p", metavar="N", help="Only this one; may be repeated."),
    ] = [],  # noqa: B006 - typer makes a list of its own.
    count_max: Annotated[
        int | None,
        typer.Option("--max-messages", "-n", min=1, metavar="N", help="End after so many."),
    ] = None,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", "-e", help="End at the end, rather than wait for more.")
    ] = False,
    form: FormatOption = Format.TEXT,
    show: Annotated[
        str,
        typer.Option("--show", metavar="FIELDS", help="Of key,offset,partition,timestamp,headers."),
    ] = "",
    template: Annotated[
        str, typer.Option("--template", "-t", metavar="TEXT", help="With %k %v %o %p %t %T %h.")
    ] = "",
    bootstrap: BootstrapOption = "",
) -> None:
    """Print the records of a topic, from its beginning, and wait for more.

    A time is written as 2026-01-31T12:00:00Z, in UTC where it names no zone, or
    as @ and milliseconds since 1970; 15m means fifteen minutes ago. In a template
    %t is the timestamp as a number and %T as a time. Ctrl-C ends.

    \b
    kafscale consume greetings --no-follow
    kafscale consume orders --from -10 --show partition,offset,key
    kafscale consume orders --from 1h --format json | jq .value
    kafscale consume orders -t '%p/%o %k: %v'
    """
    from kafscale.cli.consume_start import parse_start

    try:
        begin = parse_start(start, now_ms=clock())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None
    formatter = _formatter(topic, form, show, template)
    addresses = chosen(bootstrap)
    try:
        asyncio.run(
            _consume(
                addresses,
                topic,
                begin,
                partition,
                formatter,
                count_max=count_max,
                follow=not no_follow,
            )
        )
    except KeyboardInterrupt:
        pass  # The way to end it.
    except BrokenPipeError:
        # Whoever read has seen enough. What Python would still flush at its end has no place to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _consume(
    addresses: list[Address],
    topic: str,
    start: "Start",
    partitions: list[int],
    formatter: "Formatter",
    *,
    count_max: int | None,
    follow: bool,
) -> None:
    from kafscale.cli.client import Client
    from kafscale.cli.consume_reader import Reader

    output = sys.stdout.buffer
    count = 0
    async with Client(addresses) as client:
        reader = Reader(client, topic, follow=follow, notify=_tell)
        await reader.open(start, partitions)
        async with aclosing(reader.batches()) as batches:
            async for partition, records in batches:
                wanted = records if count_max is None else records[: count_max - count]
                output.write(b"".join([formatter(partition, record) for record in wanted]))
                output.flush()
                count += len(wanted)
                if count == count_max:
                    return


def _formatter(topic: str, form: Format, show: str, template: str) -> "Formatter":
    from kafscale.cli import consume_format

    if show and template:
        raise typer.BadParameter("--show and --template exclude each other")
    if form is Format.JSON:
        if show or template:
            raise typer.BadParameter("--format json shows everything; leave out the other")
        return consume_format.as_json(topic)
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
