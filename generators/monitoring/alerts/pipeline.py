"""Alerts about Spark jobs, from their run records."""

from typing import Final

from generators.monitoring.alerts.rule import Alert, RuleGroup, Severity
from generators.monitoring.promql import equals, increase, max_by, min_by, selector, sum_by

_JOB_LABELS: Final = ("job", "topic")
_JOB: Final = "job {{ $labels.job }} of {{ $labels.topic }}"
_ENDED: Final = "kafscale_pipeline_last_run_timestamp_seconds"
_WRITTEN: Final = sum_by(
    increase(selector("kafscale_produce_requests_total", equals("status", "success")), "1h"),
    "topic",
)
STALE_S: Final = 6 * 3600
IDLE_S: Final = 2 * 86_400

PIPELINE: Final = RuleGroup(
    "kafscale-pipeline",
    (
        Alert(
            name="KafscalePipelineFailed",
            severity=Severity.WARNING,
            measured=min_by("kafscale_pipeline_last_run_success", *_JOB_LABELS),
            condition="== 0",
            duration="5m",
            summary=f"The last run of {_JOB} failed.",
            description="Its work is not done; the next run continues where the last successful "
            "one ended.",
        ),
        Alert(
            name="KafscalePipelineStale",
            severity=Severity.WARNING,
            measured=max_by("kafscale_pipeline_freshness_seconds", *_JOB_LABELS),
            condition=f"> {STALE_S} and on (topic) {_WRITTEN} > 0",
            duration="30m",
            summary=f"The newest record of {_JOB} is {{{{ $value | humanizeDuration }}}} old, "
            "although producers write newer ones.",
            description="Readers of its tables and copies see data that is at least six hours "
            "old: the job does not run, fails, or is too slow.",
        ),
        Alert(
            name="KafscalePipelineNotRunning",
            severity=Severity.WARNING,
            measured=f"time() - {max_by(_ENDED, *_JOB_LABELS)}",
            condition=f"> {IDLE_S} and {max_by(f'changes({_ENDED}[7d])', *_JOB_LABELS)} > 2",
            duration="30m",
            summary=f"The last run of {_JOB} ended {{{{ $value | humanizeDuration }}}} ago.",
            description="It ran several times within the last week, but not for two days.",
        ),
    ),
)
