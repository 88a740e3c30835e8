"""Pipeline jobs: their runs, the freshness of their results, and the cost report."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.admin import jobs as admin_jobs
from kafscale.aio.clock import clock
from kafscale.console.api.route import ApiContext, ApiRequest, Route
from kafscale.console.schema.cluster import CostReport, Job, Pipeline, Run
from kafscale.errors import KafscaleError
from kafscale.storage.job_runs import JobRun

TOPICS_MAX: Final = 100
"""How many topics of a run and of a cost report are shown, the most expensive first."""


async def show(context: ApiContext, _: ApiRequest) -> Pipeline:
    try:
        runs = await context.job_runs.by_job()
    except TimeoutError:
        return Pipeline(jobs=[], cost=None, problem="timed out reading the run records of jobs")
    except KafscaleError as error:
        return Pipeline(jobs=[], cost=None, problem=str(error))
    jobs = [_job(name, job_runs, clock()) for name, job_runs in runs.items() if job_runs]
    return Pipeline(jobs=jobs, cost=_cost(admin_jobs.cost_report(runs)), problem=None)


def _job(name: str, runs: Sequence[JobRun], now_ms: int) -> Job:
    newest_ms = admin_jobs.newest_record_ms(runs)
    shown = [_run(run) for run in runs]
    return Job(
        job=name,
        last=shown[0],
        success_rate=admin_jobs.success_rate(runs),
        freshness_ms=None if newest_ms is None else max(now_ms - newest_ms, 0),
        runs=shown,
    )


def _run(run: JobRun) -> Run:
    shown = {name: getattr(run, name) for name in Run.__struct_fields__}
    shown["topics"] = list(run.topics[:TOPICS_MAX])
    return Run(**shown | {"outcome": run.outcome.value, "error": run.error or None})


def _cost(report: CostReport | None) -> CostReport | None:
    if report is None:
        return None
    return msgspec.structs.replace(report, topics=report.topics[:TOPICS_MAX])


ROUTES: Final = (Route("GET", "/pipeline", show, response=Pipeline),)
