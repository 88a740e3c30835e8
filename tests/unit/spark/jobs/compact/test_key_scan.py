"""Rows of keys are deduplicated in any order and repeatedly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.jobs.compact.key_scan import (
    INCOMPLETE,
    ROW,
    LatestByKey,
    combine,
    incomplete_row,
    split_by_bucket,
)

ENTRIES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(-2, 2),
        st.sampled_from([-(2**63), 0, 2**63 - 1]),
        st.integers(0, 1000),
        st.booleans(),
    ),
    max_size=50,
    unique_by=lambda entry: entry[3],
)


def rows_of(entries):
    return np.array(
        [
            (partition, first, second, offset, offset, is_expired)
            for partition, first, second, offset, is_expired in entries
        ],
        ROW,
    )


def expected(entries):
    """By partition and hashes: oldest and latest offset, and whether the latest has expired."""
    results = {}
    for partition, first, second, offset, is_expired in sorted(entries, key=lambda entry: entry[3]):
        oldest = results.get((partition, first, second), (offset,))[0]
        results[partition, first, second] = (oldest, offset, is_expired)
    return results


def as_dict(rows):
    assert rows.dtype == ROW
    return {tuple(row)[:3]: tuple(row)[3:] for row in rows.tolist()}


@given(ENTRIES, st.integers(1, 20), st.integers(1, 7))
def test_rows_are_deduplicated_by_key(entries, rows_max, step):
    latest = LatestByKey(rows_max)
    for start in range(0, len(entries), step):
        latest.add(rows_of(entries[start : start + step]))
    rows = latest.rows()
    assert as_dict(rows) == expected(entries)
    assert rows.size == len(as_dict(rows))


@given(st.lists(ENTRIES, max_size=4), st.integers(1, 5))
def test_rows_of_a_key_meet_in_one_bucket(lists, buckets):
    entries = {entry[3]: entry for each in lists for entry in each}
    buckets_received = {}
    for part in np.array_split(rows_of(entries.values()), 3):
        for bucket, data in split_by_bucket(part, buckets):
            assert 0 <= bucket < buckets
            buckets_received.setdefault(bucket, []).append(data)
    results = [as_dict(combine(data)) for data in buckets_received.values()]
    assert sum(map(len, results)) == len(expected(entries.values()))
    assert {key: row for each in results for key, row in each.items()} == expected(entries.values())


def test_incomplete_partition_has_a_row():
    [row] = incomplete_row(3)
    assert (row["partition"], row["latest"]) == (3, INCOMPLETE)
