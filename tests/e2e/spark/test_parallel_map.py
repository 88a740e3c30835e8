"""Tests of `parallel_map` on Spark: results, failures and cancellation."""

import gc
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from pyspark import TaskContext

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.spark.runtime.parallel_map import parallel_map
from services.waiting import wait_until

run = partial(parallel_map, description="testing")


def square(number):
    return number * number


def square_and_task(number):
    return number * number, TaskContext.get().taskAttemptId()


def damaged_at(bad, number):
    if number == bad:
        raise DamagedObjectError("a.kfs", "its checksum is wrong")
    return number


def run_until_deleted(directory, number):
    """Create a file, and run until it is deleted, or for a minute."""
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


def describe_worker(_):
    loaded = {"pyarrow", "kafscale.spark.codec.decoder", "kafscale.spark.read.task"} <= set(
        sys.modules
    )
    return loaded, gc.get_freeze_count() > 0


def test_results_are_ordered_and_reported_once(spark):
    reported = []
    assert run(spark, range(20), square, on_result=reported.append) == [n * n for n in range(20)]
    assert sorted(reported) == [n * n for n in range(20)]


def test_many_items_share_tasks(spark):
    results = run(spark, range(1000), square_and_task, slices=4)
    assert [square for square, _ in results] == [n * n for n in range(1000)]
    assert len({task for _, task in results}) == 4


def test_results_are_reported_while_others_run(spark, tmp_path):
    """If results were reported at the end only, the second item would time out."""
    reported = []

    def release(number):
        reported.append(number)
        if number == 0:
            wait_until((tmp_path / "1").exists, "the second to begin")
            (tmp_path / "1").unlink()

    function = partial(_second_waits, str(tmp_path))
    assert run(spark, [0, 1], function, on_result=release) == [0, 1]
    assert reported == [0, 1]


def _second_waits(directory, number):
    return run_until_deleted(directory, number) if number == 1 else number


def test_kafscale_errors_are_raised_unchanged(spark):
    with pytest.raises(DamagedObjectError, match=r"^a\.kfs: its checksum is wrong$") as error:
        run(spark, range(10), partial(damaged_at, 3))
    assert error.value.key == "a.kfs"
    assert error.value.__cause__ is None


def test_a_lost_worker_is_reported_in_one_sentence(spark):
    with pytest.raises(
        OperatingError, match=r"testing: Spark failed: .* exited unexpectedly"
    ) as error:
        run(spark, range(2), crash)
    assert "\n" not in str(error.value)
    assert run(spark, range(2), square) == [0, 1]


def test_a_failure_cancels_other_tasks(spark, tmp_path):
    def function(number):
        if number == 0:
            file = tmp_path / "1"
            while not file.exists():
                time.sleep(0.02)
            raise DamagedObjectError("a.kfs", "damaged")
        return run_until_deleted(str(tmp_path), number)

    with pytest.raises(DamagedObjectError):
        run(spark, [0, 1], function)
    assert (tmp_path / "1").exists()
    assert not (tmp_path / "1-ended").exists()
    _wait_until_idle(spark)


def test_an_error_in_on_result_cancels_the_job(spark, tmp_path):
    def fail(_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        run(spark, [0, 1], partial(_second_waits, str(tmp_path)), on_result=fail)
    _wait_until_idle(spark)


def test_an_interrupt_cancels_the_job(spark, tmp_path):
    def interrupt():
        wait_until((tmp_path / "0").exists, "a task to begin")
        signal.raise_signal(signal.SIGINT)

    # The main thread handles the signal.
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(spark, [0, 1], partial(run_until_deleted, str(tmp_path)))
    thread.join()
    _wait_until_idle(spark)
    assert run(spark, range(2), square) == [0, 1]


def test_workers_have_preloaded_modules(spark):
    assert run(spark, range(2), describe_worker) == [(True, True)] * 2


def _wait_until_idle(spark):
    """Wait until no job is active, which Spark reports with a delay."""
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: not tracker.getActiveJobsIds(), "no job to be active")
