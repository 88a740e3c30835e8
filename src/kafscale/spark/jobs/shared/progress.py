"""Collects the rows of a Spark query while a progress bar counts its finished tasks."""

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pyspark import InheritableThread
from pyspark.errors import PySparkException

from kafscale.errors import OperatingError
from kafscale.spark.runtime.errors import error_message
from kafscale.spark.runtime.parallel_map import progress_bar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, Row

POLL_SECONDS: Final = 0.2

_queries = count()


def collect_with_progress(
    query: "DataFrame", *, description: str, task_count: int, progress: bool = True
) -> "list[Row]":
    """Return all rows of a query that runs as `task_count` tasks; an interrupt cancels it."""
    context = query.sparkSession.sparkContext
    group = f"kafscale-query-{next(_queries)}"
    rows: list[Row] = []
    problems: list[Exception] = []

    def collect() -> None:
        context.setJobGroup(group, description, interruptOnCancel=True)
        try:
            rows.extend(query.collect())
        except Exception as error:  # noqa: BLE001 - the waiting thread raises it.
            problems.append(error)

    thread = InheritableThread(target=collect, daemon=True)
    shown = 0
    with progress_bar(description, task_count, progress) as advance:
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                completed = _completed_tasks(context, group)
                advance(completed - shown)
                shown = completed
        except BaseException:
            context.cancelJobGroup(group)
            thread.join()
            raise
    for problem in problems:
        if isinstance(problem, PySparkException):
            raise OperatingError(f"{description}: {error_message(problem)}") from problem
        raise problem
    return rows


def _completed_tasks(context: "SparkContext", group: str) -> int:
    tracker: Any = context.statusTracker()
    stages = (
        tracker.getStageInfo(stage)
        for job in tracker.getJobIdsForGroup(group)
        for stage in getattr(tracker.getJobInfo(job), "stageIds", ())
    )
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
