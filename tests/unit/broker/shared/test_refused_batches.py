"""`RefusedBatches`: which batches wait for one that was refused before them."""

import pytest

from kafscale.broker.shared.refused_batches import FOLLOWERS_MAX, PRODUCERS_MAX, RefusedBatches
from kafscale.errors import NotOwnerError
from kafscale.records import Record, build

PARTITION = ("orders", 0)
LAST_SEQUENCE = 2**31 - 1


def batch(sequence, producer_id=5, epoch=0):
    records = [Record(0, 1, None, b"value")]
    return memoryview(
        build(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )


def refused(*sequences):
    batches = RefusedBatches()
    for sequence in sequences:
        batches.note(PARTITION, batch(sequence))
    return batches


def waits(batches, records, partition=PARTITION):
    try:
        batches.check(partition, records)
    except NotOwnerError:
        return True
    return False


@pytest.mark.parametrize(
    ("first", "sequence", "is_waiting"),
    [
        (7, 7, False),
        (7, 8, True),
        (7, 6, False),
        (LAST_SEQUENCE, 0, True),
        (LAST_SEQUENCE, 3, True),
        (0, LAST_SEQUENCE, False),
    ],
)
def test_batches_that_follow_a_refused_one_wait(first, sequence, is_waiting):
    assert waits(refused(first), batch(sequence)) == is_waiting


@pytest.mark.parametrize("first", [(7, 8), (8, 7)])
def test_earliest_refused_batch_counts(first):
    batches = refused(*first)
    assert waits(batches, batch(8))
    assert not waits(batches, batch(7))
    assert not waits(batches, batch(8))


@pytest.mark.parametrize(
    ("records", "partition"),
    [
        (batch(8, producer_id=6), PARTITION),
        (batch(8), ("orders", 1)),
        (batch(8), ("others", 0)),
        (batch(8)[:60], PARTITION),
        (batch(-1, producer_id=-1, epoch=-1), PARTITION),
        (None, PARTITION),
    ],
)
def test_other_batches_do_not_wait(records, partition):
    batches = refused(7)
    batches.note(partition, None)
    assert not waits(batches, records, partition)
    assert waits(batches, batch(8))


def test_a_new_epoch_ends_the_wait():
    batches = refused(7)
    assert not waits(batches, batch(8, epoch=1))
    assert not waits(batches, batch(8))


def test_only_batches_in_flight_wait():
    batches = refused(7)
    assert [waits(batches, batch(8)) for _ in range(FOLLOWERS_MAX + 1)] == [
        *[True] * FOLLOWERS_MAX,
        False,
    ]


def test_number_of_producers_is_limited():
    batches = RefusedBatches()
    for producer_id in range(PRODUCERS_MAX + 1):
        batches.note(PARTITION, batch(0, producer_id))
    assert not waits(batches, batch(1, 0))
    assert waits(batches, batch(1, 1))
    assert waits(batches, batch(1, PRODUCERS_MAX))
