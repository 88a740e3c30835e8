"""Tests of errors of tasks, and of the reasons in errors of Spark."""

import pickle

import pytest

from kafscale.errors import DamagedObjectError, InvalidRequestError
from kafscale.spark.runtime.errors import (
    TaskFailure,
    error_message,
    launch_reason,
    missing_table,
    spark_reason,
)


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


class FakeSparkError(Exception):
    """An exception like those of PySpark."""

    def __init__(self, text, condition=None, **parameters):
        super().__init__(text)
        self.text = text
        self.condition = condition
        self.parameters = parameters

    def getMessage(self):  # noqa: N802 - PySpark's name.
        return self.text.partition("; line")[0]

    def getCondition(self):  # noqa: N802
        return self.condition

    def getMessageParameters(self):  # noqa: N802
        return self.parameters


SYNTAX = """
[PARSE_SYNTAX_ERROR] Syntax error at or near 'orders'. SQLSTATE: 42601 (line 1, pos 20)

== SQL ==
select count(*) frm orders
--------------------^^^
"""
COLUMN = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. Did you
mean `y`? SQLSTATE: 42703; line 2 pos 7;
'Project ['x]
+- Relation
"""
DIVISION = """[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 1, position 8) ==
select 1/0
"""
OURS = """Job aborted due to stage failure: Task 0 in stage 1.0 failed
  File "batches.py", line 99, in read
kafscale.errors.base.OffsetOutOfRangeError: offsets 1 to 2 of orders/0 are gone
	at org.apache.spark.api.python.BasePythonRunner
"""


@pytest.mark.parametrize(
    ("text", "condition", "expected"),
    [
        (SYNTAX, "PARSE_SYNTAX_ERROR", "Syntax error at or near 'orders'. (line 1, position 21)"),
        (
            COLUMN,
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "A column with name `x` cannot be resolved. Did you mean `y`? (line 2, position 8)",
        ),
        (DIVISION, "DIVIDE_BY_ZERO", "Division by zero. (line 1, position 8)"),
        (OURS, None, "offsets 1 to 2 of orders/0 are gone"),
        ("something else", None, "something else"),
    ],
)
def test_error_message_keeps_message_and_position(text, condition, expected):
    assert error_message(FakeSparkError(text, condition)) == expected


def test_missing_table_returns_the_name_parts():
    missing = "TABLE_OR_VIEW_NOT_FOUND"
    assert missing_table(FakeSparkError("", missing, relationName="`orders`")) == ["orders"]
    assert missing_table(FakeSparkError("", missing, relationName="`a`.`b``c`")) == ["a", "b`c"]
    in_catalog = "`spark_catalog`.`default`.`orders`"
    assert missing_table(FakeSparkError("", missing, relationName=in_catalog)) == ["orders"]
    several = "REQUIRES_SINGLE_PART_NAMESPACE"
    assert missing_table(FakeSparkError("", several, identifier="`a`.`b`.`c`")) == ["a", "b", "c"]
    assert missing_table(FakeSparkError("", "DIVIDE_BY_ZERO")) is None
