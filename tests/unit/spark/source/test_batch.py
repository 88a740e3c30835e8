"""Batches: where they end while transactions are open."""

import json

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.source import options
from kafscale.spark.source.data_source import BatchReader
from kafscale.spark.source.query import Query, spark_schema
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC
from unit.spark.transactional_log import COMMIT, TransactionalLog


@pytest.fixture
def log():
    """Offset 3 is in an open transaction, and others follow up to 7."""
    with TransactionalLog() as opened:
        opened.append(9, 3, transactional=False)
        opened.append(1)
        opened.append(9, 4, transactional=False)
        opened.flush()
        yield opened


def read(log, **given):
    """The offsets of a batch."""
    parsed = options.parse({"subscribe": TOPIC, "path": "/unused", **given})
    reader = BatchReader(Query.of(log.location, parsed, spark_schema(parsed.columns)))
    return [
        offset
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for offset in batch.column("offset").to_pylist()
    ]


def at(offset):
    return json.dumps({TOPIC: {"0": offset}})


def by_time(offset):
    return at(NOW_MS + offset)


BEHIND = [
    {"endingOffsets": at(8)},
    {"endingTimestamp": str(NOW_MS + 5)},
    {"endingOffsetsByTimestamp": by_time(1000)},
]


@pytest.mark.parametrize("ending", BEHIND, ids=lambda each: next(iter(each)))
def test_an_end_behind_an_open_transaction_is_an_error(log, ending):
    with pytest.raises(InvalidRequestError, match=f"offsets 3 to 7 of {TOPIC}/0"):
        read(log, **ending)
    assert read(log, **ending, failOnDataLoss="false") == [0, 1, 2]
    assert 3 in read(log, **ending, isolationLevel="read_uncommitted")


def test_a_batch_ends_before_an_open_transaction_by_default(log):
    for ending in ({}, {"endingOffsets": at(-1)}, {"endingOffsets": at(3)}):
        assert read(log, **ending) == [0, 1, 2]
    assert read(log, endingTimestamp=str(NOW_MS + 2)) == [0, 1]


def test_adjacent_batches_have_every_committed_record(log):
    log.end(1, COMMIT)
    log.append(9, 2, transactional=False)
    log.flush()
    first = read(log, endingOffsets=at(8))
    assert first + read(log, startingOffsets=at(8), endingOffsets=at(11)) == [*range(8), 9, 10]
    assert read(log, endingTimestamp=str(NOW_MS + 1000)) == [*range(8), 9, 10]
