"""What jobs say when they are done."""

import json

import pytest

from kafscale.spark.runtime.job_result import JobResult


def test_it_is_one_document_for_programs():
    summary = JobResult(
        "scrub",
        ("topic", "partition", "readBytes"),
        (("orders", 0, 2048), ("orders", 1, None)),
        {"seconds": 1.5, "whole": False},
        ("orders-1: segment-7.kfs is damaged",),
    )
    assert json.loads(json.dumps(summary.data())) == {
        "job": "scrub",
        "seconds": 1.5,
        "whole": False,
        "rows": [
            {"topic": "orders", "partition": 0, "readBytes": 2048},
            {"topic": "orders", "partition": 1, "readBytes": None},
        ],
        "problems": ["orders-1: segment-7.kfs is damaged"],
    }


def test_every_column_has_a_cell():
    with pytest.raises(AssertionError):
        JobResult("scrub", ("topic", "partition"), (("orders",),))
