"""The two ways through a partition: on from an offset, and back from one.

Kafka's protocol reads forwards only, so that the way back goes in windows: a few offsets before the
place, read up to it, then more. The laws: what is in `found` is in the order of the way; `cursor`
is where to go on so that nothing is missed and nothing seen twice, if all that was taken from
`found` was shown; and each step ends, whatever the sizes of records are.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from kafscale.admin.messages.scan import Match, Scanned, Stretch
from kafscale.client.partition import FETCH_BYTES_MAX
from kafscale.records import BatchView

Look = Callable[[Sequence[BatchView], Stretch], Awaitable[Scanned]]
"""Scans batches somewhere else, and counts what that costs."""

FIRST_BYTES: Final = 256 * 1024
FIRST_BYTES_MIN: Final = 16 * 1024
FIRST_BYTES_OF_ALL: Final = 32 * 1024 * 1024
FIRST_SPAN: Final = 32
FIRST_SPAN_MIN: Final = 4
FIRST_SPAN_OF_ALL: Final = 2048
SPAN_MAX: Final = 1_000_000
WINDOW_BYTES_MAX: Final = 16 * 1024 * 1024
_GROWTH: Final = 4
_SHRINKAGE: Final = 8


class Share(NamedTuple):
    """How much a strand takes at first; the more there are, the less each."""

    span: int = FIRST_SPAN
    size_bytes: int = FIRST_BYTES

    @classmethod
    def among(cls, count: int) -> "Share":
        """What each of so many takes.

        >>> Share.among(1), Share.among(1000)
        (Share(span=32, size_bytes=262144), Share(span=4, size_bytes=33554))
        """
        return cls(
            max(FIRST_SPAN_MIN, min(FIRST_SPAN, FIRST_SPAN_OF_ALL // count)),
            max(FIRST_BYTES_MIN, min(FIRST_BYTES, FIRST_BYTES_OF_ALL // count)),
        )


class Source(Protocol):
    """What is needed of a partition."""

    async def fetch(self, offset: int, *, bytes_max: int) -> list[BatchView]: ...


class Strand(Protocol):
    """A way through a partition."""

    partition: int
    found: deque[Match]

    @property
    def is_at_end(self) -> bool: ...
    @property
    def cursor(self) -> int: ...
    async def step(self) -> None: ...
    def move_start(self, start: int) -> None: ...


class Forward:
    """From an offset to the end."""

    def __init__(
        self,
        partition: int,
        source: Source,
        offset: int,
        *,
        end: int,
        keep: int,
        look: Look,
        share: Share,
    ) -> None:
        self.partition = partition
        self.found: deque[Match] = deque()
        self._source = source
        self._position = min(offset, end)
        self._end = end
        self._keep = keep
        self._look = look
        self._bytes_max = share.size_bytes

    @property
    def is_at_end(self) -> bool:
        return self._position >= self._end

    @property
    def cursor(self) -> int:
        return self.found[0].record.offset if self.found else self._position

    async def step(self) -> None:
        batches = await self._source.fetch(self._position, bytes_max=self._bytes_max)
        batches = [batch for batch in batches if batch.base_offset < self._end]
        if not batches:
            self._position = self._end  # What is left has no records: compaction took them.
            return
        stretch = Stretch(self.partition, self._position, self._end, self._keep, newest=False)
        scanned = await self._look(batches, stretch)
        self.found.extend(scanned.matches)
        if scanned.is_cut:
            self._position = scanned.matches[-1].record.offset + 1
        else:
            self._position = min(batches[-1].next_offset, self._end)
        self._bytes_max = min(self._bytes_max * _GROWTH, FETCH_BYTES_MAX)

    def move_start(self, start: int) -> None:
        """The log begins later now."""
        self._position = min(max(self._position, start), self._end)


class Backward:
    """From an offset, which is not part of it, to the start."""

    def __init__(
        self,
        partition: int,
        source: Source,
        offset: int,
        *,
        start: int,
        keep: int,
        look: Look,
        share: Share,
    ) -> None:
        self.partition = partition
        self.found: deque[Match] = deque()
        self._source = source
        self._position = max(offset, start)
        self._start = start
        self._keep = keep
        self._look = look
        self._span = share.span
        self._bytes_max = share.size_bytes

    @property
    def is_at_end(self) -> bool:
        return self._position <= self._start

    @property
    def cursor(self) -> int:
        return self.found[0].record.offset + 1 if self.found else self._position

    async def step(self) -> None:
        low = max(self._start, self._position - self._span)
        batches = await self._window(low)
        if batches is None:
            # Records were small so far, and are not any more.
            self._span = max(1, self._span // _SHRINKAGE)
            return
        if batches:
            # The rest of the first batch is there already.
            low = max(self._start, min(low, batches[0].base_offset))
        stretch = Stretch(self.partition, low, self._position, self._keep, newest=True)
        scanned = await self._look(batches, stretch)
        self.found.extend(reversed(scanned.matches))
        self._position = scanned.matches[0].record.offset if scanned.is_cut else low
        if sum(map(len, batches)) < FETCH_BYTES_MAX // _GROWTH:
            self._span = min(self._span * _GROWTH, SPAN_MAX)
            self._bytes_max = min(self._bytes_max * _GROWTH, FETCH_BYTES_MAX)

    async def _window(self, low: int) -> list[BatchView] | None:
        """The batches from an offset on up to here; None if they are too much to take at once."""
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

    def move_start(self, start: int) -> None:
        """The log begins later now."""
        self._start = max(self._start, start)
        self._position = max(self._position, self._start)
