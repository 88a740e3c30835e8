"""Pages of a topic's records: the newest first, or from a start on, of all partitions together.

Partitions are read side by side and merged by time, each in the order of its offsets. The laws: a
page has a limit of records, of characters, of bytes that were looked at and of time, and says where
to go on, so that pages one after the other show every record once. Where a key is looked for, the
partition comes first to which Kafka's producers send it; but all are looked at, for a producer may
have chosen otherwise.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Final, NamedTuple

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.cursor import Backward, Forward, Share, Strand
from kafscale.admin.messages.filter import Sieve
from kafscale.admin.messages.query import Question
from kafscale.admin.messages.renderer import CHARACTERS_MAX, CHARACTERS_MAX_ALONE, Lens, Payload
from kafscale.admin.messages.scan import Match, Scanned, Stretch, scan
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.errors import AnsweredError
from kafscale.client.partition import Partition
from kafscale.client.partitioner import partition_of
from kafscale.errors import OverloadedError, RecordsError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import BatchView, TimestampType

SCANNED_BYTES_MAX: Final = 64 * 1024 * 1024
FILTERED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Where a filter leaves out most of it, and little is kept."""

SECONDS_MAX: Final = 10.0
GRACE_SECONDS: Final = 5.0
"""What a step that has begun may take longer."""

PAGE_CHARACTERS_MAX: Final = 4 * 1024 * 1024
HEADERS_MAX: Final = 100
PROBLEMS_MAX: Final = 20
BROWSES_MAX: Final = 8
"""How many pages a process makes at a time: each may hold as many bytes as it may look at."""

_FETCHES_MAX: Final = 8
_SCANS_MAX: Final = 2
_turns: Final = BoundedSemaphore(BROWSES_MAX)


class Place(NamedTuple):
    """A partition, what its log holds, and where a cursor or a time says to begin."""

    partition: int
    start: int
    end: int
    begin: int | None
    """-1: behind all."""


class ShownHeader(NamedTuple):
    key: str
    value: Payload | None


class ShownRecord(NamedTuple):
    """A record, made readable."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: Payload | None
    value: Payload | None
    headers: list[ShownHeader]
    size_bytes: int

    @property
    def character_count(self) -> int:
        payloads = [self.key, self.value, *(header.value for header in self.headers)]
        names = sum(len(header.key) for header in self.headers)
        return names + sum(len(payload.text) for payload in payloads if payload is not None)


@dataclass
class Page:
    """What was found, what it took, and where to go on."""

    records: list[ShownRecord] = field(default_factory=list)
    scanned_records: int = 0
    scanned_bytes: int = 0
    is_complete: bool = False
    cursor: dict[int, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def note(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_MAX and problem not in self.problems:
            self.problems.append(problem)


async def browse(client: Client, topic: str, question: Question, codecs: Codecs) -> Page:
    """The next page of the answer to a question."""
    question.check()
    if not _turns.acquire(blocking=False):
        raise OverloadedError(f"{BROWSES_MAX} pages are being looked for: try again in a moment")
    try:
        return await _Browsing(client, topic, question, codecs).page()
    finally:
        _turns.release()


class _Browsing:
    """One page in the making."""

    def __init__(self, client: Client, name: str, question: Question, codecs: Codecs) -> None:
        alone = question.limit == 1
        characters_max = CHARACTERS_MAX_ALONE if alone else CHARACTERS_MAX
        self._client = client
        self._name = name
        self._question = question
        self._keys = Lens(question.key, codecs, characters_max)
        self._values = Lens(question.value, codecs.apart(), characters_max)
        self._plain = Lens(Question().key, Codecs(), characters_max)
        self._sieve = Sieve(question.filter, self._keys, self._values)
        self._bytes_max = SCANNED_BYTES_MAX if self._sieve.keeps_all else FILTERED_BYTES_MAX
        self._page = Page()
        self._characters = 0
        self._deadline = asyncio.get_running_loop().time() + SECONDS_MAX
        self._fetches = asyncio.Semaphore(_FETCHES_MAX)
        self._scans = asyncio.Semaphore(_SCANS_MAX)
        self._failed: set[int] = set()
        self._moved: set[int] = set()

    async def page(self) -> Page:
        topic = await self._client.topic(self._name)
        await asyncio.to_thread(self._keys.prepare)
        await asyncio.to_thread(self._values.prepare)
        strands = await self._strands(topic)
        first = [each for each in strands if each.partition == self._home(topic)]
        rest = [each for each in strands if each not in first]
        for group in (first, rest):
            await self._gather(group)
        page = self._page
        page.is_complete = not self._failed and all(
            strand.is_at_end and not strand.found for strand in strands
        )
        page.cursor |= {strand.partition: strand.cursor for strand in strands}
        return page

    async def _gather(self, strands: Sequence[Strand]) -> None:
        """Take the next record of all, again and again, for which each has to have one."""
        while not self._is_full:
            waiting = [
                each
                for each in strands
                if not (each.found or each.is_at_end or each.partition in self._failed)
            ]
            if waiting and not self._is_spent:
                await self._step_all(waiting)
                continue
            ready = [each for each in strands if each.found]
            if not ready:
                return
            strand = self._next(ready)
            shown = await asyncio.to_thread(self._show, strand.found.popleft())
            self._page.records.append(shown)
            self._characters += shown.character_count

    @property
    def _is_full(self) -> bool:
        return (
            len(self._page.records) >= self._question.limit
            or self._characters >= PAGE_CHARACTERS_MAX
        )

    @property
    def _is_spent(self) -> bool:
        return (
            self._page.scanned_bytes >= self._bytes_max
            or asyncio.get_running_loop().time() >= self._deadline
        )

    def _next(self, ready: Sequence[Strand]) -> Strand:
        if self._question.goes_back:
            return max(ready, key=lambda each: each.found[0].record.timestamp_ms)
        return min(ready, key=lambda each: each.found[0].record.timestamp_ms)

    # --- where the partitions are to be read -------------------------------------------------

    async def _strands(self, topic: TopicMetadata) -> list[Strand]:
        leaders = leaders_of(topic)
        unknown = [each for each in self._question.partitions if each not in leaders]
        if unknown:
            raise UnknownTopicError(
                f"topic {topic.name} has no partition {unknown[0]}, only 0 to {max(leaders)}"
            )
        chosen = sorted(set(self._question.partitions or leaders))
        led = [index for index in chosen if leaders[index] != NO_LEADER]
        for index in set(chosen) - set(led):
            self._failed.add(index)
            self._page.note(f"partition {index} has no leader at the moment: try again")
            if index in self._question.cursor:
                self._page.cursor[index] = self._question.cursor[index]
        starts, ends, begins = await asyncio.gather(
            self._client.offsets(topic, dict.fromkeys(led, EARLIEST_TIME)),
            self._client.offsets(topic, dict.fromkeys(led, LATEST_TIME)),
            self._begins(topic, led),
        )
        share = Share.among(max(1, len(led)))
        return [
            self._strand(
                Partition(self._client, topic, each),
                share,
                Place(each, starts[each], ends[each], begins.get(each)),
            )
            for each in led
        ]

    async def _begins(self, topic: TopicMetadata, indexes: Sequence[int]) -> Mapping[int, int]:
        """Where a cursor or a time says to begin; -1 where no record is that young."""
        question = self._question
        begins = {each: question.cursor[each] for each in indexes if each in question.cursor}
        if question.start != "time":
            return begins
        timed = [each for each in indexes if each not in begins]
        return begins | await self._client.offsets(topic, dict.fromkeys(timed, question.time_ms))

    def _strand(self, source: Partition, share: Share, place: Place) -> Strand:
        question = self._question
        index, start, end, begin = place
        if question.goes_back:
            offset = end if begin is None else min(begin, end)
            return Backward(
                index,
                source,
                offset,
                start=start,
                keep=question.limit,
                look=self._look,
                share=share,
            )
        if begin is None:
            begin = question.offset if question.start == "offset" else start
        offset = end if begin < 0 else max(begin, start)
        return Forward(
            index, source, offset, end=end, keep=question.limit, look=self._look, share=share
        )

    def _home(self, topic: TopicMetadata) -> int:
        """The partition where a key is most likely to be; -1 if none is looked for."""
        key = self._question.filter.key
        return partition_of(key.encode(), len(topic.partitions)) if key else -1

    # --- the work -----------------------------------------------------------------------------

    async def _step_all(self, strands: Sequence[Strand]) -> None:
        """A step of each; whatever goes wrong with one, the others end before it is raised."""
        outcomes = await asyncio.gather(*map(self._step, strands), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _step(self, strand: Strand) -> None:
        async with self._fetches:
            if self._is_spent:
                return
            try:
                async with asyncio.timeout_at(self._deadline + GRACE_SECONDS):
                    await strand.step()
            except TimeoutError:
                self._fail(strand, "did not answer in time: try again")
            except RecordsError as error:
                self._fail(strand, f"cannot be read at offset {strand.cursor}: {error}")
            except AnsweredError as error:
                if error.answer != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                await self._follow_start(strand)

    async def _follow_start(self, strand: Strand) -> None:
        """Records were deleted meanwhile: go on with those that are left, but not for ever."""
        if strand.partition in self._moved:
            self._fail(strand, "loses records while it is read: try again")
            return
        self._moved.add(strand.partition)
        topic = await self._client.topic(self._name)
        starts = await self._client.offsets(topic, {strand.partition: EARLIEST_TIME})
        strand.move_start(starts[strand.partition])

    def _fail(self, strand: Strand, problem: str) -> None:
        self._failed.add(strand.partition)
        self._page.note(f"partition {strand.partition} {problem}")

    async def _look(self, batches: Sequence[BatchView], stretch: Stretch) -> Scanned:
        async with self._scans:
            scanned = await asyncio.to_thread(scan, batches, self._sieve, stretch)
        self._page.scanned_records += scanned.record_count
        self._page.scanned_bytes += scanned.size_bytes
        for problem in scanned.problems:
            self._page.note(problem)
        return scanned

    def _show(self, match: Match) -> ShownRecord:
        partition, record, timestamp_type = match
        headers = record.headers[:HEADERS_MAX]
        if len(headers) < len(record.headers):
            self._page.note(
                f"the record at partition {partition}, offset {record.offset} has"
                f" {len(record.headers)} headers, of which {HEADERS_MAX} are shown"
            )
        payloads = (record.key, record.value, *(header.value for header in record.headers))
        size_bytes = sum(len(each) for each in payloads if each is not None)
        return ShownRecord(
            partition,
            record.offset,
            record.timestamp_ms,
            timestamp_type,
            None if record.key is None else self._keys.show(record.key),
            None if record.value is None else self._values.show(record.value),
            [
                ShownHeader(
                    header.key, None if header.value is None else self._plain.show(header.value)
                )
                for header in headers
            ],
            size_bytes,
        )
