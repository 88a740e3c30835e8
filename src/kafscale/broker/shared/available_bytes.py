"""How many bytes a waiting fetch could read from the tails of its partitions.

Invariant: progress of a partition costs the same, however many partitions the fetch has. A WAL
object may have records of thousands of partitions, and each of them notifies every fetch that waits
for it.
"""

import asyncio
from collections.abc import Iterable

from kafscale.broker.shared.fetch_reads import tail_bytes
from kafscale.broker.shared.partition_lookup import ReadableLog
from kafscale.protocol.messages.fetch import PartitionToFetch


class AvailableBytes:
    """Watches logs until enough bytes are available; resolves a future then."""

    __slots__ = ("_by_log", "_is_committed", "_min_bytes", "_total_bytes", "enough")

    def __init__(
        self,
        requested: Iterable[tuple[PartitionToFetch, ReadableLog | None]],
        min_bytes: int,
        enough: "asyncio.Future[None]",
        *,
        is_committed: bool = False,
    ) -> None:
        """`enough` may also be resolved by the caller, who has another reason to stop waiting.

        With `is_committed`, only records below the last stable offset count.
        """
        self._by_log = {log: (request, 0) for request, log in requested if log is not None}
        self._is_committed = is_committed
        self._min_bytes = min_bytes
        self._total_bytes = 0
        self.enough = enough

    def __enter__(self) -> None:
        for log in self._by_log:
            log.watch(self.on_progress)
        for log in list(self._by_log):
            self.on_progress(log)

    def __exit__(self, *_: object) -> None:
        for log in self._by_log:
            log.unwatch(self.on_progress)

    def on_progress(self, log: ReadableLog) -> None:
        """Count what is new in one log; also called when it was closed, which is always enough."""
        if self.enough.done():
            return
        request, known_bytes = self._by_log[log]
        limit_bytes = min(self._min_bytes, request.max_bytes)
        found_bytes = tail_bytes(log, request.offset, limit_bytes, is_committed=self._is_committed)
        available_bytes = min(found_bytes, request.max_bytes)
        self._by_log[log] = (request, available_bytes)
        self._total_bytes += available_bytes - known_bytes
        if log.closed or self._total_bytes >= self._min_bytes:
            self.enough.set_result(None)
