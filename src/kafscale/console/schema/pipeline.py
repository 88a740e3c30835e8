"""Pipeline jobs and their results."""

from typing import Literal

from kafscale.console.schema.base import ResponseModel


class Run(ResponseModel):
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


class Job(ResponseModel):
    job: str
    last: Run
    success_rate: float
    freshness_ms: int | None
    """The age of the newest record that the job has processed."""
    runs: list[Run]
    """Newest first, at most 50."""


class TopicCost(ResponseModel):
    topic: str
    stored_bytes: int
    record_count: int | None
    cost_per_day: float


class CostReport(ResponseModel):
    made_at_ms: int
    total_per_day: float
    currency: str
    topics: list[TopicCost]


class Pipeline(ResponseModel):
    jobs: list[Job]
    cost: CostReport | None
    problem: str | None
