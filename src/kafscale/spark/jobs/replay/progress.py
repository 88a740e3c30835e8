"""How far a replay has come, as the topic that it writes into tells.

Every record that a replay writes says where it is from, in a header: topic/partition/offset, with a
number behind it where several records are made of one. And every partition of the source has a
producer of its own, the same in every run (`client.idempotent_appender`). So the last batch of a
producer in a partition tells what was written there: everything that comes before it in the source,
and is written at all. What was filtered out leaves no trace and needs none: it is filtered again.

Batches of others, which lie in between, are passed over.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.client.idempotent_appender import next_sequence
from kafscale.client.partition import Partition
from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, iterate

SOURCE_HEADER: Final = "kafscale.source"
STRETCH_FIRST: Final = 1_000
STRETCH_GROWTH: Final = 4


class Written(msgspec.Struct, frozen=True, order=True):
    """The last record of a source's partition in a partition."""

    offset: int
    """Of the record that it is made of."""
    number: int = 0
    """Which of the records it is that are made of that one."""
    sequence: int = 0
    """Of the record to come."""


def mark(topic: str, partition: int, offset: int, number: int = 0) -> str:
    """What the header of a record says.

    >>> mark("orders", 3, 17), mark("orders", 3, 17, 2)
    ('orders/3/17', 'orders/3/17/2')
    """
    return f"{topic}/{partition}/{offset}" + (f"/{number}" if number else "")


def last_of(batch: BatchView) -> Written:
    """The last record of a batch that a replay wrote."""
    *_, record = iterate(batch)
    marks = [header.value for header in record.headers if header.key == SOURCE_HEADER]
    fields = (marks[-1] or b"").decode().split("/")[2:] if marks else []
    if not fields or not all(map(str.isdecimal, fields)):
        raise InvalidRequestError(
            f"the record at offset {record.offset} does not say where it is from"
        )
    return Written(*map(int, fields), sequence=next_sequence(batch))  # type: ignore[misc]


async def find(
    partition: Partition, producer_ids: Iterable[int], since_offset: int | None = None
) -> tuple[int, dict[int, Written]]:
    """Where a partition ends, and the last record of each of some producers, if it has any.

    It is looked for from the end on, until all are found, or down to an offset.
    """
    start, end = await partition.bounds()
    lowest = start if since_offset is None else max(start, since_offset)
    missing = set(producer_ids)
    found: dict[int, Written] = {}
    above, stretch = end, STRETCH_FIRST
    while missing and above > lowest:
        below = max(lowest, above - stretch)
        last: dict[int, BatchView] = {}
        async for batch in partition.between(below, above):
            if batch.producer_id in missing:
                last[batch.producer_id] = batch
        found |= {producer_id: last_of(batch) for producer_id, batch in last.items()}
        missing -= last.keys()
        above, stretch = below, stretch * STRETCH_GROWTH
    return end, found


class Progress(msgspec.Struct, frozen=True):
    """What is known of one partition of the source: where it has come to in each of the target."""

    ends: Mapping[int, int]
    """Where the partitions of the target ended when that was looked at."""
    written: Mapping[int, Written]

    def resume_offset(self) -> int:
        """From which offset of the source on anything can be missing."""
        if len(self.written) < len(self.ends):
            return 0
        return min((one.offset for one in self.written.values()), default=0)
