"""Cursors over a log in memory: every record once, whatever the batches are."""

import asyncio
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.cursor import BackwardCursor, FetchBudget, ForwardCursor
from kafscale.admin.messages.query import DisplayFormat, FilterSpec
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.admin.messages.scan import RecordFilter
from kafscale.admin.messages.scan import scan as scan_batches
from kafscale.records import BatchView, Record, build


class Log:
    """A partition that returns whole batches, from the one with the offset on."""

    def __init__(self, batches):
        self._batches = [BatchView(build(records)) for records in batches]
        self._ends = [batch.next_offset for batch in self._batches]
        self.fetched_bytes = 0

    async def fetch(self, offset, *, bytes_max):
        fetched, size_bytes = [], 0
        for batch in self._batches[bisect_right(self._ends, offset) :]:
            if fetched and size_bytes + len(batch) > bytes_max:
                break
            fetched.append(batch)
            size_bytes += len(batch)
        self.fetched_bytes += size_bytes
        return fetched


def match_all():
    renderer = PayloadRenderer(DisplayFormat(), SchemaCodecs())
    return RecordFilter(FilterSpec(), renderer, renderer)


MATCH_ALL = match_all()


async def scan(batches, scan_range):
    return scan_batches(batches, MATCH_ALL, scan_range)


def cursor_at(kind, log, offset, bounds, limit):
    start, end = bounds
    return kind(0, log, offset, start=start, end=end, limit=limit, scan=scan, budget=FetchBudget())


async def read(kind, log, bounds, limit, page):
    """Pages of some records each, with a new cursor for each page, as in requests."""
    offset = bounds[0] if kind is ForwardCursor else bounds[1]
    seen = []
    for _ in range(10_000):
        cursor = cursor_at(kind, log, offset, bounds, limit)
        for _ in range(page):
            while not cursor.matches and not cursor.is_at_end:
                await cursor.step()
            if cursor.matches:
                seen.append(cursor.matches.popleft().record.offset)
        offset = cursor.resume_offset
        if cursor.is_at_end and not cursor.matches:
            return seen
    pytest.fail("the cursor never ends")


@given(
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), max_size=12),
    cut=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    limit=st.integers(1, 40),
    page=st.integers(1, 50),
    kind=st.sampled_from([ForwardCursor, BackwardCursor]),
)
def test_pages_show_every_record_once_in_order(sizes, cut, limit, page, kind):
    """Batches of many sizes with gaps; the log starts and ends within batches."""
    batches, offset = [], 0
    for count, hole in sizes:
        batches.append([Record(n, n, None, b"v") for n in range(offset, offset + count)])
        offset += count + hole
    start = min(cut[0], offset)
    end = max(start, offset - cut[1])
    there = [each.offset for batch in batches for each in batch if start <= each.offset < end]
    if kind is BackwardCursor:
        there.reverse()
    seen = asyncio.run(read(kind, Log(batches), (start, end), limit, page))
    assert seen == there


def test_backward_cursor_fetches_little_for_few_records():
    batches = [[Record(n, n, None, bytes(1000))] for n in range(2_000)]
    log = Log(batches)
    cursor = cursor_at(BackwardCursor, log, 2_000, (0, 2_000), 50)
    asyncio.run(cursor.step())
    assert [match.record.offset for match in cursor.matches] == list(range(1_999, 1_967, -1))
    assert log.fetched_bytes < 64 * 1024


def test_backward_cursor_handles_records_that_become_large():
    """A window that fits small records would be gigabytes of large ones."""
    large = [[Record(n, n, None, bytes(1 << 20))] for n in range(60)]
    small = [[Record(n, n, None, b"v")] for n in range(60, 3000)]
    log = Log([*large, *small])
    seen = asyncio.run(read(BackwardCursor, log, (0, 3000), 5000, 5000))
    assert seen == list(range(2999, -1, -1))
    assert log.fetched_bytes < 200 << 20


@pytest.mark.parametrize("kind", [ForwardCursor, BackwardCursor])
def test_cursor_continues_at_an_advanced_log_start(kind):
    log = Log([[Record(n, n, None, b"v") for n in range(5)]])
    cursor = cursor_at(kind, log, 0 if kind is ForwardCursor else 5, (0, 5), 10)
    cursor.advance_start(3)
    asyncio.run(cursor.step())
    assert sorted(match.record.offset for match in cursor.matches) == [3, 4]
    cursor.advance_start(9)
    assert cursor.is_at_end
