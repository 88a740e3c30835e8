"""Prints records on standard output as they come: as many as are wanted, and then it ends.

The law: whoever reads in a group hears how far it was printed only once that has left this process.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from kafscale.aio.clock import clock
from kafscale.cli.commands.consume.format import Formatter
from kafscale.client.client import Client
from kafscale.client.consumer.group_member import Member
from kafscale.client.consumer.group_reader import Batches, GroupReader
from kafscale.client.consumer.reader import Chunk, Reader
from kafscale.client.consumer.start_position import Start
from kafscale.client.coordinator import Coordinator
from kafscale.client.group_offsets import by_topic, committed
from kafscale.client.retry import retried
from kafscale.groups.assignors import Assignor
from kafscale.groups.model import TopicPartition
from kafscale.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

PATIENCE_SECONDS: Final = 1.0
"""How long an interrupted consumer waits for what it is about to print."""


class Wanted(NamedTuple):
    """What is to be read, and how it is to be printed."""

    topics: Sequence[str]
    start: Start
    formatter: Formatter
    follow: bool
    count_max: int | None
    notify: Callable[[str], None]


async def alone(client: Client, wanted: Wanted, partitions: Sequence[int]) -> None:
    """Print the records of these partitions of all topics, or of all partitions."""
    reader = Reader(client, wanted.topics, follow=wanted.follow, notify=wanted.notify)
    places = [(topic, each) for topic in wanted.topics for each in partitions]
    await reader.open(wanted.start, places or None)
    printer = _Printer(wanted)
    async with aclosing(reader.batches()) as batches:
        async for chunk in batches:
            printer.print(printer.taken(chunk))
            if printer.has_enough:
                return


async def in_group(
    client: Client, wanted: Wanted, group_id: str, assignor: Assignor, settings: "Consumer"
) -> None:
    """Print the records of the partitions that a group assigns to this process."""
    for topic in wanted.topics:
        await client.topic(topic)
    count_partitions = functools.partial(partition_counts, client)
    printer = _Printer(wanted)
    async with Coordinator(client, group_id) as coordinator:
        member = Member(coordinator, wanted.topics, settings, count_partitions, assignor)
        reader = GroupReader(
            member,
            functools.partial(_open, client, coordinator, wanted),
            settings,
            follow=wanted.follow,
            notify=wanted.notify,
            clock=clock,
        )
        async with reader, aclosing(reader.batches()) as batches:
            async for chunk in batches:
                await _print_apart(printer, printer.taken(chunk), reader.printed)
                if printer.has_enough:
                    return


async def _open(
    client: Client, coordinator: Coordinator, wanted: Wanted, places: Sequence[TopicPartition]
) -> Batches:
    """Begin to read partitions, where the group has come to or else where it is wanted."""
    topics = [name for name, _ in by_topic(places)]
    reader = Reader(client, topics, follow=wanted.follow, notify=wanted.notify)
    found = await committed(coordinator, places) if places else {}
    offsets = {place: found[place].offset for place in found}
    # A group often rebalances because brokers go and come.
    await retried(lambda: reader.open(wanted.start, places, offsets))
    return reader.batches()


async def partition_counts(client: Client, topics: Collection[str]) -> dict[str, int]:
    """How many partitions these topics have; those that do not exist are left out."""
    response = await retried(lambda: client.metadata(sorted(topics)))
    return {
        topic.name or "": len(topic.partitions)
        for topic in response.topics
        if topic.error_code == ErrorCode.NONE
    }


class _Printer:
    """Standard output, and how much of what comes is still wanted there."""

    def __init__(self, wanted: Wanted) -> None:
        self._formatter = wanted.formatter
        self._count_left = wanted.count_max
        self._output = sys.stdout.buffer

    @property
    def has_enough(self) -> bool:
        return self._count_left == 0

    def taken(self, chunk: Chunk) -> Chunk:
        """As much of a chunk as is still wanted."""
        if self._count_left is None or len(chunk.records) <= self._count_left:
            taken = chunk
        else:
            records = chunk.records[: self._count_left]
            taken = Chunk(chunk.place, records, records[-1].offset + 1)
        if self._count_left is not None:
            self._count_left -= len(taken.records)
        return taken

    def print(self, chunk: Chunk) -> None:
        place, formatter = chunk.place, self._formatter
        self._output.write(b"".join([formatter(place, record) for record in chunk.records]))
        self._output.flush()


async def _print_apart(
    printer: _Printer, chunk: Chunk, printed: Callable[[TopicPartition, int], None]
) -> None:
    """Print in a thread, so that heartbeats go on while whoever reads the output takes its time."""
    printing = asyncio.ensure_future(asyncio.to_thread(printer.print, chunk))
    try:
        await asyncio.shield(printing)
    except asyncio.CancelledError:
        await asyncio.wait([printing], timeout=PATIENCE_SECONDS)
        raise
    finally:
        if printing.done() and printing.exception() is None:
            printed(chunk.place, chunk.next_offset)
