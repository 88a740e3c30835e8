"""Prints consumed records on standard output, up to a maximum number.

Invariant: in a consumer group, an offset counts as consumed only after its record was written to
standard output.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from kafscale.aio.clock import clock
from kafscale.cli.commands.consume.format import Formatter
from kafscale.cli.output import visible
from kafscale.client.client import Client
from kafscale.client.consumer.group_member import Member
from kafscale.client.consumer.group_reader import Batches, GroupReader
from kafscale.client.consumer.reader import Chunk, Reader
from kafscale.client.consumer.start_position import StartPosition
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import retry
from kafscale.client.group_offsets import by_topic, committed
from kafscale.client.isolation import IsolationLevel
from kafscale.groups.assignors import Assignor
from kafscale.protocol.error_codes import ErrorCode
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

PRINT_SECONDS_MAX: Final = 1.0
"""How long an interrupted consumer waits for records that are being printed."""


class ConsumeRequest(NamedTuple):
    """What to read, and how to print it."""

    topics: Sequence[str]
    start: StartPosition
    formatter: Formatter
    follow: bool
    count_max: int | None
    notify: Callable[[str], None]
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED


async def print_partitions(
    client: Client, request: ConsumeRequest, partitions: Sequence[int]
) -> None:
    """Print records without a group: of these partitions of each topic, or of all."""
    reader = _reader(client, request, request.topics)
    topic_partitions = [(topic, each) for topic in request.topics for each in partitions]
    await reader.open(request.start, topic_partitions or None)
    printer = _Printer(request)
    async with aclosing(reader.batches()) as batches:
        async for chunk in batches:
            printer.print(printer.limit(chunk))
            if printer.is_done:
                return


async def print_group(
    client: Client, request: ConsumeRequest, group_id: str, assignor: Assignor, settings: "Consumer"
) -> None:
    """Print records as a member of a consumer group."""
    for topic in request.topics:
        await client.topic(topic)
    count_partitions = functools.partial(partition_counts, client)
    printer = _Printer(request)
    async with Coordinator(client, group_id) as coordinator:
        member = Member(coordinator, request.topics, settings, count_partitions, assignor)
        reader = GroupReader(
            member,
            functools.partial(_open, client, coordinator, request),
            settings,
            follow=request.follow,
            notify=request.notify,
            clock=clock,
        )
        async with reader, aclosing(reader.batches()) as batches:
            async for chunk in batches:
                await _print_in_thread(printer, printer.limit(chunk), reader.mark_consumed)
                if printer.is_done:
                    return


async def _open(
    client: Client,
    coordinator: Coordinator,
    request: ConsumeRequest,
    topic_partitions: Sequence[TopicPartition],
) -> Batches:
    """Read partitions from their committed offsets, or from the requested start without one."""
    topics = [name for name, _ in by_topic(topic_partitions)]
    reader = _reader(client, request, topics)
    is_stable = request.isolation is IsolationLevel.READ_COMMITTED
    commits = (
        await committed(coordinator, topic_partitions, stable=is_stable) if topic_partitions else {}
    )
    offsets = {topic_partition: each.offset for topic_partition, each in commits.items()}
    # Groups often rebalance because brokers restart, so leaders may be missing for a moment.
    await retry(lambda: reader.open(request.start, topic_partitions, offsets))
    return reader.batches()


def _reader(client: Client, request: ConsumeRequest, topics: Sequence[str]) -> Reader:
    return Reader(
        client, topics, follow=request.follow, notify=request.notify, isolation=request.isolation
    )


async def partition_counts(client: Client, topics: Collection[str]) -> dict[str, int]:
    """The partition counts of topics, without topics that do not exist."""
    response = await retry(lambda: client.metadata(sorted(topics)))
    return {
        topic.name or "": len(topic.partitions)
        for topic in response.topics
        if topic.error_code == ErrorCode.NONE
    }


class _Printer:
    """Writes records to standard output, up to a maximum number."""

    def __init__(self, request: ConsumeRequest) -> None:
        self._formatter = request.formatter
        self._count_left = request.count_max
        self._output = sys.stdout.buffer
        self._is_terminal = sys.stdout.isatty()

    @property
    def is_done(self) -> bool:
        return self._count_left == 0

    def limit(self, chunk: Chunk) -> Chunk:
        """Cut a chunk to the records that are still to be printed, and count them."""
        if self._count_left is None or len(chunk.records) <= self._count_left:
            limited = chunk
        else:
            records = chunk.records[: self._count_left]
            limited = Chunk(chunk.topic_partition, records, records[-1].offset + 1)
        if self._count_left is not None:
            self._count_left -= len(limited.records)
        return limited

    def print(self, chunk: Chunk) -> None:
        topic_partition, formatter = chunk.topic_partition, self._formatter
        printed = b"".join([formatter(topic_partition, record) for record in chunk.records])
        if self._is_terminal:
            printed = visible(printed.decode(errors="backslashreplace")).encode()
        self._output.write(printed)
        self._output.flush()


async def _print_in_thread(
    printer: _Printer, chunk: Chunk, mark_consumed: Callable[[TopicPartition, int], None]
) -> None:
    """Print in a thread, so that a slow reader of the output does not delay heartbeats."""
    printing = asyncio.ensure_future(asyncio.to_thread(printer.print, chunk))
    try:
        await asyncio.shield(printing)
    except asyncio.CancelledError:
        await asyncio.wait([printing], timeout=PRINT_SECONDS_MAX)
        raise
    finally:
        if printing.done() and printing.exception() is None:
            mark_consumed(chunk.topic_partition, chunk.next_offset)
