"""Runs the tasks of a replay without Spark, in this process or in one that is killed."""

import pickle

import pyarrow as pa

from kafscale.spark.codec.columns import ALL_WITH_HEADERS
from kafscale.spark.jobs.replay import job
from kafscale.spark.jobs.replay.sink import PartitionResult
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.task import read_task

BATCH_ROWS = 20


def small_batches(location, part, offset_filter):
    """The input of a task, in many small batches."""
    for batch in read_task(location, Task((part,)), ALL_WITH_HEADERS):
        filtered = batch.filter(pa.array(offset_filter(batch.column("offset").to_numpy())))
        for start in range(0, filtered.num_rows, BATCH_ROWS):
            yield filtered.slice(start, BATCH_ROWS)


def every(offsets):
    return offsets >= 0


def odd(offsets):
    return offsets % 2 == 1


def replay_without_spark(work, step=lambda _: None):
    """Replay the missing records; return their number. `work` is settings and a filter."""
    settings, offset_filter = work
    slices, items = job.prepare(settings)
    written = 0
    for part in slices:
        batches = small_batches(settings.location, part, offset_filter)
        for result in job.write(items, None, batches, step):
            outcome = pickle.loads(result.column(0)[0].as_py())  # noqa: S301
            if not isinstance(outcome, PartitionResult):
                raise outcome.error()
            written += outcome.written_count
    return written
