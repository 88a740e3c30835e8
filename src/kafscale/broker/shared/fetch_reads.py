"""Reads a partition for a fetch, up to what the client's isolation level allows.

Readers of committed records (isolation level 1) get batches below the last stable offset, with the
aborted transactions whose records are among them: the client leaves these out. All others get what
is below the high watermark.

Invariant: the bound is taken before the read. The last stable offset never moves back, and below it
no transaction is open, so what is found later about aborted transactions is complete.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kafscale.broker.shared.partition_lookup import ReadableLog
from kafscale.protocol.messages.fetch import AbortedTransaction
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state import transactions
from kafscale.storage.read.block_cache import detach
from kafscale.storage.read.log_reader import LogReader

READ_COMMITTED = 1


class FetchedRecords(NamedTuple):
    """What was read of a partition."""

    slices: list[memoryview]
    aborted: list[AbortedTransaction] | None
    """None if the client reads uncommitted records."""


def unread(*, is_committed: bool) -> FetchedRecords:
    return FetchedRecords([], [] if is_committed else None)


def last_stable_offset(log: ReadableLog) -> int:
    """What stands for an internal topic has no open transactions: they are not shown."""
    return log.last_stable_offset if isinstance(log, PartitionLog) else log.high_watermark


def from_tail(
    log: ReadableLog, offset: int, bytes_max: int, *, first: bool, is_committed: bool
) -> FetchedRecords:
    """Read from memory."""
    if not is_committed:
        return FetchedRecords(log.tail.read(offset, bytes_max, first=first)[0], None)
    if not isinstance(log, PartitionLog) or log.transactions.is_empty:
        return FetchedRecords(log.tail.read(offset, bytes_max, first=first)[0], [])
    slices, next_offset = log.tail.read(
        offset, bytes_max, first=first, end_offset=log.last_stable_offset
    )
    if not slices:
        return FetchedRecords(slices, [])
    return FetchedRecords(slices, _encode(log.transactions.aborted(offset, next_offset)))


async def from_segments(
    reader: LogReader,
    log: PartitionLog,
    offset: int,
    bytes_max: int,
    *,
    first: bool,
    is_committed: bool,
) -> FetchedRecords:
    """Read from the object store, and from memory if that is reached."""
    end_offset = log.last_stable_offset if is_committed else None
    slices, next_offset = await reader.read(
        log, offset, bytes_max, first=first, end_offset=end_offset
    )
    # Detached before the next request: meanwhile the blocks may leave the cache.
    slices = [detach(piece) for piece in slices]
    if not is_committed:
        return FetchedRecords(slices, None)
    if not slices:
        return FetchedRecords(slices, [])
    aborted = await reader.aborted_transactions(log, offset, next_offset)
    # Retention may have deleted segments meanwhile, and what was known of their transactions.
    log.check_readable(offset)
    return FetchedRecords(slices, _encode(aborted))


def tail_bytes(log: ReadableLog, offset: int, enough: int, *, is_committed: bool) -> int:
    """How many bytes `from_tail` would return; stops counting at `enough`."""
    if is_committed and isinstance(log, PartitionLog):
        return log.tail.bytes_from(offset, enough, log.last_stable_offset)
    return log.tail.bytes_from(offset, enough)


def _encode(aborted: Iterable[transactions.AbortedTransaction]) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in aborted
    ]
