"""Namespaces to scrub, and scrubbing without Spark."""

from functools import partial
from typing import Any

from kafscale.spark.jobs.scrub import contiguity, job
from kafscale.spark.jobs.scrub import listing as scrub_listing
from kafscale.spark.jobs.scrub.findings import Finding, Kind
from kafscale.spark.jobs.scrub.task import items_of, scrub_one
from kafscale.spark.plan.offset_map import CatalogTopic
from kafscale.storage.objects.blocking import BlockingObjectStore
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.stored_log import NAMESPACE, TOPIC, TOPIC_ID

NOW_MS = 1_760_000_000_000
"""Later than anything that is stored."""

KNOWN = {TOPIC: CatalogTopic(TOPIC, TOPIC_ID, 1)}


def scrubbed(
    location: MemoryLocation,
    store: BlockingObjectStore,
    *,
    now_ms: int = NOW_MS,
    repair: bool = False,
    known: Any = None,
    topics: tuple[str, ...] = (),
    bytes_max: int = 1000,
) -> job.ScrubReport:
    """What a scrub says, each task in turn."""
    listing = scrub_listing.look(
        store, NAMESPACE, KNOWN if known is None else known, now_ms, partial(job._is_wanted, topics)
    )
    wal = [(item.key, item.size_bytes) for item in listing.wal]
    results = [
        scrub_one(location, now_ms, item, repair=repair)
        for item in items_of(listing.segments, wal, bytes_max)
    ]
    checked = [each for result in results for each in result.checked]
    findings = [*listing.findings, *(each for result in results for each in result.findings)]
    findings += contiguity.holes(store, NAMESPACE, checked)
    return job.report(checked, findings, {})


def kinds(report: job.ScrubReport) -> list[tuple[Kind, str]]:
    return [(each.kind, each.key) for each in report.findings]


def only(report: job.ScrubReport) -> Finding:
    [finding] = report.findings
    return finding
