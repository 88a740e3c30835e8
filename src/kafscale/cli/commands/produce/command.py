"""`kafscale produce`: send the lines of standard input to a topic."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to import.

import asyncio
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection import BootstrapOption, create_client
from kafscale.cli.options import Compression, Format, FormatOption, parse_option, parse_pairs
from kafscale.text.formatting import format_size, pluralize
from kafscale.text.units import parse_size

if TYPE_CHECKING:
    from kafscale.cli.commands.produce.input import InputReader, LineParser
    from kafscale.client.client import Client
    from kafscale.client.producer import Sender, SendSettings, SendTotals

LINGER_SECONDS: Final = 0.005
"""How long a batch that is not full waits for more lines."""


TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Name of the topic; the broker may create it.")
]
KeySeparatorOption = Annotated[
    str,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="Separator between key and value."),
]
KeyOption = Annotated[
    str | None, typer.Option("--key", "-k", metavar="KEY", help="Key of all records.")
]
HeaderOption = Annotated[
    list[str],
    typer.Option(
        "--header", "-H", metavar="KEY=VALUE", help="Header of all records; may be repeated."
    ),
]
PartitionOption = Annotated[
    int | None,
    typer.Option(
        "--partition", "-p", min=0, help="Partition of all records; by default chosen by key."
    ),
]
CompressionOption = Annotated[
    Compression, typer.Option("--compression", "-z", help="Compression type of batches.")
]
AcksOption = Annotated[
    Literal["0", "1", "all"], typer.Option("--acks", "-a", help="Required acknowledgements.")
]
IdempotentOption = Annotated[
    bool | None,
    typer.Option(
        "--idempotent/--no-idempotent", help="Use an idempotent producer; needs --acks all."
    ),
]
BatchBytesOption = Annotated[
    str, typer.Option("--batch-bytes", metavar="SIZE", help="Maximum size of a batch.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")]


def produce(
    topic: TopicArgument,
    *,
    key_separator: KeySeparatorOption = "",
    key: KeyOption = None,
    header: HeaderOption = [],  # noqa: B006 - typer makes a list of its own.
    form: FormatOption = Format.TEXT,
    partition: PartitionOption = None,
    compression: CompressionOption = "none",
    acks: AcksOption = "all",
    idempotent: IdempotentOption = None,
    batch_bytes: BatchBytesOption = "512Ki",
    quiet: QuietOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Send the lines of standard input to a topic, one record per line.

    With --format json, a line is an object with key, value, headers, timestamp
    and partition, all optional: the output of kafscale consume --format json.
    Bytes that are not UTF-8 are written as {"base64": "..."}.

    \b
    echo hello | kafscale produce greetings
    kafscale produce users -K : < users.txt
    kafscale produce orders --format json --compression zstd < orders.ndjson
    """
    from kafscale.cli.commands.consume.record_text import unescape
    from kafscale.cli.commands.produce.input import LineParser
    from kafscale.client.producer import SendSettings
    from kafscale.records import Codec, Header

    if idempotent and acks != "all":
        raise typer.BadParameter("--idempotent needs --acks all")
    if form is Format.JSON and key_separator:
        raise typer.BadParameter(
            "--format json has the key in the object; leave out --key-separator"
        )
    parser = LineParser(
        form,
        key=None if key is None else key.encode(),
        key_separator=unescape(key_separator).encode() or None,
        headers=tuple(Header(name, text.encode()) for name, text in parse_pairs(header)),
        partition=partition,
    )
    settings = SendSettings(
        acks=-1 if acks == "all" else int(acks),
        codec=Codec[compression.upper()],
        batch_bytes=parse_option("--batch-bytes", batch_bytes, parse_size),
        idempotent=acks == "all" if idempotent is None else idempotent,
    )
    _run(create_client(bootstrap), topic, parser, settings, quiet=quiet)


def _run(
    client: "Client", topic: str, parser: "LineParser", settings: "SendSettings", *, quiet: bool
) -> None:
    """Produce all records; print a summary, also after an error."""
    from kafscale.client.producer import SendTotals

    if sys.stdin.isatty():
        _notify("type one record per line; Ctrl-D ends the input")
    totals, began = SendTotals(), time.monotonic()
    complete = False
    try:
        asyncio.run(_produce(client, topic, parser, settings, totals))
        complete = True
    except KeyboardInterrupt:
        raise typer.Exit(1) from None
    except BaseExceptionGroup as group:
        raise _first_error(group) from None
    finally:
        if not quiet and (complete or totals.record_count):
            _notify(_summary(totals, topic, time.monotonic() - began))


async def _produce(
    client: "Client",
    topic: str,
    parser: "LineParser",
    settings: "SendSettings",
    totals: "SendTotals",
) -> None:
    from kafscale.cli.commands.produce.input import CHUNK_BYTES, InputReader
    from kafscale.client.producer import LineError, Sender

    async with client, asyncio.TaskGroup() as group:
        sender = Sender(
            client,
            topic,
            settings,
            group,
            clock=clock,
            random=SystemRandom(),
            notify=_notify,
            totals=totals,
        )
        await sender.open()
        descriptor = sys.stdin.fileno()
        with _progress(descriptor) as advance:
            chunks = InputReader(lambda: os.read(descriptor, CHUNK_BYTES))
            try:
                await _feed(chunks, parser, sender, advance)
            except LineError:
                await sender.close()  # Produce all lines before the invalid one.
                raise
            await sender.close()


async def _feed(
    chunks: "InputReader", parser: "LineParser", sender: "Sender", advance: Callable[[int], None]
) -> None:
    """Pass all lines to the sender; flush when no more lines are available."""
    from kafscale.cli.commands.produce.input import LineSplitter

    splitter = LineSplitter()
    number = 0
    while True:
        if chunks.is_waiting:
            await asyncio.sleep(LINGER_SECONDS)
            if chunks.is_waiting:
                await sender.flush()
        chunk = await chunks.next()
        for line in splitter.feed(chunk) if chunk else splitter.end():
            number += 1
            await sender.add(parser.parse(number, line))
        advance(len(chunk))
        if not chunk:
            return


@contextmanager
def _progress(descriptor: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, if standard error is a terminal and standard input is not."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    status = os.fstat(descriptor)
    total = status.st_size if stat.S_ISREG(status.st_mode) else None
    with Progress(
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("produce", total=total)
        yield lambda size_bytes: progress.advance(task, size_bytes)


def _summary(totals: "SendTotals", topic: str, seconds: float) -> str:
    rate = f"{totals.record_count / max(seconds, 0.001):,.0f} records/s"
    return (
        f"produced {pluralize(totals.record_count, 'record')} to {topic}"
        f" in {pluralize(len(totals.partitions), 'partition')}:"
        f" {format_size(totals.size_bytes)} in {seconds:.1f} s, {rate}"
    )


def _first_error(group: BaseException) -> BaseException:
    """The first error of a task group."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _notify(message: str) -> None:
    typer.echo(message, err=True)
