"""Work that is shared out: a function is called for each of many items, wherever Spark has room.

    results = parallel_map(spark, plans, partial(merge_one, location), description="merging")

Bytes are handled where the function runs; items and results are small, and pickled. The laws:

* Results are returned in the order of the items. `on_result` gets each as soon as it is known, in
  the caller's thread, once, in whatever order they come.
* What Kafscale raises on purpose comes back as it was raised. Whatever another attempt may mend
  (a store that fails, a machine that dies) is tried again as often as `spark.task.maxFailures`
  says, which for a Spark on one machine is not at all.
* The first failure, an interrupt, and an `on_result` that raises end the work: what still runs is
  cancelled.

A task reports its results twice: by an accumulator, which Spark hands on when the task is done, and
as its output. The output is what counts; the reports are for those who watch.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pyspark import AccumulatorParam, InheritableThread, TaskContext
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from kafscale.errors import KafscaleError, OperatingError
from kafscale.spark.runtime.errors import TaskFailure, spark_reason

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

SLICES_MAX: Final = 1000
"""How many tasks there are at most by default: each costs some 10 ms by itself."""

PAUSE_S: Final = 0.1
"""How long the caller waits before it looks for results again."""

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
    """Call `function` for every item, one a task, or in as many tasks as `slices` says."""
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
        with _bar(description, len(items), progress) as advance:
            for result in _succeeded(job.reported(reports)):
                advance()
                if on_result is not None:
                    on_result(result)
    except BaseException:
        job.cancel()
        raise
    finally:
        reports.value = []  # PySpark keeps accumulators for as long as it lives.
    return list(_succeeded(job.outcomes))


def _succeeded(outcomes: Iterable[Result | TaskFailure]) -> Iterator[Result]:
    """The outcomes, up to the first failure, which is raised."""
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
    """What a task does: outcomes one by one, up to the first that is a failure."""
    for item in items:
        outcome: Result | TaskFailure
        try:
            outcome = function(item)
        except Exception as error:
            if _is_mendable(error) and _attempt() < attempts:
                raise
            outcome = TaskFailure.of(error)
        reports.add([outcome])
        yield outcome
        if isinstance(outcome, TaskFailure):
            return


def _is_mendable(error: Exception) -> bool:
    """Whether another attempt may succeed, as far as can be known."""
    return isinstance(error, OperatingError) or not isinstance(error, KafscaleError)


def _attempt() -> int:
    """Which attempt at its task this is, counted from 1."""
    context = TaskContext.get()
    assert context is not None, "it is called in tasks only"
    return context.attemptNumber() + 1


def _attempts(context: "SparkContext") -> int:
    """How often Spark tries a task."""
    if local := _LOCAL.fullmatch(str(context.master)):
        return int(local["attempts"] or 1)
    return int(context.getConf().get("spark.task.maxFailures", "4"))


class _Lists(AccumulatorParam[list[Any]]):
    """Adds lists up to one that grows in place."""

    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002 - what Spark calls for.
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802
        value1.extend(value2)
        return value1


class _Job(Generic[Result]):
    """A computation that runs beside the caller, and can be cancelled."""

    def __init__(
        self, context: "SparkContext", work: "RDD[Result | TaskFailure]", description: str
    ) -> None:
        self.outcomes: list[Result | TaskFailure] = []
        self._context = context
        self._work = work
        self._description = description
        self._tag = f"kafscale-{next(_runs)}"
        self._problem: Exception | None = None
        self._thread = InheritableThread(target=self._collect, daemon=True)

    def reported(self, reports: "Accumulator[list[Any]]") -> Iterator[Result | TaskFailure]:
        """Run; outcomes as they are reported. In the end, `outcomes` has them all, in order."""
        seen = 0
        self._thread.start()
        is_running = True
        while is_running:
            self._thread.join(PAUSE_S)
            is_running = self._thread.is_alive()
            news = reports.value[seen:]
            seen += len(news)
            yield from news
        if self._problem is not None:
            raise OperatingError(
                f"{self._description}: Spark gave up: {spark_reason(self._problem)}"
            ) from self._problem
        assert seen == len(self.outcomes), "every outcome is reported once"

    def cancel(self) -> None:
        """Return when nothing of it runs any more, even if it has hardly begun."""
        while self._thread.is_alive():
            self._context.cancelJobsWithTag(self._tag)
            self._thread.join(PAUSE_S)

    def _collect(self) -> None:
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(interruptOnCancel=True)
        self._context.setJobDescription(self._description)
        try:
            self.outcomes = self._work.collect()
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it.
            self._problem = error


@contextmanager
def _bar(description: str, total: int, progress: bool | Console) -> Iterator[Callable[[], None]]:
    """A bar on standard error or a console, if that is a terminal; what moves it on by one."""
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
        yield lambda: bar.advance(task)
