"""The ways through a partition, over a log in memory: every record once, whatever the batches."""

import asyncio
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.cursor import Backward, Forward, Share
from kafscale.admin.messages.filter import Sieve
from kafscale.admin.messages.query import Filter, Reading
from kafscale.admin.messages.renderer import Lens
from kafscale.admin.messages.scan import scan
from kafscale.records import BatchView, Record, build


class Log:
    """What a partition answers: whole batches from the one on that holds an offset."""

    def __init__(self, batches):
        self._batches = [BatchView(build(records)) for records in batches]
        self._ends = [batch.next_offset for batch in self._batches]
        self.fetched_bytes = 0

    async def fetch(self, offset, *, bytes_max):
        found, size_bytes = [], 0
        for batch in self._batches[bisect_right(self._ends, offset) :]:
            if found and size_bytes + len(batch) > bytes_max:
                break
            found.append(batch)
            size_bytes += len(batch)
        self.fetched_bytes += size_bytes
        return found


def plain():
    lens = Lens(Reading(), Codecs())
    return Sieve(Filter(), lens, lens)


SIEVE = plain()


async def look(batches, stretch):
    return scan(batches, SIEVE, stretch)


def strand(kind, log, offset, bounds, keep):
    start, end = bounds
    if kind is Forward:
        return Forward(0, log, offset, end=end, keep=keep, look=look, share=Share())
    return Backward(0, log, offset, start=start, keep=keep, look=look, share=Share())


async def read(kind, log, bounds, keep, page):
    """Pages of some records each, a new strand for every one, as requests are."""
    cursor = bounds[0] if kind is Forward else bounds[1]
    seen = []
    for _ in range(10_000):
        way = strand(kind, log, cursor, bounds, keep)
        for _ in range(page):
            while not way.found and not way.is_at_end:
                await way.step()
            if way.found:
                seen.append(way.found.popleft().record.offset)
        cursor = way.cursor
        if way.is_at_end and not way.found:
            return seen
    pytest.fail("it never ends")


@given(
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), max_size=12),
    cut=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    keep=st.integers(1, 40),
    page=st.integers(1, 50),
    kind=st.sampled_from([Forward, Backward]),
)
def test_pages_show_every_record_once_in_order(sizes, cut, keep, page, kind):
    """Batches of many sizes with holes between them; the log begins and ends within batches."""
    batches, offset = [], 0
    for count, hole in sizes:
        batches.append([Record(n, n, None, b"v") for n in range(offset, offset + count)])
        offset += count + hole
    start = min(cut[0], offset)
    end = max(start, offset - cut[1])
    there = [each.offset for batch in batches for each in batch if start <= each.offset < end]
    if kind is Backward:
        there.reverse()
    seen = asyncio.run(read(kind, Log(batches), (start, end), keep, page))
    assert seen == there


def test_the_way_back_looks_at_little_where_little_is_wanted():
    batches = [[Record(n, n, None, bytes(1000))] for n in range(2_000)]
    log = Log(batches)
    way = strand(Backward, log, 2_000, (0, 2_000), 50)
    asyncio.run(way.step())
    assert [match.record.offset for match in way.found] == list(range(1_999, 1_967, -1))
    assert log.fetched_bytes < 64 * 1024


def test_the_way_back_goes_on_where_records_become_large():
    """A window that was right for small records would be gigabytes of large ones."""
    large = [[Record(n, n, None, bytes(1 << 20))] for n in range(60)]
    small = [[Record(n, n, None, b"v")] for n in range(60, 3000)]
    log = Log([*large, *small])
    seen = asyncio.run(read(Backward, log, (0, 3000), 5000, 5000))
    assert seen == list(range(2999, -1, -1))
    assert log.fetched_bytes < 200 << 20


@pytest.mark.parametrize("kind", [Forward, Backward])
def test_a_log_that_begins_later_now_is_read_from_there(kind):
    log = Log([[Record(n, n, None, b"v") for n in range(5)]])
    way = strand(kind, log, 0 if kind is Forward else 5, (0, 5), 10)
    way.move_start(3)
    asyncio.run(way.step())
    assert sorted(match.record.offset for match in way.found) == [3, 4]
    way.move_start(9)
    assert way.is_at_end
