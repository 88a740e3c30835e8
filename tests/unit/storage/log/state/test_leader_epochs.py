"""Leader epochs: OffsetForLeaderEpoch results equal those of Kafka's LeaderEpochFileCache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.storage.formats.index_section import encode_section
from kafscale.storage.log.state.leader_epochs import LeaderEpochs

UNDEFINED = (-1, -1)


def epochs_of(*entries):
    epochs = LeaderEpochs()
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


@pytest.mark.parametrize(
    ("requested", "response"),
    [
        (-1, UNDEFINED),
        (1, (1, 10)),  # Older than all: ends where the oldest begins.
        (2, (2, 20)),
        (3, (2, 20)),  # Never led here: the one before it, which ends where the next begins.
        (4, (4, 30)),
        (6, (6, 100)),  # The current one ends where the log does.
        (7, UNDEFINED),  # Newer than all.
    ],
)
def test_epoch_ends_where_the_next_begins(requested, response):
    epochs = epochs_of((2, 10), (4, 20), (6, 30))
    assert epochs.end_offset_for(requested, log_end_offset=100) == response


def test_end_offset_is_undefined_without_epochs():
    assert LeaderEpochs().end_offset_for(0, log_end_offset=0) == UNDEFINED
    assert LeaderEpochs().latest == -1


def test_assign_ignores_later_batches_of_an_epoch():
    epochs = epochs_of((0, 0), (0, 5), (1, 9), (0, 12), (-1, 13), (1, 14))
    assert epochs.entries() == [(0, 0), (1, 9)]


def test_epoch_without_records_is_replaced():
    assert epochs_of((0, 0), (1, 5), (2, 5)).entries() == [(0, 0), (2, 5)]


@pytest.mark.parametrize(
    ("log_start_offset", "left"),
    [
        (5, [(0, 10), (1, 20), (2, 30)]),
        (10, [(0, 10), (1, 20), (2, 30)]),
        (15, [(0, 15), (1, 20), (2, 30)]),
        (20, [(1, 20), (2, 30)]),
        (99, [(2, 99)]),
    ],
)
def test_truncate_from_start_drops_epochs_of_deleted_records(log_start_offset, left):
    epochs = epochs_of((0, 10), (1, 20), (2, 30))
    epochs.truncate_from_start(log_start_offset)
    assert epochs.entries() == left


def test_truncate_from_start_without_epochs_does_nothing():
    epochs = LeaderEpochs()
    epochs.truncate_from_start(10)
    assert epochs.entries() == []


def test_snapshot_excludes_later_epochs():
    epochs = epochs_of((0, 0), (1, 10), (2, 20))
    assert LeaderEpochs.decode("key", epochs.snapshot_at(20)).entries() == [(0, 0), (1, 10)]


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**62)))
def test_snapshot_round_trip(entries):
    epochs = epochs_of(*zip(sorted(entries), sorted(entries.values()), strict=True))
    assert LeaderEpochs.decode("key", epochs.snapshot_at(2**63 - 1)).entries() == epochs.entries()


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (b"", "shorter than its prefix"),
        (encode_section(2, b""), "version 2"),
        (encode_section(1, bytes(11)), "truncated"),
        (encode_section(1, bytes(24)), "do not ascend"),
        (encode_section(1, bytes(12))[:-1], "CRC"),
    ],
)
def test_decode_rejects_a_damaged_snapshot(section, reason):
    with pytest.raises(DamagedObjectError, match=reason):
        LeaderEpochs.decode("key", section)
