"""The lake job without Spark, and ways to end it."""

from collections.abc import Callable, Sequence
from typing import Any

from kafscale.spark.jobs.lake.job import Lake
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.source.subscription import Subscription
from unit.spark.jobs.lake_log import LakeLog
from unit.spark.jobs.lake_tables import Tables

NOW_MS = 1_700_000_100_000


class Killed(BaseException):
    """What a test does to a process: nothing may catch it."""


def inline(items: Sequence[Any], function: Callable[[Any], Any], *, description: str) -> list[Any]:
    assert description
    return [function(item) for item in items]


def job(log: LakeLog, tables: Tables, topics: str = "orders", **how: Any) -> Lake:
    """A job that ends when it has caught up; its tasks and commits are small."""
    checkpoint = how.pop("checkpoint", lambda _step: None)
    tables.checkpoint = checkpoint
    settings = LakeSettings(
        location=log.location,
        subscription=Subscription.to_topics(topics),
        **({"is_once": True, "commit_records_max": 20, "task_bytes": 300} | how),
    )
    return Lake(settings, tables, inline, checkpoint=checkpoint, clock=lambda: NOW_MS)


def killer(count: int) -> Callable[[str], None]:
    """Ends everything at the step of this number, counted from 1."""
    left = [count]

    def step(_name: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return step
