"""A replay as its tasks do it, without Spark: in this process, or in one that is killed."""

import pickle

import pyarrow as pa

from kafscale.spark.jobs.replay import job
from kafscale.spark.jobs.replay.sink import PartitionResult
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.slice_reader import read_task
from kafscale.spark.source.columns import ALL_WITH_HEADERS

PIECE_ROWS = 20


def pieces(location, part, is_wanted):
    """What Spark would hand to a task, in many small pieces."""
    for batch in read_task(location, Task((part,)), ALL_WITH_HEADERS):
        kept = batch.filter(pa.array(is_wanted(batch.column("offset").to_numpy())))
        for start in range(0, kept.num_rows, PIECE_ROWS):
            yield kept.slice(start, PIECE_ROWS)


def every(offsets):
    return offsets >= 0


def odd(offsets):
    return offsets % 2 == 1


def replay_without_spark(work, step=lambda _: None):
    """Replay all that is missing, and return how much that was; a filter is part of the work."""
    settings, is_wanted = work
    slices, items = job.prepare(settings)
    written = 0
    for part in slices:
        batches = pieces(settings.location, part, is_wanted)
        for result in job.write(items, None, batches, step):
            outcome = pickle.loads(result.column(0)[0].as_py())  # noqa: S301
            if not isinstance(outcome, PartitionResult):
                raise outcome.error()
            written += outcome.written_count
    return written
