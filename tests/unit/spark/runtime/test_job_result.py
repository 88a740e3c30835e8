"""Tests of job results."""

import json

import pytest

from kafscale.spark.runtime.job_result import JobResult


def test_data_is_a_json_document():
    result = JobResult(
        "scrub",
        ("topic", "partition", "readBytes"),
        (("orders", 0, 2048), ("orders", 1, None)),
        {"seconds": 1.5, "whole": False},
        ("orders-1: segment-7.kfs is damaged",),
    )
    assert json.loads(json.dumps(result.data())) == {
        "job": "scrub",
        "seconds": 1.5,
        "whole": False,
        "rows": [
            {"topic": "orders", "partition": 0, "readBytes": 2048},
            {"topic": "orders", "partition": 1, "readBytes": None},
        ],
        "problems": ["orders-1: segment-7.kfs is damaged"],
    }


def test_rows_need_a_cell_for_every_column():
    with pytest.raises(AssertionError):
        JobResult("scrub", ("topic", "partition"), (("orders",),))
