"""Decoded values: every record is exactly once a row of the table or a dead letter."""

import json
from contextlib import suppress
from typing import Any

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.values import ValueSpec
from unit.spark.jobs.lake_log import total
from unit.spark.jobs.lake_runs import Killed, inline, job, killer
from unit.spark.jobs.lake_tables import Tables

JSON = ValueSpec(format="json")
GIVEN = ValueSpec(format="json", schema="id long, name string")


def encoded(*objects: Any) -> list[bytes | None]:
    return [None if one is None else json.dumps(one).encode() for one in objects]


def rows(tables: Tables, *columns: str) -> list[tuple[Any, ...]]:
    table_rows = tables.rows("orders").to_pylist()
    table_rows.sort(key=lambda row: (row["_kafscale_partition"], row["_kafscale_offset"]))
    return [tuple(row[column] for column in columns) for row in table_rows]


def letters(tables: Tables) -> list[tuple[int, int, bytes | None]]:
    table_rows = tables.rows("orders_dead_letters").to_pylist()
    return sorted((row["partition"], row["offset"], row["value"]) for row in table_rows)


def test_values_are_decoded_to_columns(log, tables):
    log.append("orders", 0, encoded({"id": 1, "name": "a"}, {"id": 2, "extra": True}, None))
    lake = job(log, tables, values=GIVEN)
    lake.run()
    table_rows = rows(
        tables,
        "id",
        "name",
        "_kafscale_topic",
        "_kafscale_partition",
        "_kafscale_offset",
        "_kafscale_key",
    )
    assert table_rows == [
        (1, "a", "orders", 0, 0, b"key 0"),
        (2, None, "orders", 0, 1, b"key 1"),
        (None, None, "orders", 0, 2, b"key 2"),
    ]
    assert letters(tables) == []
    assert total(lake.summary(), "deadLetters") == 0


def test_bad_records_become_dead_letters_with_the_reason(log, tables):
    log.append("orders", 0, [*encoded({"id": 1}, {"id": "two"}), b"{not json", b""])
    lake = job(log, tables, values=GIVEN)
    lake.run()
    assert rows(tables, "id") == [(1,)]
    assert letters(tables) == [(0, 1, b'{"id": "two"}'), (0, 2, b"{not json"), (0, 3, b"")]
    reasons = tables.rows("orders_dead_letters").column("reason").to_pylist()
    assert all(reasons)
    assert any("id" in reason for reason in reasons)
    assert total(lake.summary(), "deadLetters") == 3


def test_schema_is_inferred_and_evolves(log, tables):
    """Columns are added with the first records that have them, also within a round."""
    log.append("orders", 0, encoded({"id": 1}, {"id": 2}))
    job(log, tables, values=JSON).run()
    log.append("orders", 0, encoded({"id": 3, "tags": ["x"]}, {"at": {"city": "Bern"}}))
    log.append("orders", 1, encoded({"price": 1.5}, {"id": 4}))
    job(log, tables, values=JSON, task_bytes=1).run()
    if tables.kind == "parquet":
        return  # How a plain reader handles files with different columns is up to the reader.
    assert rows(tables, "id", "tags", "price") == [
        (1, None, None),
        (2, None, None),
        (3, ["x"], None),
        (None, None, None),
        (None, None, 1.5),
        (4, None, None),
    ]
    assert tables.rows("orders").num_rows == 6
    assert letters(tables) == []


def test_value_of_another_type_than_its_column_is_a_dead_letter(log, tables):
    log.append("orders", 0, encoded({"id": 1}))
    job(log, tables, values=JSON).run()
    log.append("orders", 0, encoded({"id": "two"}, {"id": 3}))
    job(log, tables, values=JSON).run()
    assert rows(tables, "id") == [(1,), (3,)]
    assert letters(tables) == [(0, 1, b'{"id": "two"}')]


def test_given_schema_widens_the_table(log, tables):
    log.append("orders", 0, encoded({"id": 1}))
    job(log, tables, values=ValueSpec(format="json", schema="id int")).run()
    log.append("orders", 0, encoded({"id": 2**40}))
    wider = job(log, tables, values=ValueSpec(format="json", schema="id long"))
    if tables.kind == "delta":
        with pytest.raises(InvalidRequestError, match="Delta cannot change it to int64"):
            wider.run()
        return
    wider.run()
    if tables.kind == "iceberg":
        assert rows(tables, "id") == [(1,), (2**40,)]


def test_job_with_bad_records_killed_at_every_step_completes_on_restart(log, tables, tmp_path):
    """Also between the two commits, and if the next round covers more than the killed one."""
    good = [{"id": number} for number in range(5)]
    log.append("orders", 0, [*encoded(*good[:3]), b"bad 1", *encoded(*good[3:]), b"bad 2"])
    log.append("orders", 1, [b"bad 3", *encoded(*good)])
    steps: list[str] = []
    whole = Tables(tables.kind, tmp_path / "whole")
    job(log, whole, on_step=steps.append, values=JSON, commit_records_max=8).run()
    expected = rows(whole, "_kafscale_partition", "_kafscale_offset", "id")
    assert len(expected) == 10
    assert [value for _, _, value in letters(whole)] == [b"bad 1", b"bad 2", b"bad 3"]
    assert {"columns added", "dead letters committed"} <= set(steps)
    whole.close()
    for count in range(1, len(steps) + 1):
        lake = Tables(tables.kind, tmp_path / f"killed at {count}")
        with pytest.raises(Killed):
            job(log, lake, on_step=killer(count), values=JSON, commit_records_max=8).run()
        with suppress(Killed):
            job(log, lake, on_step=killer(count), values=JSON, commit_records_max=5).run()
        job(log, lake, values=JSON).run()
        table_rows = rows(lake, "_kafscale_partition", "_kafscale_offset", "id")
        assert table_rows == expected, steps[count - 1]
        assert letters(lake) == letters(whole), steps[count - 1]
        lake.close()


def test_concurrent_writers_write_each_dead_letter_once(log, tables):
    """The other writer commits its dead letters whenever this one is about to."""
    log.append("orders", 0, [b"bad 1", *encoded({"id": 1}), b"bad 2", *encoded({"id": 2})])

    def overtake(step: str) -> None:
        if step in {"written", "dead letters committed"}:
            job(log, tables, values=JSON).run()

    lake = job(log, tables, values=JSON, on_step=overtake)
    lake.run()
    assert rows(tables, "_kafscale_offset", "id") == [(1, 1), (3, 2)]
    assert [value for _, _, value in letters(tables)] == [b"bad 1", b"bad 2"]
    assert total(lake.summary(), "racesLost") == 1


def test_records_with_invalid_field_names_are_dead_letters(log, tables):
    """They must neither be lost nor stop other records."""
    log.append("orders", 0, encoded({"id": 1}, {"_kafscale_offset": 7}, {"": 1}, {"ID": 2}))
    log.append("orders", 1, encoded({"id": 3, "kafscale_day": None}, {"kafscale_day": "x"}))
    job(log, tables, values=JSON, task_bytes=1).run()
    assert rows(tables, "_kafscale_partition", "_kafscale_offset", "id") == [(0, 0, 1), (1, 0, 3)]
    table_rows = tables.rows("orders_dead_letters").to_pylist()
    assert sorted((row["partition"], row["offset"], row["reason"]) for row in table_rows) == [
        (0, 1, "the name of field '_kafscale_offset' is reserved"),
        (0, 2, "the name of field '' is empty"),
        (0, 3, "the name of field 'ID' differs from id only in case"),
        (1, 1, "the name of field 'kafscale_day' is reserved"),
    ]


def test_nested_fields_are_added(log, tables):
    log.append("orders", 0, encoded({"at": {"x": 1}, "all": [{"x": 1}]}))
    job(log, tables, values=JSON).run()
    log.append("orders", 0, encoded({"at": {"y": 2}, "all": [{"y": "z"}]}))
    job(log, tables, values=JSON).run()
    assert letters(tables) == []
    if tables.kind == "parquet":
        return
    assert rows(tables, "at", "all") == [
        ({"x": 1, "y": None}, [{"x": 1, "y": None}]),
        ({"x": None, "y": 2}, [{"x": None, "y": "z"}]),
    ]


def test_conflict_while_columns_are_added(log, tables):
    """The version with the new columns is newer than the one with the offsets."""
    log.append("orders", 0, encoded({"id": 1}, {"id": 2, "new": 1}))
    is_first = [True]

    def overtaken(items, function, *, description):
        done = inline(items, function, description=description)
        if is_first[0]:
            is_first[0] = False
            job(log, tables, values=JSON).run()
        return done

    for _ in range(2):
        lake = job(log, tables, values=JSON)
        lake._execute = overtaken
        lake.run()
        assert rows(tables, "id")[:2] == [(1,), (2,)]
        log.append("orders", 0, encoded({"id": 3, "newer": 1}))
        is_first[0] = True
    job(log, tables, values=JSON).run()
    assert tables.rows("orders").num_rows == 4


def test_schema_with_a_reserved_name_is_rejected(log, tables):
    log.append("orders", 0, encoded({"id": 1}))
    spec = ValueSpec(format="json", schema="_kafscale_offset long")
    with pytest.raises(InvalidRequestError, match="'_kafscale_offset': is reserved"):
        job(log, tables, values=spec).run()
