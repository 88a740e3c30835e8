"""Tests of table maintenance."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafscale.spark.tables.base import Change, DataFile, Progress
from kafscale.spark.tables.maintenance import (
    DAY_MS,
    MaintenanceOptions,
    maintain,
    merge_files,
    small_groups,
)
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding
from unit.spark.jobs.lake_runs import inline
from unit.spark.tables.table_rows import SCHEMA, write

KEPT_MS = 7 * DAY_MS


def filled(tables, granularity=None, commits=4):
    table = tables("orders", time_column="timestamp")
    table.create(SCHEMA, granularity)
    for number in range(commits):
        version = table.load()
        files = write(table, version, [number * 2, number * 2 + 1])
        table.commit(version, Change(Progress({0: number * 2 + 2}), files))
    return table


def ids(tables) -> list[int]:
    return sorted(tables.rows("orders").column("id").to_pylist())


@pytest.mark.parametrize("granularity", [None, TimeGranularity.DAY])
def test_merge_files_merges_small_files(changing_tables, granularity):
    table = filled(changing_tables, granularity)
    before = table.data_files(table.load())
    merged = merge_files(table, "timestamp", Encoding(), inline)
    version = table.load()
    after = table.data_files(version)
    partitions = {file.time_partition for file in before}
    assert len(after) == len(partitions) < len(before)
    assert merged == len(before) - sum(
        1
        for time_partition in partitions
        if [file.time_partition for file in before].count(time_partition) == 1
    )
    assert version.progress.offsets == {0: 8}
    assert ids(changing_tables) == list(range(8))
    assert merge_files(table, "timestamp", Encoding(), inline) == 0


def test_merge_files_keeps_concurrent_appends(changing_tables):
    table = filled(changing_tables)

    def execute_with_commit(
        items: Sequence[Any], function: Callable[[Any], Any], *, description: str
    ) -> list[Any]:
        results = inline(items, function, description=description)
        version = table.load()
        table.commit(version, Change(Progress({0: 100}), write(table, version, [99])))
        return results

    assert merge_files(table, "timestamp", Encoding(), execute_with_commit) == 4
    assert ids(changing_tables) == [*range(8), 99]
    assert table.load().progress.offsets == {0: 100}
    assert len(table.data_files(table.load())) == 2


def test_merge_files_skips_files_replaced_meanwhile(changing_tables):
    table = filled(changing_tables)

    def execute_with_commit(
        items: Sequence[Any], function: Callable[[Any], Any], *, description: str
    ) -> list[Any]:
        results = inline(items, function, description=description)
        version = table.load()
        one = next(file for file in table.data_files(version) if file.record_count == 2)
        table.commit(version, Change(None, write(table, version, [77]), [one]))
        return results

    count = len(changing_tables.data_files())
    assert merge_files(table, "timestamp", Encoding(), execute_with_commit) == 0
    assert len(ids(changing_tables)) == 7
    assert 77 in ids(changing_tables)
    assert len(changing_tables.data_files()) == count + 1, "the merged file was deleted"


def test_maintain_expires_versions_but_not_progress(changing_tables):
    table = filled(changing_tables)
    merge_files(table, "timestamp", Encoding(), inline)
    files = len(changing_tables.data_files())
    assert files == 5
    age(changing_tables, 30 * DAY_MS)
    now_ms = 2**42  # In a hundred years.
    options = MaintenanceOptions(expires_after_ms=KEPT_MS)
    result = maintain(
        table, options, "timestamp", encoding=Encoding(), execute=inline, clock=lambda: now_ms
    )
    assert result.expired_count == 4
    assert len(changing_tables.data_files()) == 1
    assert ids(changing_tables) == list(range(8))
    assert table.load().progress.offsets == {0: 8}


def test_maintain_removes_old_orphans(tables):
    table = filled(tables)
    version = table.load()
    orphans = write(table, version, [1000])
    options = MaintenanceOptions(merges_files=False, expires_after_ms=KEPT_MS)
    arguments = {"encoding": Encoding(), "execute": inline, "clock": lambda: 2**41}
    age(tables, -(2**41))
    assert maintain(table, options, "timestamp", **arguments).orphan_count == 0
    age(tables, DAY_MS)
    maintain(table, options, "timestamp", **arguments)
    if tables.kind != "delta":  # It uses its own clock.
        assert not [path for path in tables.data_files() if path.name in orphans[0].path]
    assert ids(tables) == list(range(8))


def age(tables, by_ms: int) -> None:
    """Set the age of all files, relative to 2**41."""
    for path in tables.directory.rglob("*"):
        if path.is_file() and path.suffix in {".parquet", ".avro"}:
            when_s = max((2**41 - by_ms) / 1000 - 60, 0) if by_ms > 0 else 2**41 / 1000
            os.utime(path, (when_s, when_s))


def test_small_groups_share_a_time_partition_and_fit_the_target():
    def file(size: int, time_partition: int | None = None) -> DataFile:
        return DataFile(f"{size}", 1, size, time_partition)

    files = [file(10), file(20), file(70), file(80), file(5, 1), file(6, 1), file(7, 2)]
    groups = [tuple(one.size_bytes for one in group) for group in small_groups(files, 100)]
    assert groups == [(10, 20, 70), (5, 6)]
    assert list(small_groups([file(75), file(99)], 100)) == []
