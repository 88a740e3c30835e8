"""Work shared out to real tasks: results, reports, failures, and what is cancelled."""

import gc
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.spark.runtime.parallel_map import parallel_map
from services.waiting import wait_until

run = partial(parallel_map, description="testing")


def square(number):
    return number * number


def damaged_at(bad, number):
    if number == bad:
        raise DamagedObjectError("a.kfs", "its checksum is wrong")
    return number


def linger(directory, number):
    """Leave a file, and go on for as long as it is there, unless the test is lost."""
    file = Path(directory) / str(number)
    file.touch()
    for _ in range(600):
        if not file.exists():
            break
        time.sleep(0.1)
    (Path(directory) / f"{number}-ended").touch()
    return number


def crash(_):
    os._exit(3)


def describe(_):
    loaded = {"pyarrow", "kafscale.spark.codec.decoder", "kafscale.spark.read.task"} <= set(
        sys.modules
    )
    return loaded, gc.get_freeze_count() > 0


def test_results_come_in_the_order_of_items_and_each_is_told_once(spark):
    told = []
    assert run(spark, range(20), square, on_result=told.append) == [n * n for n in range(20)]
    assert sorted(told) == [n * n for n in range(20)]


def test_many_items_share_tasks(spark):
    tasks_before = _task_count(spark)
    assert run(spark, range(1000), square, slices=4) == [n * n for n in range(1000)]
    wait_until(lambda: _task_count(spark) == tasks_before + 4, "four tasks to be counted")


def test_a_result_is_told_while_others_are_worked_on(spark, tmp_path):
    """Were it told in the end only, the second would wait in vain for its file to go."""
    told = []

    def release(number):
        told.append(number)
        if number == 0:
            wait_until((tmp_path / "1").exists, "the second to begin")
            (tmp_path / "1").unlink()

    function = partial(_second_lingers, str(tmp_path))
    assert run(spark, [0, 1], function, on_result=release) == [0, 1]
    assert told == [0, 1]


def _second_lingers(directory, number):
    return linger(directory, number) if number == 1 else number


def test_an_error_of_ours_arrives_as_it_was_raised(spark):
    with pytest.raises(DamagedObjectError, match=r"^a\.kfs: its checksum is wrong$") as error:
        run(spark, range(10), partial(damaged_at, 3))
    assert error.value.key == "a.kfs"
    assert error.value.__cause__ is None


def test_a_lost_worker_is_told_in_a_sentence(spark):
    with pytest.raises(
        OperatingError, match=r"testing: Spark failed: .* exited unexpectedly"
    ) as error:
        run(spark, range(2), crash)
    assert "\n" not in str(error.value)
    assert run(spark, range(2), square) == [0, 1]


def test_a_failure_ends_what_still_runs(spark, tmp_path):
    def function(number):
        if number == 0:
            file = tmp_path / "1"
            while not file.exists():
                time.sleep(0.02)
            raise DamagedObjectError("a.kfs", "it is damaged")
        return linger(str(tmp_path), number)

    with pytest.raises(DamagedObjectError):
        run(spark, [0, 1], function)
    assert (tmp_path / "1").exists()
    assert not (tmp_path / "1-ended").exists()
    _wait_for_quiet(spark)


def test_what_raises_at_a_result_ends_the_work(spark, tmp_path):
    def refuse(_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        run(spark, [0, 1], partial(_second_lingers, str(tmp_path)), on_result=refuse)
    _wait_for_quiet(spark)


def test_an_interrupt_ends_the_work(spark, tmp_path):
    def interrupt():
        wait_until((tmp_path / "0").exists, "a task to begin")
        signal.raise_signal(signal.SIGINT)

    # The signal is handled in the thread that waits for the work.
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(spark, [0, 1], partial(linger, str(tmp_path)))
    thread.join()
    _wait_for_quiet(spark)
    assert run(spark, range(2), square) == [0, 1]


def test_workers_have_loaded_what_they_need(spark):
    assert run(spark, range(2), describe) == [(True, True)] * 2


def _wait_for_quiet(spark):
    """Return when nothing runs, which Spark tells a little later than it is so."""
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), "no job to be active")


def _task_count(spark):
    return spark._jsc.sc().statusStore().executorSummary("driver").totalTasks()
