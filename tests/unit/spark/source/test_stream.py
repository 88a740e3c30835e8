"""Tests of the stream reader: offsets, limits, losses."""

import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError
from kafscale.spark.codec import columns
from kafscale.spark.read.location import Location
from kafscale.spark.source import options
from kafscale.spark.source.query import Query, spark_schema
from kafscale.spark.source.stream import StreamReader
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import NAMESPACE, put_segment, put_wal

EVERYTHING = ReadAllAvailable()


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "objects").mkdir()
    return tmp_path


@pytest.fixture
def store(directory):
    with Location.parse(str(directory)).open() as opened:
        yield opened


@pytest.fixture
def stream(directory):
    """Create readers; all are stopped at the end."""
    created = []

    def make(clock=lambda: 0, **given):
        parsed = options.parse({"subscribe": "orders"} | given)
        location = Location.parse(str(directory))
        query = Query.of(location, parsed, spark_schema(columns.ALL))
        created.append(StreamReader(query, clock))
        return created[-1]

    yield make
    for reader in created:
        reader.stop()


def offsets(*ends, topic="orders"):
    return {topic: {str(number): end for number, end in enumerate(ends)}}


def read(reader, start, end):
    """Return the offsets that a micro-batch reads, by partition."""
    return sorted(
        (part.partition, offset)
        for one in reader.partitions(start, end)
        for part in one.value.slices
        for offset in range(part.start_offset, part.end_offset)
    )


def run(reader, start, limit=EVERYTHING):
    """Run one micro-batch; return its end and the offsets that it reads."""
    end = reader.latestOffset(start, limit)
    return end, read(reader, start, end)


def test_stream_from_the_earliest_offset(store, stream):
    put_segment(store, range(20, 40))
    reader = stream(startingOffsets="earliest")
    assert reader.initialOffset() == offsets(20)
    end, offsets_read = run(reader, offsets(20))
    assert end == offsets(40)
    assert offsets_read == [(0, offset) for offset in range(20, 40)]
    put_segment(store, range(40, 45))
    end, offsets_read = run(reader, end)
    assert offsets_read == [(0, offset) for offset in range(40, 45)]
    assert run(reader, end) == (end, [])


def test_initial_offset_does_not_change(store, stream):
    put_segment(store, range(20))
    reader = stream()
    assert reader.initialOffset() == offsets(20)
    put_segment(store, range(20, 30))
    assert reader.initialOffset() == offsets(20)


def test_the_first_batch_from_latest_reads_nothing(store, stream):
    """It stores the start of the stream in the checkpoint."""
    put_segment(store, range(20))
    reader = stream()
    start = reader.initialOffset()
    put_segment(store, range(20, 30))
    assert run(reader, start) == (start, [])
    end, offsets_read = run(reader, start)
    assert (end, len(offsets_read)) == (offsets(30), 10)


def test_the_first_batch_is_retried_by_another_process(store, stream):
    """Spark asks for the initial offset again, later, and knows where the micro-batch ended."""
    put_segment(store, range(30))
    reader = stream()
    assert reader.initialOffset() == offsets(30)
    assert read(reader, offsets(30), offsets(20)) == []
    assert run(reader, offsets(20)) == (offsets(30), [(0, offset) for offset in range(20, 30)])


def test_stream_continues_from_a_checkpoint(store, stream):
    put_segment(store, range(20))
    put_wal(store, 0)
    put_wal(store, 1, range(20, 30))
    assert read(stream(), offsets(15), offsets(25)) == [(0, offset) for offset in range(15, 25)]


def test_batches_are_limited_in_proportion(store, stream):
    put_segment(store, range(90))
    put_segment(store, range(10), partition=1)
    reader = stream(startingOffsets="earliest", maxOffsetsPerTrigger="50")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(50)
    end, offsets_read = run(reader, reader.initialOffset(), limit)
    assert end == offsets(45, 5)
    assert len(offsets_read) == 50
    assert run(reader, end)[0] == offsets(90, 10)


def test_a_batch_waits_for_enough_offsets_or_the_delay(store, stream):
    now = 0
    reader = stream(
        clock=lambda: now,
        startingOffsets="earliest",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="5s",
    )
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    put_segment(store, range(5))
    start = reader.initialOffset()
    end, _ = run(reader, start, limit)
    assert end == offsets(5)  # The first micro-batch does not wait.
    put_segment(store, range(5, 10))
    now = 4999
    assert run(reader, end, limit) == (end, [])
    now = 5000
    assert run(reader, end, limit)[0] == offsets(10)
    put_segment(store, range(10, 20))
    now = 5001
    assert run(reader, offsets(10), limit)[0] == offsets(20)
    put_segment(store, range(20, 25))
    assert run(reader, offsets(20), EVERYTHING)[0] == offsets(25)


def test_minimum_and_maximum_offsets_together(store, stream):
    reader = stream(
        startingOffsets="earliest", minOffsetsPerTrigger="10", maxOffsetsPerTrigger="15"
    )
    limit = reader.getDefaultReadLimit()
    put_segment(store, range(20))
    end, _ = run(reader, reader.initialOffset(), limit)
    assert end == offsets(15)
    assert run(reader, end, limit) == (end, [])


def test_available_now_reads_only_what_existed_at_the_start(store, stream):
    put_segment(store, range(20))
    reader = stream(startingOffsets="earliest", minOffsetsPerTrigger="1000")
    reader.prepareForTriggerAvailableNow()
    put_segment(store, range(20, 30))
    put_segment(store, range(7), partition=1)
    end, offsets_read = run(reader, offsets(0), ReadMinRows(1000))
    assert (end, len(offsets_read)) == (offsets(20), 20)
    assert run(reader, end) == (end, [])


def test_available_now_of_a_stream_that_starts_beyond_the_target(store, stream):
    put_segment(store, range(20))
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    put_segment(store, range(20, 30))
    start = reader.initialOffset()
    assert start == offsets(30)
    assert run(reader, start) == (start, [])
    assert run(reader, start) == (start, [])


def test_new_topics_and_partitions_are_read_from_their_start(store, stream):
    reader = stream(subscribe="orders,clicks")
    start = reader.initialOffset()
    assert start == {}
    put_segment(store, range(5))
    end, offsets_read = run(reader, start)
    assert end == {}  # The first micro-batch from latest.
    end, offsets_read = run(reader, start)
    assert (end, len(offsets_read)) == (offsets(5), 5)
    put_segment(store, range(3), partition=1)
    put_segment(store, range(2), topic="clicks")
    end, offsets_read = run(reader, end)
    assert end == {"clicks": {"0": 2}, "orders": {"0": 5, "1": 3}}
    assert len(offsets_read) == 5


def test_retention_of_unread_offsets(store, stream):
    put_segment(store, range(30, 40))
    start, end = offsets(10), offsets(40)
    with pytest.raises(
        OffsetOutOfRangeError, match=r"offsets 10 to 29 of orders/0 were deleted.*failOnDataLoss"
    ):
        run(stream(), start)
    lenient = stream(failOnDataLoss="false")
    assert run(lenient, start) == (end, [(0, offset) for offset in range(30, 40)])


def test_a_recreated_topic(store, stream):
    put_segment(store, range(5))
    with pytest.raises(OffsetOutOfRangeError, match=r"orders/0 was recreated.*failOnDataLoss"):
        run(stream(), offsets(100))
    lenient = stream(failOnDataLoss="false", maxOffsetsPerTrigger="3")
    end, offsets_read = run(lenient, offsets(100), ReadMaxRows(3))
    assert end == offsets(3)
    assert offsets_read == [(0, 0), (0, 1), (0, 2)]


def test_a_topic_recreated_before_it_was_read(store, stream):
    put_segment(store, range(10))
    reader = stream()
    start = reader.initialOffset()
    assert run(reader, start) == (start, [])
    put_segment(store, range(5))
    with pytest.raises(OffsetOutOfRangeError, match="was recreated"):
        run(reader, start)


def test_a_deleted_topic(store, stream):
    put_segment(store, range(5))
    put_segment(store, range(5), topic="clicks")
    start = {"clicks": {"0": 5}, "orders": {"0": 5}}
    store.delete([object_keys.segment_key(NAMESPACE, "clicks", 0, 0)])
    reader = stream(subscribe="orders,clicks", failOnDataLoss="false")
    assert run(reader, start) == (offsets(5), [])
    with pytest.raises(
        OffsetOutOfRangeError, match="clicks/0 no longer exists; it was read up to 5"
    ):
        run(stream(subscribe="orders,clicks"), start)


def test_starting_timestamp(store, stream):
    put_segment(store, range(20))
    assert stream(startingTimestamp="1013").initialOffset() == offsets(13)
    with pytest.raises(OffsetOutOfRangeError, match="1020 ms in orders/0"):
        stream(startingTimestamp="1020").initialOffset()
    late = stream(startingTimestamp="1020", startingOffsetsByTimestampStrategy="latest")
    assert late.initialOffset() == offsets(20)


def test_report_latest_offset(store, stream):
    put_segment(store, range(20))
    reader = stream(startingOffsets="earliest", maxOffsetsPerTrigger="1")
    assert reader.reportLatestOffset() is None
    reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    assert reader.reportLatestOffset() == offsets(20)


def test_ending_offsets_are_rejected(stream):
    with pytest.raises(InvalidRequestError, match="streams, which have no end"):
        stream(endingOffsets="latest")


def test_an_empty_batch_has_no_tasks(stream):
    assert stream().partitions(offsets(3), offsets(3)) == []


def test_tasks_can_be_pickled_and_read(store, stream):
    put_segment(store, range(20))
    planner = stream(startingOffsets="earliest")
    task = pickle.loads(pickle.dumps(planner.partitions(offsets(5), offsets(9))[0]))  # noqa: S301
    reader = stream(startingOffsets="earliest")
    batches = list(reader.read(task))
    assert [offset for one in batches for offset in one["offset"].to_pylist()] == [5, 6, 7, 8]
    assert batches[0]["value"][0].as_py() == b"value 5"
