"""Alerts about jobs of the data pipeline, by the records of their runs."""

from typing import Final

from kafscale.monitoring.alerts.rule import Alert, Group, Severity
from kafscale.monitoring.promql import equals, increase, largest, series, smallest, total

_PLACE: Final = ("job", "topic")
_NAMED: Final = "{{ $labels.job }} of {{ $labels.topic }}"
_ENDED: Final = "kafscale_pipeline_last_run_timestamp_seconds"
_WRITTEN: Final = total(
    increase(series("kafscale_produce_requests_total", equals("status", "success")), "1h"), "topic"
)
STALE_S: Final = 6 * 3600
IDLE_S: Final = 2 * 86_400

PIPELINE: Final = Group(
    "kafscale-pipeline",
    (
        Alert(
            name="KafscalePipelineFailed",
            severity=Severity.WARNING,
            measured=smallest("kafscale_pipeline_last_run_success", *_PLACE),
            bad="== 0",
            lasts="5m",
            summary=f"The last run of {_NAMED} failed.",
            description="What it was to do is not done; its next run goes on where the last good "
            "one ended.",
        ),
        Alert(
            name="KafscalePipelineStale",
            severity=Severity.WARNING,
            measured=largest("kafscale_pipeline_freshness_seconds", *_PLACE),
            bad=f"> {STALE_S} and on (topic) {_WRITTEN} > 0",
            lasts="30m",
            summary=f"The newest record in {_NAMED} is {{{{ $value | humanizeDuration }}}} old, "
            "though newer ones are written.",
            description="Readers of tables and copies see the state of six hours ago or more: "
            "the job does not run, fails, or does not keep up.",
        ),
        Alert(
            name="KafscalePipelineNotRunning",
            severity=Severity.WARNING,
            measured=f"time() - {largest(_ENDED, *_PLACE)}",
            bad=f"> {IDLE_S} and {largest(f'changes({_ENDED}[7d])', *_PLACE)} > 2",
            lasts="30m",
            summary=f"Nobody has run {_NAMED} for {{{{ $value | humanizeDuration }}}}.",
            description="It used to run regularly: several times within the last week, and not "
            "once for two days.",
        ),
    ),
)
