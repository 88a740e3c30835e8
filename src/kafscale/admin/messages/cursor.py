"""Cursors that read one partition, forwards or backwards from an offset.

Kafka's protocol reads forwards only, so the backward cursor fetches windows: a few offsets before
its position, then more. Invariants: `matches` is in the order of reading. `resume_offset` is where
to continue such that no record is missed or repeated, provided that everything taken from `matches`
was shown. Each step ends, whatever the sizes of records are.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from kafscale.admin.messages.scan import Match, ScanRange, ScanResult
from kafscale.client.partition import FETCH_BYTES_MAX
from kafscale.records import BatchView

ScanBatches = Callable[[Sequence[BatchView], ScanRange], Awaitable[ScanResult]]
"""Scans batches in a thread and accounts for the cost."""

FIRST_BYTES: Final = 256 * 1024
FIRST_BYTES_MIN: Final = 16 * 1024
FIRST_BYTES_TOTAL: Final = 32 * 1024 * 1024
FIRST_SPAN: Final = 32
FIRST_SPAN_MIN: Final = 4
FIRST_SPAN_TOTAL: Final = 2048
SPAN_MAX: Final = 1_000_000
WINDOW_BYTES_MAX: Final = 16 * 1024 * 1024
_GROWTH_FACTOR: Final = 4
_SHRINK_FACTOR: Final = 8


class FetchBudget(NamedTuple):
    """The size of the first fetch of a cursor; smaller if there are many cursors."""

    span: int = FIRST_SPAN
    size_bytes: int = FIRST_BYTES

    @classmethod
    def split(cls, count: int) -> "FetchBudget":
        """The budget of each of `count` cursors.

        >>> FetchBudget.split(1), FetchBudget.split(1000)
        (FetchBudget(span=32, size_bytes=262144), FetchBudget(span=4, size_bytes=33554))
        """
        return cls(
            max(FIRST_SPAN_MIN, min(FIRST_SPAN, FIRST_SPAN_TOTAL // count)),
            max(FIRST_BYTES_MIN, min(FIRST_BYTES, FIRST_BYTES_TOTAL // count)),
        )


class Source(Protocol):
    """The part of `client.partition.Partition` that is used here."""

    async def fetch(self, offset: int, *, bytes_max: int) -> list[BatchView]: ...


class PartitionCursor(ABC):
    """Reads one partition in one direction, between two offsets."""

    def __init__(
        self,
        partition: int,
        source: Source,
        offset: int,
        *,
        start: int,
        end: int,
        limit: int,
        scan: ScanBatches,
        budget: FetchBudget,
    ) -> None:
        self.partition = partition
        self.matches: deque[Match] = deque()
        self._source = source
        self._position = min(max(offset, start), end)
        self._start = start
        self._end = end
        self._limit = limit
        self._scan = scan
        self._span = budget.span
        self._bytes_max = budget.size_bytes

    @property
    @abstractmethod
    def is_at_end(self) -> bool: ...

    @property
    @abstractmethod
    def resume_offset(self) -> int: ...

    @abstractmethod
    async def step(self) -> None: ...

    @abstractmethod
    def advance_start(self, start: int) -> None:
        """The log start offset has advanced."""


class ForwardCursor(PartitionCursor):
    """Reads from an offset to the end."""

    @property
    def is_at_end(self) -> bool:
        return self._position >= self._end

    @property
    def resume_offset(self) -> int:
        return self.matches[0].record.offset if self.matches else self._position

    async def step(self) -> None:
        batches = await self._source.fetch(self._position, bytes_max=self._bytes_max)
        batches = [batch for batch in batches if batch.base_offset < self._end]
        if not batches:
            self._position = self._end  # Compaction has removed the remaining records.
            return
        scan_range = ScanRange(self.partition, self._position, self._end, self._limit, newest=False)
        result = await self._scan(batches, scan_range)
        self.matches.extend(result.matches)
        if result.is_truncated:
            self._position = result.matches[-1].record.offset + 1
        else:
            self._position = min(batches[-1].next_offset, self._end)
        self._bytes_max = min(self._bytes_max * _GROWTH_FACTOR, FETCH_BYTES_MAX)

    def advance_start(self, start: int) -> None:
        self._position = min(max(self._position, start), self._end)


class BackwardCursor(PartitionCursor):
    """Reads from an offset (exclusive) back to the start."""

    @property
    def is_at_end(self) -> bool:
        return self._position <= self._start

    @property
    def resume_offset(self) -> int:
        return self.matches[0].record.offset + 1 if self.matches else self._position

    async def step(self) -> None:
        low = max(self._start, self._position - self._span)
        batches = await self._fetch_window(low)
        if batches is None:
            # Records became larger; retry with a smaller window.
            self._span = max(1, self._span // _SHRINK_FACTOR)
            return
        if batches:
            # The first batch was fetched as a whole, so scan all of it.
            low = max(self._start, min(low, batches[0].base_offset))
        scan_range = ScanRange(self.partition, low, self._position, self._limit, newest=True)
        result = await self._scan(batches, scan_range)
        self.matches.extend(reversed(result.matches))
        self._position = result.matches[0].record.offset if result.is_truncated else low
        if sum(map(len, batches)) < FETCH_BYTES_MAX // _GROWTH_FACTOR:
            self._span = min(self._span * _GROWTH_FACTOR, SPAN_MAX)
            self._bytes_max = min(self._bytes_max * _GROWTH_FACTOR, FETCH_BYTES_MAX)

    async def _fetch_window(self, low: int) -> list[BatchView] | None:
        """The batches from an offset up to the position; None if they are too large."""
        batches: list[BatchView] = []
        offset, size_bytes = low, 0
        while offset < self._position:
            fetched = await self._source.fetch(offset, bytes_max=self._bytes_max)
            fetched = [batch for batch in fetched if batch.base_offset < self._position]
            if not fetched:
                break
            batches += fetched
            size_bytes += sum(map(len, fetched))
            offset = fetched[-1].next_offset
            if size_bytes > WINDOW_BYTES_MAX and offset < self._position and self._span > 1:
                return None
            await asyncio.sleep(0)
        return batches

    def advance_start(self, start: int) -> None:
        self._start = max(self._start, start)
        self._position = max(self._position, self._start)
