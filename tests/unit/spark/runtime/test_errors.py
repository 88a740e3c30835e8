"""Tests of errors of tasks and of Spark."""

import pickle

import pytest

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.spark.runtime.errors import TaskFailure, launch_reason, spark_reason


def round_trip(error: Exception) -> Exception:
    return pickle.loads(pickle.dumps(TaskFailure.of(error))).error()  # noqa: S301 - our own bytes.


def test_kafscale_errors_keep_their_class_and_message():
    error = round_trip(InvalidRequestError("no such topic"))
    assert type(error) is InvalidRequestError
    assert str(error) == "no such topic"


def test_errors_with_other_constructor_arguments():
    error = round_trip(DamagedObjectError("a.kfs", "its checksum is wrong"))
    assert isinstance(error, DamagedObjectError)
    assert (str(error), error.key) == ("a.kfs: its checksum is wrong", "a.kfs")


def test_other_errors_become_runtime_errors_with_a_traceback():
    with pytest.raises(KeyError) as raised:
        {}["absent"]
    error = round_trip(raised.value)
    assert type(error) is RuntimeError
    assert "KeyError: 'absent'" in str(error)
    assert "test_errors.py" in str(error)


SPARK_ERROR = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 5.0: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.spark.storage.TimeTrackingOutputStream.write(TimeTrackingOutputStream.java:59)
"""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (SPARK_ERROR, "Lost task 0.0 in stage 5.0: java.io.IOException: No space left on device"),
        (
            "An error occurred while calling o1.x.\n: java.lang.Error: no\n\tat a.b(C)",
            "java.lang.Error: no",
        ),
        ("one line", "one line"),
        ("", "RuntimeError"),
    ],
)
def test_spark_reason_is_the_message_without_the_stack_trace(message, reason):
    assert spark_reason(RuntimeError(message)) == reason


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            'WARNING: x\nException in thread "main" org.apache.spark.SparkException: No\n\tat a',
            "org.apache.spark.SparkException: No",
        ),
        ("Invalid maximum heap size\nError: Could not create", "Invalid maximum heap size"),
        ("env: bash: No such file or directory\n", "env: bash: No such file or directory"),
        ("", "it printed nothing"),
    ],
)
def test_launch_reason_is_the_first_error(output, reason):
    assert launch_reason(output) == reason
