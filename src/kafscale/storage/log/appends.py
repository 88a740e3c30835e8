"""Appends to a partition's log: their results, and those that are not durable yet."""

import asyncio
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from kafscale.storage.log.partition_log import PartitionLog

Durable = asyncio.Future[None]
"""Resolved when a batch is durable."""


class AppendResult(msgspec.Struct, gc=False):
    """The offset of an appended batch, and the future to wait for."""

    base_offset: int
    timestamp_ms: int
    """The broker's time if the topic uses LogAppendTime, else -1."""
    durable: Durable | None
    """Resolved when the batch is durable; None if it already is."""


class Wal(Protocol):
    """Makes appended batches durable."""

    def append(  # noqa: PLR0917 - keywords cost time on the produce path.
        self,
        log: "PartitionLog",
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        count: int,
        max_timestamp_ms: int,
    ) -> Durable: ...


class PendingAppends:
    """The appends of a log that are not durable yet, with one entry for each future."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, Durable]] = []
        """The end offset of the last append of each future; both ascend."""

    def add(self, end_offset: int, durable: Durable) -> None:
        if self._entries and self._entries[-1][1] is durable:
            self._entries.pop()
        self._entries.append((end_offset, durable))

    def find(self, offset: int) -> Durable | None:
        """The future of the batch that holds an offset; None if it is durable."""
        for end_offset, durable in self._entries:
            if offset < end_offset:
                return durable
        return None

    def drop_below(self, high_watermark: int) -> None:
        while self._entries and self._entries[0][0] <= high_watermark:
            del self._entries[0]
