"""Scrubs a namespace without Spark."""

from functools import partial
from typing import Any

from kafscale.spark.jobs.scrub import contiguity, job
from kafscale.spark.jobs.scrub.listing import Finding, FindingKind, list_namespace
from kafscale.spark.jobs.scrub.task import plan_items, scrub_objects
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.topic_catalog import CatalogTopic
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.stored_log import NAMESPACE, TOPIC, TOPIC_ID

NOW_MS = 1_760_000_000_000
"""Later than all objects."""

KNOWN = {TOPIC: CatalogTopic(TOPIC, TOPIC_ID.hex(), 1)}


def scrub(
    location: MemoryLocation,
    store: BlockingObjectStore,
    *,
    now_ms: int = NOW_MS,
    repair: bool = False,
    known: Any = None,
    topics: tuple[str, ...] = (),
    bytes_max: int = 1000,
) -> job.ScrubReport:
    """Scrub, one task after the other."""
    known = KNOWN if known is None else known
    listing = list_namespace(store, NAMESPACE, known, now_ms, partial(job._is_selected, topics))
    results = [
        scrub_objects(location, now_ms, item, repair=repair)
        for item in plan_items(listing.segments, listing.wal, bytes_max)
    ]
    checked = [each for result in results for each in result.checked]
    findings = [*listing.findings, *(each for result in results for each in result.findings)]
    findings += contiguity.check_segments(store, NAMESPACE, checked)
    return job.build_report(checked, findings, {})


def kinds(report: job.ScrubReport) -> list[tuple[FindingKind, str]]:
    return [(each.kind, each.key) for each in report.findings]


def only(report: job.ScrubReport) -> Finding:
    [finding] = report.findings
    return finding
