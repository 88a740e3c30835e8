"""The progress of a replay, read from its target topic."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, Header, Record, build
from kafscale.spark.jobs.replay.progress import (
    SOURCE_HEADER,
    LastWritten,
    Progress,
    find_last_written,
    format_source,
    last_written,
)


def batch_of(producer_id, base_sequence, sources, base_offset=0):
    records = [
        Record(base_offset + n, 0, None, b"", (Header("h", b""), Header(SOURCE_HEADER, each)))
        for n, each in enumerate(sources)
    ]
    return BatchView(
        build(records, producer_id=producer_id, producer_epoch=0, base_sequence=base_sequence)
    )


class FakePartition:
    """A partition that counts the batches that are read."""

    def __init__(self, batches, start=0):
        self.batches = batches
        self.start = start
        self.read_count = 0

    async def bounds(self):
        end = self.batches[-1].next_offset if self.batches else self.start
        return self.start, end

    async def fetch_range(self, offset, end):
        for batch in self.batches:
            if batch.next_offset > offset and batch.base_offset < end:
                self.read_count += 1
                yield batch


def partition_of(producers):
    """A partition with a batch of one record for each producer id of a list."""
    batches = []
    counts = dict.fromkeys(producers, 0)
    for offset, producer_id in enumerate(producers):
        text = format_source("orders", producer_id, offset * 10).encode()
        batches.append(batch_of(producer_id, counts[producer_id], [text], offset))
        counts[producer_id] += 1
    return FakePartition(batches)


def test_last_written_is_read_from_the_last_record_of_a_batch():
    batch = batch_of(7, 40, [b"orders/3/17", b"orders/3/19", b"orders/3/19/1"])
    assert last_written(batch) == LastWritten(19, 1, 43)
    assert last_written(batch_of(7, 2**31 - 1, [b"orders/3/17"])) == LastWritten(17, 0, 0)


@pytest.mark.parametrize("text", [b"", b"orders", b"orders/3", b"orders/3/x", None])
def test_record_without_a_valid_source_header_is_rejected(text):
    with pytest.raises(InvalidRequestError, match="no valid header"):
        last_written(batch_of(7, 0, [text]))


@given(st.lists(st.integers(1, 4), max_size=60), st.integers(0, 60))
def test_last_batch_of_each_producer_is_found(producers, since):
    partition = partition_of(producers)
    end, result = asyncio.run(find_last_written(partition, [1, 2, 9], since))
    assert end == len(producers)
    assert result == {
        producer_id: LastWritten(last * 10, 0, producers.count(producer_id))
        for producer_id in (1, 2)
        for last in [
            max((n for n, each in enumerate(producers) if each == producer_id), default=-1)
        ]
        if last >= since
    }


def test_search_goes_backward_from_the_end():
    partition = partition_of([1] * 9_000 + [2] * 3)
    asyncio.run(find_last_written(partition, [2]))
    assert partition.read_count <= 1_000
    _, result = asyncio.run(find_last_written(partition, [1, 2]))
    assert sorted(result) == [1, 2]
    assert partition.read_count <= 3_000


def test_resume_offset_is_the_least_of_all_target_partitions():
    written = {0: LastWritten(10), 1: LastWritten(5)}
    assert Progress({0: 1, 1: 1}, written).resume_offset() == 5
    assert Progress({0: 1, 1: 1, 2: 0}, written).resume_offset() == 0
    assert Progress({}, {}).resume_offset() == 0
