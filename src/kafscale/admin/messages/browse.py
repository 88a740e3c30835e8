"""Pages of a topic's records: the newest first, or from a start, of all partitions together.

Partitions are read concurrently and merged by timestamp; each stays in the order of its offsets. A
page is limited in records, characters, scanned bytes and time, and says where to continue, so that
consecutive pages show every record once. If the query has a key, the partition that Kafka's default
partitioner assigns to it is read first. The others are read as well, as a producer may have used
another partitioner.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from threading import BoundedSemaphore
from typing import Final, Literal, NamedTuple

import msgspec

from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.cursor import (
    BackwardCursor,
    FetchBudget,
    ForwardCursor,
    PartitionCursor,
)
from kafscale.admin.messages.isolation import IsolatedPartition
from kafscale.admin.messages.query import BrowseQuery
from kafscale.admin.messages.renderer import (
    CHARACTERS_MAX,
    CHARACTERS_MAX_ALONE,
    PayloadRenderer,
    RenderedPayload,
)
from kafscale.admin.messages.scan import Match, RecordFilter, ScanRange, ScanResult, scan
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.errors import BrokerResponseError
from kafscale.client.isolation import IsolationLevel
from kafscale.client.partitioner import partition_of
from kafscale.errors import OverloadedError, RecordsError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import BatchView, TimestampType

SCANNED_BYTES_MAX: Final = 64 * 1024 * 1024
FILTERED_BYTES_MAX: Final = 256 * 1024 * 1024
"""With a filter, most of it is skipped and little is kept."""

SECONDS_MAX: Final = 10.0
GRACE_SECONDS: Final = 5.0
"""How much longer a step that has begun may take."""

PAGE_CHARACTERS_MAX: Final = 4 * 1024 * 1024
HEADERS_MAX: Final = 100
PROBLEMS_MAX: Final = 20
BROWSES_MAX: Final = 8
"""Concurrent queries per process; each may hold as many bytes as it may scan."""

_FETCHES_MAX: Final = 8
_SCANS_MAX: Final = 2
_slots: Final = BoundedSemaphore(BROWSES_MAX)


class PartitionRange(NamedTuple):
    """The log of a partition, and the offset at which a cursor or a time begins."""

    partition: int
    start: int
    end: int
    first: int | None
    """-1: after the end."""


class RenderedHeader(msgspec.Struct, frozen=True):
    key: str
    value: RenderedPayload | None


class RenderedRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A record as text."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: Literal["create", "append", "none"]
    key: RenderedPayload | None
    value: RenderedPayload | None
    headers: list[RenderedHeader]
    size_bytes: int

    @property
    def character_count(self) -> int:
        payloads = [self.key, self.value, *(header.value for header in self.headers)]
        names = sum(len(header.key) for header in self.headers)
        return names + sum(len(payload.text) for payload in payloads if payload is not None)


class Page(msgspec.Struct, rename="camel"):
    """The records, the cost of the scan, and where to continue."""

    records: list[RenderedRecord] = msgspec.field(default_factory=list, name="messages")
    scanned_records: int = 0
    scanned_bytes: int = 0
    is_complete: bool = False
    """True if all requested records were scanned."""
    cursor: dict[int, int] = msgspec.field(default_factory=dict, name="next")
    """The cursor of the next page."""
    problems: list[str] = msgspec.field(default_factory=list)

    def add_problem(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_MAX and problem not in self.problems:
            self.problems.append(problem)


async def browse(client: Client, topic: str, query: BrowseQuery, codecs: SchemaCodecs) -> Page:
    """The next page of a query."""
    query.check()
    if not _slots.acquire(blocking=False):
        raise OverloadedError(f"{BROWSES_MAX} queries are running already: try again in a moment")
    try:
        return await _Browser(client, topic, query, codecs).page()
    finally:
        _slots.release()


class _Browser:
    """Builds one page."""

    def __init__(self, client: Client, name: str, query: BrowseQuery, codecs: SchemaCodecs) -> None:
        is_single = query.limit == 1
        characters_max = CHARACTERS_MAX_ALONE if is_single else CHARACTERS_MAX
        self._client = client
        self._name = name
        self._query = query
        self._keys = PayloadRenderer(query.key, codecs, characters_max)
        self._values = PayloadRenderer(query.value, codecs.for_other_payloads(), characters_max)
        self._headers = PayloadRenderer(BrowseQuery().key, SchemaCodecs(), characters_max)
        self._isolation = IsolationLevel(query.isolation)
        self._filter = RecordFilter(query.filter, self._keys, self._values)
        self._bytes_max = SCANNED_BYTES_MAX if self._filter.matches_all else FILTERED_BYTES_MAX
        self._page = Page()
        self._characters = 0
        self._deadline = asyncio.get_running_loop().time() + SECONDS_MAX
        self._fetches = asyncio.Semaphore(_FETCHES_MAX)
        self._scans = asyncio.Semaphore(_SCANS_MAX)
        self._failed: set[int] = set()
        self._advanced: set[int] = set()

    async def page(self) -> Page:
        topic = await self._client.topic(self._name)
        await asyncio.to_thread(self._keys.prepare)
        await asyncio.to_thread(self._values.prepare)
        cursors = await self._cursors(topic)
        first = [each for each in cursors if each.partition == self._key_partition(topic)]
        rest = [each for each in cursors if each not in first]
        for group in (first, rest):
            await self._merge(group)
        page = self._page
        page.is_complete = not self._failed and all(
            cursor.is_at_end and not cursor.matches for cursor in cursors
        )
        page.cursor |= {cursor.partition: cursor.resume_offset for cursor in cursors}
        return page

    async def _merge(self, cursors: Sequence[PartitionCursor]) -> None:
        """Take the next record of all cursors; each needs a match before they can be compared."""
        while not self._is_full:
            waiting = [
                each
                for each in cursors
                if not (each.matches or each.is_at_end or each.partition in self._failed)
            ]
            if waiting and not self._is_over_budget:
                await self._step_all(waiting)
                continue
            ready = [each for each in cursors if each.matches]
            if not ready:
                return
            cursor = self._next(ready)
            rendered = await asyncio.to_thread(self._render, cursor.matches.popleft())
            self._page.records.append(rendered)
            self._characters += rendered.character_count

    @property
    def _is_full(self) -> bool:
        return (
            len(self._page.records) >= self._query.limit or self._characters >= PAGE_CHARACTERS_MAX
        )

    @property
    def _is_over_budget(self) -> bool:
        return (
            self._page.scanned_bytes >= self._bytes_max
            or asyncio.get_running_loop().time() >= self._deadline
        )

    def _next(self, ready: Sequence[PartitionCursor]) -> PartitionCursor:
        if self._query.is_backward:
            return max(ready, key=lambda each: each.matches[0].record.timestamp_ms)
        return min(ready, key=lambda each: each.matches[0].record.timestamp_ms)

    # --- cursors ------------------------------------------------------------------------------

    async def _cursors(self, topic: TopicMetadata) -> list[PartitionCursor]:
        leaders = leaders_of(topic)
        unknown = [each for each in self._query.partitions if each not in leaders]
        if unknown:
            raise UnknownTopicError(
                f"topic {topic.name} has no partition {unknown[0]}, only 0 to {max(leaders)}"
            )
        chosen = sorted(set(self._query.partitions or leaders))
        with_leader = [index for index in chosen if leaders[index] != NO_LEADER]
        for index in set(chosen) - set(with_leader):
            self._failed.add(index)
            self._page.add_problem(f"partition {index} has no leader at the moment: try again")
            if index in self._query.cursor:
                self._page.cursor[index] = self._query.cursor[index]
        starts, ends, first_offsets = await asyncio.gather(
            self._client.offsets(topic, dict.fromkeys(with_leader, EARLIEST_TIME)),
            self._client.offsets(topic, dict.fromkeys(with_leader, LATEST_TIME), self._isolation),
            self._start_offsets(topic, with_leader),
        )
        budget = FetchBudget.split(max(1, len(with_leader)))
        return [
            self._cursor(
                IsolatedPartition(self._client, topic, each, self._isolation),
                budget,
                PartitionRange(each, starts[each], ends[each], first_offsets.get(each)),
            )
            for each in with_leader
        ]

    async def _start_offsets(
        self, topic: TopicMetadata, indexes: Sequence[int]
    ) -> Mapping[int, int]:
        """Where a cursor or a time begins; -1 if no record is at or after the time."""
        query = self._query
        first_offsets = {each: query.cursor[each] for each in indexes if each in query.cursor}
        if query.start != "time":
            return first_offsets
        timed = [each for each in indexes if each not in first_offsets]
        return first_offsets | await self._client.offsets(
            topic, dict.fromkeys(timed, query.time_ms), self._isolation
        )

    def _cursor(
        self, source: IsolatedPartition, budget: FetchBudget, bounds: PartitionRange
    ) -> PartitionCursor:
        query = self._query
        index, start, end, first = bounds
        kind: type[PartitionCursor] = ForwardCursor
        if query.is_backward:
            kind = BackwardCursor
            offset = end if first is None else first
        elif first is None:
            offset = query.offset if query.start == "offset" else start
        else:
            offset = end if first < 0 else first
        return kind(
            index,
            source,
            offset,
            start=start,
            end=end,
            limit=query.limit,
            scan=partial(self._scan, source),
            budget=budget,
        )

    def _key_partition(self, topic: TopicMetadata) -> int:
        """The partition of the key by the default partitioner; -1 without a key."""
        key = self._query.filter.key
        return partition_of(key.encode(), len(topic.partitions)) if key else -1

    # --- reading ------------------------------------------------------------------------------

    async def _step_all(self, cursors: Sequence[PartitionCursor]) -> None:
        """Step all cursors; errors are raised after all steps have ended."""
        outcomes = await asyncio.gather(*map(self._step, cursors), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _step(self, cursor: PartitionCursor) -> None:
        async with self._fetches:
            if self._is_over_budget:
                return
            try:
                async with asyncio.timeout_at(self._deadline + GRACE_SECONDS):
                    await cursor.step()
            except TimeoutError:
                self._fail(cursor, "did not respond in time: try again")
            except RecordsError as error:
                self._fail(cursor, f"cannot be read at offset {cursor.resume_offset}: {error}")
            except BrokerResponseError as error:
                if error.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                await self._advance_start(cursor)

    async def _advance_start(self, cursor: PartitionCursor) -> None:
        """Records were deleted meanwhile: continue at the new start, but only once."""
        if cursor.partition in self._advanced:
            self._fail(cursor, "loses records to retention while it is read: try again")
            return
        self._advanced.add(cursor.partition)
        topic = await self._client.topic(self._name)
        starts = await self._client.offsets(topic, {cursor.partition: EARLIEST_TIME})
        cursor.advance_start(starts[cursor.partition])

    def _fail(self, cursor: PartitionCursor, problem: str) -> None:
        self._failed.add(cursor.partition)
        self._page.add_problem(f"partition {cursor.partition} {problem}")

    async def _scan(
        self, source: IsolatedPartition, batches: Sequence[BatchView], scan_range: ScanRange
    ) -> ScanResult:
        shown = [each for each in batches if source.shows(each)]
        async with self._scans:
            result = await asyncio.to_thread(scan, shown, self._filter, scan_range)
        self._page.scanned_records += result.record_count
        self._page.scanned_bytes += result.size_bytes
        for problem in result.problems:
            self._page.add_problem(problem)
        return result

    def _render(self, match: Match) -> RenderedRecord:
        partition, record, timestamp_type = match
        is_append = timestamp_type is TimestampType.LOG_APPEND_TIME
        headers = record.headers[:HEADERS_MAX]
        if len(headers) < len(record.headers):
            self._page.add_problem(
                f"the record at partition {partition}, offset {record.offset} has"
                f" {len(record.headers)} headers, of which {HEADERS_MAX} are shown"
            )
        payloads = (record.key, record.value, *(header.value for header in record.headers))
        size_bytes = sum(len(each) for each in payloads if each is not None)
        return RenderedRecord(
            partition,
            record.offset,
            record.timestamp_ms,
            "none" if record.timestamp_ms < 0 else "append" if is_append else "create",
            None if record.key is None else self._keys.render(record.key),
            None if record.value is None else self._values.render(record.value),
            [
                RenderedHeader(
                    header.key, None if header.value is None else self._headers.render(header.value)
                )
                for header in headers
            ],
            size_bytes,
        )
