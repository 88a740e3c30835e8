"""Calls a function for each of many items, in parallel Spark tasks; collects queries with progress.

    results = parallel_map(spark, plans, partial(merge_one, location), description="merging")

Items and results are pickled and should be small. Invariants:

* Results are returned in the order of the items. `on_result` is called with each result once, as
  soon as it is known, in the thread of the caller, in the order of completion.
* Errors of Kafscale are raised as they were raised in the task. Errors that a retry may fix (an
  unavailable store, a lost machine) are retried `spark.task.maxFailures` times; a Spark on one
  machine does not retry.
* The first failure, an interrupt, or an error in `on_result` cancels the remaining tasks.

A task reports its results twice: through an accumulator, which Spark updates when the task ends,
and as its output. The output is returned; the accumulator serves progress and `on_result`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pyspark import AccumulatorParam, InheritableThread, TaskContext
from pyspark.errors import PySparkException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from kafscale.errors import KafscaleError, OperatingError
from kafscale.spark.runtime.errors import TaskFailure, error_message, spark_reason

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, Row, SparkSession

SLICES_MAX: Final = 1000
"""The default maximum number of tasks; each has an overhead of about 10 ms."""

POLL_S: Final = 0.1
"""The interval at which the caller polls for results."""

_LOCAL: Final = re.compile(r"local(\[[^,\]]+(,\s*(?P<attempts>\d+)\s*)?\])?")

Item = TypeVar("Item")
Result = TypeVar("Result")

_runs = count()


def parallel_map(
    spark: "SparkSession",
    items: Sequence[Item],
    function: Callable[[Item], Result],
    *,
    description: str,
    progress: bool | Console = True,
    on_result: Callable[[Result], None] | None = None,
    slices: int | None = None,
) -> list[Result]:
    """Call `function` for every item, in one task each, or in at most `slices` tasks."""
    if not items:
        return []
    context = spark.sparkContext
    reports: Accumulator[list[Any]] = context.accumulator([], _Lists())
    parts = min(len(items), slices or SLICES_MAX)
    attempts = _attempts(context)
    outcomes = context.parallelize(items, parts).mapPartitions(
        lambda part: _call(function, part, reports, attempts)
    )
    job = _Job(context, outcomes, description)
    try:
        with progress_bar(description, len(items), progress) as advance:
            for result in _succeeded(job.reported(reports)):
                advance()
                if on_result is not None:
                    on_result(result)
    except BaseException:
        job.cancel()
        raise
    finally:
        reports.value = []  # PySpark never frees accumulators.
    return list(_succeeded(job.outcomes))


def _succeeded(outcomes: Iterable[Result | TaskFailure]) -> Iterator[Result]:
    """Yield the results up to the first failure, which is raised."""
    for outcome in outcomes:
        if isinstance(outcome, TaskFailure):
            raise outcome.error()
        yield outcome


def _call(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    reports: "Accumulator[list[Any]]",
    attempts: int,
) -> Iterator[Result | TaskFailure]:
    """Run in a task: yield outcomes up to the first failure."""
    for item in items:
        outcome: Result | TaskFailure
        try:
            outcome = function(item)
        except Exception as error:
            if _is_retriable(error) and _attempt() < attempts:
                raise
            outcome = TaskFailure.of(error)
        reports.add([outcome])
        yield outcome
        if isinstance(outcome, TaskFailure):
            return


def _is_retriable(error: Exception) -> bool:
    """Whether another attempt may succeed."""
    return isinstance(error, OperatingError) or not isinstance(error, KafscaleError)


def _attempt() -> int:
    """Return the number of this attempt, counted from 1."""
    context = TaskContext.get()
    assert context is not None, "called outside of a task"
    return context.attemptNumber() + 1


def _attempts(context: "SparkContext") -> int:
    """Return how often Spark attempts a task."""
    if local := _LOCAL.fullmatch(str(context.master)):
        return int(local["attempts"] or 1)
    return int(context.getConf().get("spark.task.maxFailures", "4"))


class _Lists(AccumulatorParam[list[Any]]):
    """Concatenates lists in place."""

    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002 - Spark's signature.
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802
        value1.extend(value2)
        return value1


class _Job(Generic[Result]):
    """A Spark job in a background thread that can be cancelled."""

    def __init__(
        self, context: "SparkContext", rdd: "RDD[Result | TaskFailure]", description: str
    ) -> None:
        self.outcomes: list[Result | TaskFailure] = []
        self._context = context
        self._rdd = rdd
        self._description = description
        self._tag = f"kafscale-{next(_runs)}"
        self._error: Exception | None = None
        self._thread = InheritableThread(target=self._collect, daemon=True)

    def reported(self, reports: "Accumulator[list[Any]]") -> Iterator[Result | TaskFailure]:
        """Run the job and yield outcomes as reported; at the end `outcomes` has all, in order."""
        seen = 0
        self._thread.start()
        is_running = True
        while is_running:
            self._thread.join(POLL_S)
            is_running = self._thread.is_alive()
            new = reports.value[seen:]
            seen += len(new)
            yield from new
        if self._error is not None:
            raise OperatingError(
                f"{self._description}: Spark failed: {spark_reason(self._error)}"
            ) from self._error
        assert seen == len(self.outcomes), "every outcome is reported once"

    def cancel(self) -> None:
        """Cancel the job, and return when it has stopped."""
        while self._thread.is_alive():
            self._context.cancelJobsWithTag(self._tag)
            self._thread.join(POLL_S)

    def _collect(self) -> None:
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(interruptOnCancel=True)
        self._context.setJobDescription(self._description)
        try:
            self.outcomes = self._rdd.collect()
        except Exception as error:  # noqa: BLE001 - `reported` raises it.
            self._error = error


@contextmanager
def progress_bar(
    description: str, total: int, progress: bool | Console
) -> Iterator[Callable[..., None]]:
    """Show a progress bar if the console is a terminal; yield a function that advances it."""
    console = progress if isinstance(progress, Console) else Console(stderr=True)
    with Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not (progress and console.is_terminal),
    ) as bar:
        task = bar.add_task(description, total=total)
        yield partial(bar.advance, task)


def collect_with_progress(
    query: "DataFrame", *, description: str, task_count: int, progress: bool = True
) -> "list[Row]":
    """Return all rows of a query that runs as `task_count` tasks; an interrupt cancels it."""
    context = query.sparkSession.sparkContext
    group = f"kafscale-query-{next(_runs)}"
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
                thread.join(POLL_S)
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
