"""Exceptions on their way from a task to the driver."""

import pickle

import pytest

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.spark.runtime.errors import TaskFailure, launch_reason, spark_reason


def travelled(error: Exception) -> Exception:
    return pickle.loads(pickle.dumps(TaskFailure.of(error))).error()  # noqa: S301 - our own bytes.


def test_our_errors_arrive_as_they_were_raised():
    error = travelled(InvalidRequestError("no such topic"))
    assert type(error) is InvalidRequestError
    assert str(error) == "no such topic"


def test_also_those_made_from_other_arguments():
    error = travelled(DamagedObjectError("a.kfs", "its checksum is wrong"))
    assert isinstance(error, DamagedObjectError)
    assert (str(error), error.key) == ("a.kfs: its checksum is wrong", "a.kfs")


def test_a_defect_arrives_with_its_place():
    with pytest.raises(KeyError) as raised:
        {}["absent"]
    error = travelled(raised.value)
    assert type(error) is RuntimeError
    assert "KeyError: 'absent'" in str(error)
    assert "test_errors.py" in str(error)


PAGES = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 5.0: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.spark.storage.TimeTrackingOutputStream.write(TimeTrackingOutputStream.java:59)
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (PAGES, "Lost task 0.0 in stage 5.0: java.io.IOException: No space left on device"),
        (
            "An error occurred while calling o1.x.\n: java.lang.Error: no\n\tat a.b(C)",
            "java.lang.Error: no",
        ),
        ("one line", "one line"),
        ("", "RuntimeError"),
    ],
)
def test_the_reason_is_taken_from_the_pages_that_spark_prints(said, reason):
    assert spark_reason(RuntimeError(said)) == reason


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            'WARNING: x\nException in thread "main" org.apache.spark.SparkException: No\n\tat a',
            "org.apache.spark.SparkException: No",
        ),
        ("Invalid maximum heap size\nError: Could not create", "Invalid maximum heap size"),
        ("env: bash: No such file or directory\n", "env: bash: No such file or directory"),
        ("", "it prints nothing"),
    ],
)
def test_the_first_complaint_tells_why_java_does_not_start(printed, reason):
    assert launch_reason(printed) == reason
