"""The progress of a replay, read from the topic that it writes to.

Every record that a replay writes has its source in a header: topic/partition/offset, followed by a
number if several records come from one. Each source partition has its own producer id, the same in
every run (see `client.idempotent_appender`). So the last batch of a producer in a target partition
shows what was written there: every record before it in the source that passes the filter. Records
that were filtered out leave no trace; they are filtered again.

Batches of other producers in between are skipped.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.client.idempotent_appender import next_sequence
from kafscale.client.partition import Partition
from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, iterate

SOURCE_HEADER: Final = "kafscale.source"
RANGE_FIRST: Final = 1_000
"""How many offsets the backward search reads first."""
RANGE_GROWTH: Final = 4


class LastWritten(msgspec.Struct, frozen=True, order=True):
    """The last record of a source partition in a target partition."""

    offset: int
    """Of the source record."""
    number: int = 0
    """Its number among the records of that source offset."""
    sequence: int = 0
    """Of the next record."""


def format_source(topic: str, partition: int, offset: int, number: int = 0) -> str:
    """Return the value of the header `SOURCE_HEADER`.

    >>> format_source("orders", 3, 17), format_source("orders", 3, 17, 2)
    ('orders/3/17', 'orders/3/17/2')
    """
    return f"{topic}/{partition}/{offset}" + (f"/{number}" if number else "")


def last_written(batch: BatchView) -> LastWritten:
    """Return the last record of a batch that a replay wrote."""
    *_, record = iterate(batch)
    sources = [header.value for header in record.headers if header.key == SOURCE_HEADER]
    fields = (sources[-1] or b"").decode().split("/")[2:] if sources else []
    if not fields or not all(map(str.isdecimal, fields)):
        raise InvalidRequestError(
            f"the record at offset {record.offset} has no valid header {SOURCE_HEADER}"
        )
    return LastWritten(*map(int, fields), sequence=next_sequence(batch))  # type: ignore[misc]


async def find_last_written(
    partition: Partition, producer_ids: Iterable[int], since_offset: int | None = None
) -> tuple[int, dict[int, LastWritten]]:
    """Return the end of a partition, and the last record of each producer that has any.

    The search goes backward from the end until all producers are found, or to an offset.
    """
    start, end = await partition.bounds()
    lowest = start if since_offset is None else max(start, since_offset)
    missing = set(producer_ids)
    by_producer: dict[int, LastWritten] = {}
    above, count = end, RANGE_FIRST
    while missing and above > lowest:
        below = max(lowest, above - count)
        last: dict[int, BatchView] = {}
        async for batch in partition.fetch_range(below, above):
            if batch.producer_id in missing:
                last[batch.producer_id] = batch
        by_producer |= {producer_id: last_written(batch) for producer_id, batch in last.items()}
        missing -= last.keys()
        above, count = below, count * RANGE_GROWTH
    return end, by_producer


class Progress(msgspec.Struct, frozen=True):
    """The progress of one source partition in each target partition."""

    ends: Mapping[int, int]
    """The ends of the target partitions when they were read."""
    written: Mapping[int, LastWritten]

    def resume_offset(self) -> int:
        """Return the first source offset that may be missing in the target."""
        if len(self.written) < len(self.ends):
            return 0
        return min((one.offset for one in self.written.values()), default=0)
