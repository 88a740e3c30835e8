"""`kafscale produce`: the lines of standard input as records of a topic."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; messages are slow to load.

import asyncio
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafscale.aio.clock import clock
from kafscale.cli.connection.client_run import client_of
from kafscale.cli.connection.kafka import BootstrapOption
from kafscale.cli.options import Format, FormatOption, parse_pairs
from kafscale.text.formatting import format_size, pluralize
from kafscale.text.units import parse_size

if TYPE_CHECKING:
    from kafscale.cli.commands.produce.input import Input
    from kafscale.cli.commands.produce.lines import LineParser
    from kafscale.client.client import Client
    from kafscale.client.producer.sender import Sender, SendSettings, Sent

LINGER_SECONDS: Final = 0.005
"""How long a batch that is not full waits for more lines, when none is there."""


class Compression(StrEnum):
    """The codecs of Kafka, by the names that its producers use."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """When a batch counts as sent."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Created if the broker allows it.")
]
KeySeparatorOption = Annotated[
    str, typer.Option("--key-separator", "-K", metavar="TEXT", help="Stands after the key.")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", "-k", metavar="KEY", help="The key of every record.")
]
HeaderOption = Annotated[
    list[str],
    typer.Option("--header", "-H", metavar="KEY=VALUE", help="Of every record; repeatable."),
]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="Instead of by key.")
]
CompressionOption = Annotated[
    Compression, typer.Option("--compression", "-z", help="Of the batches.")
]
AcksOption = Annotated[Acks, typer.Option("--acks", "-a", help="When a record counts as sent.")]
IdempotentOption = Annotated[
    bool | None,
    typer.Option(
        "--idempotent/--no-idempotent", help="Written once, however often sent; with acks all."
    ),
]
BatchBytesOption = Annotated[
    str, typer.Option("--batch-bytes", metavar="SIZE", help="Of a full batch.")
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
    compression: CompressionOption = Compression.NONE,
    acks: AcksOption = Acks.ALL,
    idempotent: IdempotentOption = None,
    batch_bytes: BatchBytesOption = "512Ki",
    quiet: QuietOption = False,
    bootstrap: BootstrapOption = "",
) -> None:
    """Send the lines of standard input to a topic, one record a line.

    With --format json a line is an object with any of key, value, headers,
    timestamp and partition: what kafscale consume --format json prints. Bytes
    that are not text are written as {"base64": "..."}.

    \b
    echo hello | kafscale produce greetings
    kafscale produce users -K : < users.txt
    kafscale produce orders --format json --compression zstd < orders.ndjson
    """
    from kafscale.cli.commands.consume.record_text import unescape
    from kafscale.cli.commands.produce.lines import LineParser
    from kafscale.client.producer.sender import SendSettings
    from kafscale.records import Codec, Header

    if idempotent and acks is not Acks.ALL:
        raise typer.BadParameter("idempotence needs --acks all")
    if form is Format.JSON and key_separator:
        raise typer.BadParameter("a line of JSON has its key in it; leave out --key-separator")
    parser = LineParser(
        form,
        key=None if key is None else key.encode(),
        key_separator=unescape(key_separator).encode() or None,
        headers=tuple(Header(name, text.encode()) for name, text in parse_pairs(header)),
        partition=partition,
    )
    settings = SendSettings(
        acks=-1 if acks is Acks.ALL else int(acks),
        codec=Codec[compression.name],
        batch_bytes=_size(batch_bytes),
        idempotent=acks is Acks.ALL if idempotent is None else idempotent,
    )
    _run(client_of(bootstrap), topic, parser, settings, quiet=quiet)


def _run(
    client: "Client", topic: str, parser: "LineParser", settings: "SendSettings", *, quiet: bool
) -> None:
    """Produce, and say what came of it, also where it went wrong on the way."""
    from kafscale.client.producer.sender import Sent

    if sys.stdin.isatty():
        _tell("type records, one a line; Ctrl-D ends")
    sent, began = Sent(), time.monotonic()
    complete = False
    try:
        asyncio.run(_produce(client, topic, parser, settings, sent))
        complete = True
    except KeyboardInterrupt:
        raise typer.Exit(1) from None
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        if not quiet and (complete or sent.record_count):
            _tell(_summary(sent, topic, time.monotonic() - began))


async def _produce(
    client: "Client", topic: str, parser: "LineParser", settings: "SendSettings", sent: "Sent"
) -> None:
    from kafscale.cli.commands.produce.input import CHUNK_BYTES, Input
    from kafscale.client.producer.sender import LineError, Sender

    async with client, asyncio.TaskGroup() as group:
        sender = Sender(
            client,
            topic,
            settings,
            group,
            clock=clock,
            random=SystemRandom(),
            notify=_tell,
            sent=sent,
        )
        await sender.open()
        descriptor = sys.stdin.fileno()
        with _progress(descriptor) as advance:
            lines = Input(lambda: os.read(descriptor, CHUNK_BYTES))
            try:
                await _feed(lines, parser, sender, advance)
            except LineError:
                await sender.close()  # All the lines before it are produced.
                raise
            await sender.close()


async def _feed(
    chunks: "Input", parser: "LineParser", sender: "Sender", advance: Callable[[int], None]
) -> None:
    """Give all lines to the sender; when there are no more for now, it need not wait for them."""
    from kafscale.cli.commands.produce.lines import LineCutter

    cutter = LineCutter()
    number = 0
    while True:
        if chunks.is_waiting:
            await asyncio.sleep(LINGER_SECONDS)
            if chunks.is_waiting:
                await sender.flush()
        chunk = await chunks.next()
        for line in cutter.feed(chunk) if chunk else cutter.end():
            number += 1
            await sender.add(parser.parse(number, line))
        advance(len(chunk))
        if not chunk:
            return


@contextmanager
def _progress(descriptor: int) -> Iterator[Callable[[int], None]]:
    """A line on standard error, if that is a terminal and nobody types on it; a bar, for a file."""
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


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}", param_hint="--batch-bytes") from None


def _summary(sent: "Sent", topic: str, seconds: float) -> str:
    rate = f"{sent.record_count / max(seconds, 0.001):,.0f} records/s"
    return (
        f"produced {pluralize(sent.record_count, 'record')} to {topic}"
        f" in {pluralize(len(sent.partitions), 'partition')}:"
        f" {format_size(sent.size_bytes)} in {seconds:.1f} s, {rate}"
    )


def _first(group: BaseException) -> BaseException:
    """The error that ended all others."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _tell(message: str) -> None:
    typer.echo(message, err=True)
