"""`/metrics` of the console: the results of pipeline jobs, which no broker knows.

If the bucket cannot be read, the response is 503.
"""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from kafscale.admin import jobs
from kafscale.aio.clock import clock
from kafscale.console.http.security_headers import NO_STORE
from kafscale.console.monitor.job_runs import JobRunCache
from kafscale.errors import ConfigError, KafscaleError
from kafscale.observability.metrics.jobs import PipelineStatus, exposition
from kafscale.observability.metrics.text_format import CONTENT_TYPE


async def metrics(runs: JobRunCache, _: Request) -> Response:
    try:
        by_job = await runs.by_job()
    except ConfigError:
        by_job = {}  # There is no bucket to read, so no job has run.
    except (KafscaleError, TimeoutError):
        return PlainTextResponse("cannot read the records of jobs\n", status_code=503)
    text = exposition(PipelineStatus.of(clock(), jobs.last_runs(by_job)))
    return Response(text, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": NO_STORE})
