"""Surviving rows are those that a consumer would have who applies records one by one."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.jobs.lake.upsert import DELETED, RowChanges, lacks_key, matches_keys

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.string()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        (DELETED, pa.bool_()),
    ]
)

records = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from("xy"),
        st.sampled_from([b"a", b"b", b"c"]),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=40,
)


def table(rows: list[tuple[int, str, bytes, int, bool]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": id_,
                "at": at,
                "key": key,
                "partition": partition,
                "offset": offset,
                DELETED: is_deleted,
            }
            for offset, (id_, at, key, partition, is_deleted) in enumerate(rows)
        ],
        schema=SCHEMA,
    )


@given(records)
def test_surviving_rows_equal_a_record_by_record_replay(rows):
    changes = RowChanges(table(rows), ["id", "at"], "key", ["partition", "offset"])
    state: dict[tuple[int, str], tuple[int, bytes]] = {}
    for offset in sorted(range(len(rows)), key=lambda offset: (rows[offset][3], offset)):
        id_, at, key, _, is_deleted = rows[offset]
        if is_deleted:
            state = {known: row for known, row in state.items() if row[1] != key}
        else:
            state[id_, at] = (offset, key)
    assert set(changes.surviving_rows().nonzero()[0]) == {offset for offset, _ in state.values()}
    written = [row for row in rows if not row[4]]
    assert {(row["id"], row["at"]) for row in changes.identities.to_pylist()} == {
        (row[0], row[1]) for row in written
    }
    assert {row["key"] for row in changes.tombstones.to_pylist()} == {
        row[2] for row in rows if row[4]
    }


def test_rows_match_keys_in_all_columns():
    batch = table([(1, "x", b"a", 0, False), (1, "y", b"b", 0, False), (2, "x", b"c", 0, False)])
    (rows,) = batch.to_batches()
    keys = pa.table({"id": pa.array([1, 2]), "at": ["y", "y"]})
    assert matches_keys(rows, keys).tolist() == [False, True, False]
    assert matches_keys(rows, keys.slice(0, 0)).tolist() == [False] * 3
    assert matches_keys(rows, pa.table({"key": pa.array([b"c", b"z"])})).tolist() == [
        False,
        False,
        True,
    ]


def test_rows_without_a_complete_key_are_found():
    rows = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "at": "x", "key": None, DELETED: False},
            {"id": 1, "at": None, "key": b"a", DELETED: False},
            {"id": None, "at": None, "key": b"a", DELETED: True},
            {"id": None, "at": None, "key": None, DELETED: True},
        ],
        schema=SCHEMA,
    )
    assert lacks_key(rows, ["id", "at"], "key").to_pylist() == [False, True, False, True]
