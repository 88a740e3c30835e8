"""Tests of the reduction of Spark's errors to one sentence."""

import pytest

from kafscale.spark.sql.engine import error_message, missing_table


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
