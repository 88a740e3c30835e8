"""Rows of keys are boiled down, in any order and as often as one likes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.jobs.compact.latest_by_key import (
    INCOMPLETE,
    ROW,
    Newest,
    arrived,
    by_bucket,
    incomplete,
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
            (place, first, second, offset, offset, is_expired)
            for place, first, second, offset, is_expired in entries
        ],
        ROW,
    )


def expected(entries):
    """By place and hashes: the oldest, the newest, and whether that has expired."""
    found = {}
    for place, first, second, offset, is_expired in sorted(entries, key=lambda entry: entry[3]):
        oldest = found.get((place, first, second), (offset,))[0]
        found[place, first, second] = (oldest, offset, is_expired)
    return found


def told(rows):
    assert rows.dtype == ROW
    return {tuple(row)[:3]: tuple(row)[3:] for row in rows.tolist()}


@given(ENTRIES, st.integers(1, 20), st.integers(1, 7))
def test_each_key_has_one_row(entries, rows_max, step):
    gathered = Newest(rows_max)
    for start in range(0, len(entries), step):
        gathered.add(rows_of(entries[start : start + step]))
    rows = gathered.boiled_down()
    assert told(rows) == expected(entries)
    assert rows.size == len(told(rows))


@given(st.lists(ENTRIES, max_size=4), st.integers(1, 5))
def test_rows_of_a_key_come_together(several, buckets):
    entries = {entry[3]: entry for each in several for entry in each}
    shared = {}
    for part in np.array_split(rows_of(entries.values()), 3):
        for bucket, data in by_bucket(part, buckets):
            assert 0 <= bucket < buckets
            shared.setdefault(bucket, []).append(data)
    found = [told(arrived(data)) for data in shared.values()]
    assert sum(map(len, found)) == len(expected(entries.values()))
    assert {key: row for each in found for key, row in each.items()} == expected(entries.values())


def test_a_partition_can_be_told_to_be_incomplete():
    [row] = incomplete(3)
    assert (row["place"], row["newest"]) == (3, INCOMPLETE)
