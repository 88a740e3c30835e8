"""The lake job writes every record exactly once, even if it is killed or races (without Spark)."""

from contextlib import suppress

import pytest

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError
from kafscale.spark.jobs.lake.settings import Start
from kafscale.spark.tables.maintenance import MaintenanceOptions
from kafscale.spark.tables.time_partitions import TimeGranularity
from unit.spark.jobs.keyed_log import TOPIC
from unit.spark.jobs.lake_log import LakeLog, raw_rows, total
from unit.spark.jobs.lake_runs import Killed, job, killer
from unit.spark.jobs.lake_tables import Tables
from unit.spark.transactional_log import ABORT, COMMIT, TransactionalLog


def test_topics_are_written_to_tables(log, tables):
    log.fill("orders")
    log.fill("payments", partitions=1, count=5)
    lake = job(log, tables, "orders,payments")
    lake.run()
    assert raw_rows(tables.rows("orders")) == log.rows("orders")
    assert raw_rows(tables.rows("payments")) == log.rows("payments")
    assert total(lake.summary(), "records") == 3 * 21 + 5
    assert total(lake.summary(), "commits") == 5, "4 because of the limit of records, and 1"
    assert [row[-2:] for row in lake.summary().rows] == [(80.0, 80.0), (98.0, 100.0)]


def test_tables_get_committed_records(tables):
    with TransactionalLog() as source:
        for producer_id, control_type in [(1, COMMIT), (2, ABORT), (3, COMMIT)]:
            source.append(producer_id, 3)
            source.append(-1, 2, transactional=False)
            source.end(producer_id, control_type)
        source.append(4, 2)
        source.append(-1, 2, transactional=False)
        source.flush()
        source.roll(5)
        job(source, tables, TOPIC).run()
        assert _offsets(tables) == [offset for offset, _ in source.committed()]
        source.end(4, COMMIT)
        source.flush()
        job(source, tables, TOPIC).run()
        assert _offsets(tables) == [offset for offset, _ in source.committed()]
        assert len(_offsets(tables)) == 3 + 3 + 2 * 3 + 2 + 2


def _offsets(tables):
    return sorted(tables.rows(TOPIC).column("offset").to_pylist())


@pytest.mark.parametrize("granularity", list(TimeGranularity))
def test_rows_are_partitioned_by_time(log, tables, granularity):
    values = [b"%d" % number for number in range(20)]
    log.append("orders", 0, values, step_ms=11 * 3600 * 1000)
    job(log, tables, granularity=granularity).run()
    assert raw_rows(tables.rows("orders")) == log.rows("orders")
    expected = {TimeGranularity.HOUR: 20, TimeGranularity.DAY: 10, TimeGranularity.MONTH: 1}[
        granularity
    ]
    assert len({path.parent for path in tables.data_files()}) == expected
    with pytest.raises(InvalidRequestError, match="is not partitioned by"):
        job(
            log,
            tables,
            granularity=(
                TimeGranularity.DAY if granularity is TimeGranularity.HOUR else TimeGranularity.HOUR
            ),
        ).run()


def test_second_run_continues_where_the_first_ended(log, tables):
    log.fill("orders")
    job(log, tables).run()
    before = tables.data_files()
    again = job(log, tables)
    again.run()
    assert tables.data_files() == before
    assert total(again.summary(), "commits") == 0
    log.fill("orders", partitions=4)
    job(log, tables).run()
    assert raw_rows(tables.rows("orders")) == log.rows("orders")


def test_job_killed_at_every_step_completes_on_restart(log, tables, tmp_path):
    """Each record is there once, even if the second run is killed, too."""
    log.fill("orders", partitions=2, count=13)
    steps: list[str] = []
    job(log, Tables(tables.kind, tmp_path / "whole"), on_step=steps.append).run()
    assert {"listed", "table created", "written", "committed"} <= set(steps)
    for count in range(1, len(steps) + 1):
        lake = Tables(tables.kind, tmp_path / f"killed at {count}")
        with pytest.raises(Killed):
            job(log, lake, on_step=killer(count)).run()
        with suppress(Killed):
            job(log, lake, on_step=killer(count)).run()
        job(log, lake).run()
        assert raw_rows(lake.rows("orders")) == log.rows("orders"), steps[count - 1]
        lake.close()


def test_concurrent_writers_write_each_record_once(log, tables):
    """Whenever one writer is about to commit, the other does a whole run."""
    log.fill("orders")

    def overtake(step: str) -> None:
        if step == "written":
            job(log, tables, commit_records_max=7).run()

    lake = job(log, tables, on_step=overtake)
    lake.run()
    assert raw_rows(tables.rows("orders")) == log.rows("orders")
    assert total(lake.summary(), "racesLost") == 1
    assert total(lake.summary(), "records") == 0
    referenced = tables.rows("orders").num_rows
    assert referenced == len(log.rows("orders"))


def test_files_of_a_failed_commit_are_deleted(log, tables):
    log.fill("orders", partitions=1)
    counts: list[int] = []

    def overtake(step: str) -> None:
        if step == "written":
            counts.append(len(tables.data_files()))
            job(log, tables).run()
            counts.append(len(tables.data_files()))

    job(log, tables, on_step=overtake).run()
    assert len(tables.data_files()) == counts[1] - counts[0]


def test_foreign_commit_that_keeps_the_offsets_is_no_conflict(log, tables):
    """Another client changes the table, but not the offsets."""
    log.fill("orders", partitions=1, count=5)
    log.fill("payments", partitions=1, count=5)
    job(log, tables).run()
    log.fill("orders", partitions=1, count=5)

    def commit_foreign_change(step: str) -> None:
        if step == "written":
            table = tables("orders", time_column="timestamp")
            version = table.load()
            table.commit(version, tables.foreign_change(version))

    lake = job(log, tables, on_step=commit_foreign_change)
    lake.run()
    assert total(lake.summary(), "racesLost") == 0
    assert raw_rows(tables.rows("orders")) == log.rows("orders")


def test_start_latest_writes_new_records_only(log, tables):
    log.fill("orders", partitions=2, count=5)
    job(log, tables, start=Start.LATEST).run()
    assert tables.rows("orders").num_rows == 0
    log.fill("orders", partitions=3, count=4)
    job(log, tables, start=Start.LATEST).run()
    expected = [row for row in log.rows("orders") if row[0] == 2 or row[1] >= 5]
    assert raw_rows(tables.rows("orders")) == expected


def test_records_deleted_before_they_were_read_fail_the_job(log, tables):
    log.fill("orders", partitions=1, count=5)
    job(log, tables).run()
    log.fill("orders", partitions=1, count=5)
    log.fill("orders", partitions=1, count=5)
    log.delete_segment("orders", 0, 0)
    log.delete_segment("orders", 0, 5)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 5 to 9 of orders/0 were deleted"):
        job(log, tables).run()
    job(log, tables, fail_on_data_loss=False).run()
    expected = [row for row in log.rows("orders") if row[1] < 5 or row[1] >= 10]
    assert raw_rows(tables.rows("orders")) == expected


def test_topic_that_was_deleted_and_created_again_is_rejected(log, tables):
    log.fill("orders", partitions=1, count=5)
    log.publish("orders", b"1" * 16, 1)
    job(log, tables).run()
    log.publish("orders", b"2" * 16, 1)
    with pytest.raises(InvalidRequestError, match="a topic orders that has been deleted"):
        job(log, tables).run()


def test_log_that_is_shorter_than_the_table_is_rejected(log, tables, tmp_path):
    log.fill("orders", partitions=1, count=9)
    job(log, tables).run()
    other = LakeLog(tmp_path / "other")
    other.fill("orders", partitions=1, count=5)
    with pytest.raises(OffsetOutOfRangeError, match="has offsets up to 9 of orders/0"):
        job(other, tables).run()


def test_continuous_job_pauses_when_it_has_caught_up(log, tables):
    log.fill("orders", partitions=1, count=12)
    lake = job(log, tables, is_once=False, commit_records_max=5, interval_ms=3000)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise Killed
        log.fill("orders", partitions=2, count=4)

    with pytest.raises(Killed):
        lake.run(sleep)
    assert pauses == [3.0, 3.0]
    assert total(lake.summary(), "commits") == 3 + 2
    assert raw_rows(tables.rows("orders")) == log.rows("orders")


def test_small_files_are_merged_after_the_run(log, tables):
    log.fill("orders", partitions=1, count=12)
    options = {"commit_records_max": 4, "maintenance": MaintenanceOptions(merges_files=True)}
    lake = job(log, tables, **options)
    if tables.kind == "parquet":
        with pytest.raises(InvalidRequestError, match="cannot be replaced"):
            lake.run()
        return
    lake.run()
    table = tables("orders", time_column="timestamp")
    assert len(table.data_files(table.load())) == 1
    assert raw_rows(tables.rows("orders")) == log.rows("orders")
    assert lake.summary().facts["mergedFiles"] == 3
