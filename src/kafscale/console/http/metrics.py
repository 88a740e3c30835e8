"""`/metrics`: what the console knows and no broker does, which is how jobs of the pipeline went.

Where the bucket cannot be read there is nothing to tell, and that is said by the status.
"""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from kafscale.admin import jobs
from kafscale.console.http.security_headers import NEVER_KEPT
from kafscale.console.monitor.job_runs import RecentRuns
from kafscale.errors import ConfigError, KafscaleError
from kafscale.observability.metrics.jobs import PipelineStatus, exposition
from kafscale.observability.metrics.text_format import CONTENT_TYPE
from kafscale.text.formatting import clock


async def metrics(runs: RecentRuns, _: Request) -> Response:
    try:
        found = await runs.by_job()
    except ConfigError:
        found = {}  # There are no records where this console could look, so that no job has run.
    except (KafscaleError, TimeoutError):
        return PlainTextResponse("the records of jobs cannot be read\n", status_code=503)
    told = exposition(PipelineStatus.of(clock(), jobs.last_runs(found)))
    return Response(told, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": NEVER_KEPT})
