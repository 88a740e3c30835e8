"""The parts of shared-out work that need no Spark; the rest is in the tests of Spark."""

from types import SimpleNamespace

import pytest
from pyspark import SparkConf, TaskContext
from rich.console import Console

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.spark.runtime import parallel_map
from kafscale.spark.runtime.errors import TaskFailure


class Reports:
    """What an accumulator is to a task."""

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
    """Makes this process look like one that runs a task for the n-th time."""

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
def test_spark_tries_tasks_so_often(master, settings, attempts):
    assert parallel_map._attempts(context(master, **settings)) == attempts


def test_a_task_reports_all_that_it_returns():
    reports = Reports()
    assert list(parallel_map._call(lambda item: item * 10, [1, 2], reports, 1)) == [10, 20]
    assert reports.value == [10, 20]


def test_what_cannot_be_mended_is_final_at_once(attempt):
    attempt(1)
    reports = Reports()
    outcomes = list(parallel_map._call(fail_at_3(InvalidRequestError("no")), [2, 3, 4], reports, 4))
    assert outcomes[0] == 20
    assert isinstance(outcomes[1], TaskFailure)
    assert len(outcomes) == 2
    assert reports.value == outcomes


@pytest.mark.parametrize("error", [DamagedObjectError("a.kfs", "no"), OSError("no route")])
def test_what_may_be_mended_is_raised_but_for_the_last_time(attempt, error):
    attempt(3)
    with pytest.raises(type(error)):
        list(parallel_map._call(fail_at_3(error), [3], Reports(), 4))
    attempt(4)
    (outcome,) = parallel_map._call(fail_at_3(error), [3], Reports(), 4)
    assert isinstance(outcome, TaskFailure)


def test_nothing_to_do_needs_no_spark():
    assert parallel_map.parallel_map(None, [], print, description="nothing") == []


def test_a_terminal_gets_a_bar_and_nothing_else_does(tmp_path):
    with (tmp_path / "terminal").open("w+") as file:
        console = Console(file=file, force_terminal=True, width=80)
        with parallel_map._bar("merging", 3, console) as advance:
            advance()
        file.seek(0)
        assert "merging" in file.read()
    with (tmp_path / "pipe").open("w+") as file:
        with parallel_map._bar("merging", 3, Console(file=file)) as advance:
            advance()
        file.seek(0)
        assert file.read() == ""
