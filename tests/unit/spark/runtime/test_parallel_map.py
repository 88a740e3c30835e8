"""Tests of `parallel_map` without Spark; tests/e2e/spark runs it on Spark."""

from types import SimpleNamespace

import pytest
from pyspark import SparkConf, TaskContext
from rich.console import Console

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.spark.runtime import parallel_map
from kafscale.spark.runtime.errors import TaskFailure


class FakeAccumulator:
    """Acts like an accumulator in a task."""

    def __init__(self):
        self.value = []

    def add(self, more):
        self.value += more


def context(master, **settings):
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name.replace("_", "."), value)
    return SimpleNamespace(master=master, getConf=lambda: conf)


@pytest.fixture
def attempt():
    """Set the number of the current attempt."""

    def set_to(number):
        task = TaskContext()
        task._attemptNumber = number - 1
        TaskContext._setTaskContext(task)

    yield set_to
    TaskContext._setTaskContext(None)


def fail_at_3(error):
    def function(item):
        if item == 3:
            raise error
        return item * 10

    return function


@pytest.mark.parametrize(
    ("master", "settings", "attempts"),
    [
        ("local", {}, 1),
        ("local[*]", {}, 1),
        ("local[2]", {"spark_task_maxFailures": "7"}, 1),
        ("local[2, 3]", {}, 3),
        ("local-cluster[2,1,1024]", {}, 4),
        ("yarn", {}, 4),
        ("spark://head:7077", {"spark_task_maxFailures": "7"}, 7),
    ],
)
def test_number_of_attempts(master, settings, attempts):
    assert parallel_map._attempts(context(master, **settings)) == attempts


def test_a_task_reports_its_results():
    reports = FakeAccumulator()
    assert list(parallel_map._call(lambda item: item * 10, [1, 2], reports, 1)) == [10, 20]
    assert reports.value == [10, 20]


def test_permanent_errors_are_not_retried(attempt):
    attempt(1)
    reports = FakeAccumulator()
    outcomes = list(parallel_map._call(fail_at_3(InvalidRequestError("no")), [2, 3, 4], reports, 4))
    assert outcomes[0] == 20
    assert isinstance(outcomes[1], TaskFailure)
    assert len(outcomes) == 2
    assert reports.value == outcomes


@pytest.mark.parametrize("error", [DamagedObjectError("a.kfs", "no"), OSError("no route")])
def test_retriable_errors_are_raised_until_the_last_attempt(attempt, error):
    attempt(3)
    with pytest.raises(type(error)):
        list(parallel_map._call(fail_at_3(error), [3], FakeAccumulator(), 4))
    attempt(4)
    (outcome,) = parallel_map._call(fail_at_3(error), [3], FakeAccumulator(), 4)
    assert isinstance(outcome, TaskFailure)


def test_no_items_need_no_spark():
    assert parallel_map.parallel_map(None, [], print, description="nothing") == []


def test_progress_bar_is_shown_on_terminals_only(tmp_path):
    with (tmp_path / "terminal").open("w+") as file:
        console = Console(file=file, force_terminal=True, width=80)
        with parallel_map.progress_bar("merging", 3, console) as advance:
            advance()
        file.seek(0)
        assert "merging" in file.read()
    with (tmp_path / "pipe").open("w+") as file:
        with parallel_map.progress_bar("merging", 3, Console(file=file)) as advance:
            advance()
        file.seek(0)
        assert file.read() == ""
