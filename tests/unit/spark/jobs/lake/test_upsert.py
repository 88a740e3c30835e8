"""Upsert: the table has the last value of every key, and no deleted keys."""

import json
from contextlib import suppress
from typing import Any

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.jobs.lake.settings import Mode
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.values import ValueSpec
from services.selection import long_except
from unit.spark.jobs.lake_log import LakeLog, total
from unit.spark.jobs.lake_runs import Killed, job, killer
from unit.spark.jobs.lake_tables import Tables

JSON = ValueSpec(format="json")
UPSERT: dict[str, Any] = {"mode": Mode.UPSERT}


@pytest.fixture(params=long_except(["iceberg", "delta"], "iceberg".__eq__))
def tables(request, tmp_path):
    opened = Tables(request.param, tmp_path / "lake")
    yield opened
    opened.close()


def state(tables: Tables) -> dict[bytes, bytes]:
    table_rows = tables.rows("orders").to_pylist()
    state = {row["key"]: row["value"] for row in table_rows}
    assert len(state) == len(table_rows), "a key has one row"
    return state


def expected(log: LakeLog) -> dict[bytes, bytes]:
    """Return the state of a consumer that reads the topic from its start."""
    known: dict[bytes, bytes] = {}
    for (_, partition), records in sorted(log.records.items()):
        assert partition >= 0
        for record in records:
            if record.key is None:
                continue
            known.pop(record.key, None)
            if record.value is not None:
                known[record.key] = record.value
    return known


def write(log: LakeLog, partition: int, *pairs: tuple[str | None, str | None]) -> None:
    log.append(
        "orders",
        partition,
        [None if value is None else value.encode() for _, value in pairs],
        keys=[None if key is None else key.encode() for key, _ in pairs],
    )


@pytest.mark.parametrize("granularity", [None, TimeGranularity.HOUR])
def test_last_value_of_each_key_is_kept(log, tables, granularity):
    write(log, 0, ("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("b", None), ("d", None))
    write(log, 1, ("x", "1"), ("y", "1"))
    job(log, tables, granularity=granularity, **UPSERT).run()
    assert state(tables) == expected(log) == {b"a": b"2", b"c": b"1", b"x": b"1", b"y": b"1"}
    write(log, 0, ("c", "2"), ("a", None), ("b", "3"), ("e", "1"))
    write(log, 1, ("y", None), ("y", "4"))
    job(log, tables, granularity=granularity, commit_records_max=3, **UPSERT).run()
    assert state(tables) == expected(log)
    assert state(tables) == {b"c": b"2", b"b": b"3", b"e": b"1", b"x": b"1", b"y": b"4"}


def test_files_without_matching_keys_are_not_rewritten(log, tables):
    write(log, 0, ("a", "1"), ("b", "1"))
    job(log, tables, **UPSERT).run()
    before = tables("orders", time_column="timestamp")
    kept = {file.path for file in before.data_files(before.load())}
    write(log, 0, ("m", "1"), ("n", "1"))
    job(log, tables, **UPSERT).run()
    assert kept < {file.path for file in before.data_files(before.load())}
    write(log, 0, ("b", "2"))
    job(log, tables, **UPSERT).run()
    assert not kept & {file.path for file in before.data_files(before.load())}
    assert state(tables) == expected(log)


def test_staged_files_are_deleted(log, tables):
    write(log, 0, ("a", "1"), ("a", "2"))
    job(log, tables, **UPSERT).run()
    assert not list(tables.directory.rglob("_kafscale_staged/*"))


def test_records_without_a_key_are_dead_letters(log, tables):
    write(log, 0, ("a", "1"), (None, "2"), (None, None), ("b", "3"))
    lake = job(log, tables, **UPSERT)
    lake.run()
    assert state(tables) == {b"a": b"1", b"b": b"3"}
    letters = tables.rows("orders_dead_letters").to_pylist()
    assert [(row["offset"], row["reason"]) for row in letters] == [
        (1, "the record has no key"),
        (2, "the record has no key"),
    ]
    assert total(lake.summary(), "records") == 2


def test_rows_are_replaced_by_decoded_key_columns(log, tables):
    """A tombstone deletes the rows that were written under its record key."""

    def send(*pairs: tuple[str, dict[str, Any] | None]) -> None:
        write(log, 0, *((key, None if one is None else json.dumps(one)) for key, one in pairs))

    send(
        ("r1", {"id": 1, "at": "x", "n": 1}),
        ("r2", {"id": 2, "at": "x", "n": 1}),
        ("r3", {"id": 1, "at": "y", "n": 1}),
        ("r4", {"id": None, "at": "z"}),
    )
    options = {"values": JSON, "keys": ("id", "at"), **UPSERT}
    job(log, tables, **options).run()
    send(
        ("r5", {"id": 1, "at": "x", "n": 2, "new": True}), ("r2", None), ("r9", {"id": 9, "at": ""})
    )
    job(log, tables, **options).run()
    rows = tables.rows("orders").to_pylist()
    assert sorted((row["id"], row["at"], row["n"], row["new"]) for row in rows if row["n"]) == [
        (1, "x", 2, True),
        (1, "y", 1, None),
    ]
    assert len(rows) == 3
    assert tables.rows("orders_dead_letters").column("offset").to_pylist() == [3]


def test_keys_that_are_not_columns_are_rejected(log, tables):
    write(log, 0, ("a", '{"id": 1}'))
    spec = ValueSpec(format="json", schema="id long")
    with pytest.raises(InvalidRequestError, match="no columns number"):
        job(log, tables, values=spec, keys=("number",), **UPSERT).run()


def test_upsert_killed_at_every_step_completes_on_restart(log, tables, tmp_path):
    write(log, 0, ("a", "1"), ("b", "1"), ("a", "2"), (None, "x"))
    write(log, 0, ("b", None), ("c", "1"), ("a", "3"), ("d", "1"))
    steps: list[str] = []
    job(log, tables, on_step=steps.append, commit_records_max=4, **UPSERT).run()
    assert {"merged", "dead letters committed", "committed"} <= set(steps)
    for count in range(3, len(steps) + 1):
        lake = Tables(tables.kind, tmp_path / f"killed at {count}")
        for records_max in (4, 3):
            with suppress(Killed):
                job(
                    log, lake, on_step=killer(count), commit_records_max=records_max, **UPSERT
                ).run()
        job(log, lake, **UPSERT).run()
        assert state(lake) == expected(log), steps[count - 1]
        assert lake.rows("orders_dead_letters").num_rows == 1
        lake.close()


def test_concurrent_upserts_conflict(log, tables):
    write(log, 0, ("a", "1"), ("b", "1"))
    job(log, tables, **UPSERT).run()
    write(log, 0, ("a", "2"), ("c", "1"))

    def overtake(step: str) -> None:
        if step == "merged":
            job(log, tables, **UPSERT).run()

    lake = job(log, tables, on_step=overtake, **UPSERT)
    lake.run()
    assert total(lake.summary(), "racesLost") == 1
    assert state(tables) == expected(log)
    assert not list(tables.directory.rglob("_kafscale_staged/*"))
