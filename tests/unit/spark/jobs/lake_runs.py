"""Runs the lake job without Spark, and kills it."""

from collections.abc import Callable, Sequence
from typing import Any

from kafscale.spark.jobs.lake.job import LakeJob
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.source.subscription import Subscription
from unit.spark.jobs.lake_log import LakeLog
from unit.spark.jobs.lake_tables import Tables

NOW_MS = 1_700_000_100_000


class Killed(BaseException):
    """Stands for the death of a process: nothing may catch it."""


def inline(items: Sequence[Any], function: Callable[[Any], Any], *, description: str) -> list[Any]:
    assert description
    return [function(item) for item in items]


def job(log: LakeLog, tables: Tables, topics: str = "orders", **options: Any) -> LakeJob:
    """Create a job that stops when it has caught up; its tasks and commits are small."""
    on_step = options.pop("on_step", lambda _step: None)
    tables.checkpoint = on_step
    settings = LakeSettings(
        location=log.location,
        subscription=Subscription.to_topics(topics),
        **({"is_once": True, "commit_records_max": 20, "task_bytes": 300} | options),
    )
    return LakeJob(settings, tables, inline, on_step=on_step, clock=lambda: NOW_MS)


def killer(count: int) -> Callable[[str], None]:
    """Return a callback that raises `Killed` at the step of this number, counted from 1."""
    remaining = [count]

    def step(_name: str) -> None:
        remaining[0] -= 1
        if not remaining[0]:
            raise Killed

    return step
