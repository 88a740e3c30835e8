"""Collects the rows of a Spark query while a progress bar counts its finished tasks."""

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pyspark import InheritableThread
from pyspark.errors import PySparkException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from kafscale.errors import OperatingError
from kafscale.spark.sql.engine import error_message

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
    console = Console(stderr=True)
    with Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not (progress and console.is_terminal),
    ) as bar:
        task = bar.add_task(description, total=task_count)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                bar.update(task, completed=_completed_tasks(context, group))
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
