"""Jobs of the data pipeline, and what they left behind."""

from typing import Literal

from kafscale.console.schema.base import View


class Run(View):
    job: str
    topics: list[str]
    started_at_ms: int
    ended_at_ms: int | None
    outcome: Literal["running", "succeeded", "failed"]
    error: str | None
    records_in: int | None
    records_out: int | None
    size_bytes: int | None
    newest_timestamp_ms: int | None
    details: dict[str, str | int | float | None]


class Job(View):
    job: str
    last: Run
    success_rate: float
    freshness_ms: int | None
    """How old the newest record is that it has handled."""
    runs: list[Run]
    """The newest first, at most 50."""


class TopicCost(View):
    topic: str
    stored_bytes: int
    record_count: int | None
    cost_per_day: float


class CostReport(View):
    made_at_ms: int
    total_per_day: float
    currency: str
    topics: list[TopicCost]


class Pipeline(View):
    jobs: list[Job]
    cost: CostReport | None
    problem: str | None
