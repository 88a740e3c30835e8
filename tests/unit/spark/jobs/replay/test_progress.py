"""What the log of a target tells about a replay."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, Header, Record, build
from kafscale.spark.jobs.replay.progress import (
    SOURCE_HEADER,
    Progress,
    Written,
    find,
    last_of,
    mark,
)


def batch_of(producer_id, base_sequence, marks, base_offset=0):
    records = [
        Record(base_offset + n, 0, None, b"", (Header("h", b""), Header(SOURCE_HEADER, each)))
        for n, each in enumerate(marks)
    ]
    return BatchView(
        build(records, producer_id=producer_id, producer_epoch=0, base_sequence=base_sequence)
    )


class Log:
    """A partition that holds batches, and counts what is read."""

    def __init__(self, batches, start=0):
        self.batches = batches
        self.start = start
        self.read_count = 0

    async def bounds(self):
        end = self.batches[-1].next_offset if self.batches else self.start
        return self.start, end

    async def between(self, offset, end):
        for batch in self.batches:
            if batch.next_offset > offset and batch.base_offset < end:
                self.read_count += 1
                yield batch


def log_of(producers):
    """A log in which each producer of a list has written a batch, of one record each."""
    batches = []
    counts = dict.fromkeys(producers, 0)
    for offset, producer_id in enumerate(producers):
        text = mark("orders", producer_id, offset * 10).encode()
        batches.append(batch_of(producer_id, counts[producer_id], [text], offset))
        counts[producer_id] += 1
    return Log(batches)


def test_the_last_record_of_a_batch_tells_how_far_it_goes():
    batch = batch_of(7, 40, [b"orders/3/17", b"orders/3/19", b"orders/3/19/1"])
    assert last_of(batch) == Written(19, 1, 43)
    assert last_of(batch_of(7, 2**31 - 1, [b"orders/3/17"])) == Written(17, 0, 0)


@pytest.mark.parametrize("text", [b"", b"orders", b"orders/3", b"orders/3/x", None])
def test_a_record_that_does_not_tell_is_refused(text):
    with pytest.raises(InvalidRequestError, match="does not say where it is from"):
        last_of(batch_of(7, 0, [text]))


@given(st.lists(st.integers(1, 4), max_size=60), st.integers(0, 60))
def test_the_last_batch_of_each_producer_is_found(producers, since):
    log = log_of(producers)
    end, found = asyncio.run(find(log, [1, 2, 9], since))
    assert end == len(producers)
    assert found == {
        producer_id: Written(last * 10, 0, producers.count(producer_id))
        for producer_id in (1, 2)
        for last in [
            max((n for n, each in enumerate(producers) if each == producer_id), default=-1)
        ]
        if last >= since
    }


def test_it_is_looked_for_from_the_end():
    log = log_of([1] * 9_000 + [2] * 3)
    asyncio.run(find(log, [2]))
    assert log.read_count <= 1_000
    _, found = asyncio.run(find(log, [1, 2]))
    assert sorted(found) == [1, 2]
    assert log.read_count <= 3_000


def test_reading_begins_where_the_first_partition_lacks_something():
    written = {0: Written(10), 1: Written(5)}
    assert Progress({0: 1, 1: 1}, written).resume_offset() == 5
    assert Progress({0: 1, 1: 1, 2: 0}, written).resume_offset() == 0
    assert Progress({}, {}).resume_offset() == 0
