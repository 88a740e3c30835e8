"""The scrub job: reads and verifies all objects of a namespace while brokers keep working.

    listing       list objects, and find orphans
    task          verify checksums of segments, WAL objects and batches; records; indexes
    contiguity    check that offsets of segments and WAL are contiguous

Invariants: an object that is deleted in the meantime is no finding. `--repair` rebuilds missing and
damaged indexes and changes nothing else: only the owner of a partition replaces its segments.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from kafscale.errors import DamagedObjectError, UnknownTopicError
from kafscale.spark.jobs.scrub import contiguity
from kafscale.spark.jobs.scrub.listing import Finding, FindingKind, list_namespace
from kafscale.spark.jobs.scrub.task import CheckedSegment, plan_items, scrub_objects
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.spark.runtime.parallel_map import parallel_map
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB: Final = "scrub"
TASK_BYTES: Final = 128 * 1024 * 1024
"""About how many bytes a task reads."""


@dataclass(frozen=True, kw_only=True)
class ScrubSettings:
    """What to verify."""

    location: Location
    topics: tuple[str, ...] = ()
    """Topic names; empty for all topics and the WAL."""
    repair: bool = False
    """Whether to rebuild indexes."""


class ScrubReport(msgspec.Struct, frozen=True):
    """The result of a scrub."""

    summary: JobResult
    findings: tuple[Finding, ...] = ()

    def data(self) -> dict[str, object]:
        """Return the report as JSON data."""
        findings = [
            {
                "kind": str(each.kind),
                "object": each.key,
                "reason": each.reason,
                "topic": each.topic or None,
                "isDamage": each.is_damage,
                "isRepaired": each.is_repaired,
            }
            for each in self.findings
        ]
        return self.summary.data() | {"findings": findings}


def run(
    spark: "SparkSession",
    settings: ScrubSettings,
    *,
    clock: Callable[[], int],
    progress: bool = True,
) -> ScrubReport:
    """Verify everything, or some topics."""
    started_ms = clock()
    location, names = settings.location, frozenset(settings.topics)
    with location.open() as store:
        offset_map, findings = _build_offset_map(store, settings)
        listing = list_namespace(
            store, location.namespace, offset_map.catalog, started_ms, partial(_is_selected, names)
        )
        listed = {each.topic_partition[0] for each in listing.segments}
        for name in names - offset_map.catalog.keys() - listed:
            raise UnknownTopicError(f"there is no topic {name!r}")
        wal = [] if names else listing.wal
        results = parallel_map(
            spark,
            plan_items(listing.segments, wal, TASK_BYTES),
            partial(scrub_objects, location, started_ms, repair=settings.repair),
            description="verifying objects",
            progress=progress,
        )
        checked = [each for result in results for each in result.checked]
        findings += listing.findings
        findings += [each for result in results for each in result.findings]
        findings += contiguity.check_segments(store, location.namespace, checked)
        if gaps := contiguity.check_wal(offset_map):
            again, _ = _build_offset_map(store, settings)
            findings += [each for each in contiguity.check_wal(again) if each in gaps]
    facts = {
        "objects": listing.count,
        "walObjects": sum(result.wal_count for result in results),
        "seconds": (clock() - started_ms) / 1000,
    }
    return build_report(checked, findings, facts)


def build_report(
    checked: Sequence[CheckedSegment], findings: Sequence[Finding], facts: Mapping[str, Cell]
) -> ScrubReport:
    """Sum up the verified objects by topic."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    partitions = {each.topic_partition for each in checked}
    for topic, _ in partitions:
        totals[topic]["partitions"] += 1
    for each in checked:
        total = totals[each.topic_partition[0]]
        total["segments"] += 1
        total["records"] += each.record_count
        total["bytes"] += each.size_bytes
    for finding in findings:
        if finding.topic:
            totals[finding.topic]["damaged"] += finding.is_damage
            totals[finding.topic]["repaired"] += finding.is_repaired
    columns = ("partitions", "segments", "records", "bytes", "damaged", "repaired")
    summary = JobResult(
        JOB,
        ("topic", *columns),
        tuple((topic, *(totals[topic][name] for name in columns)) for topic in sorted(totals)),
        {
            "damaged": sum(each.is_damage for each in findings),
            "repaired": sum(each.is_repaired for each in findings),
            "orphans": sum(not (each.is_damage or each.is_repaired) for each in findings),
            **facts,
        },
        tuple(str(each) for each in findings if each.is_damage),
    )
    return ScrubReport(summary, tuple(findings))


def _build_offset_map(
    store: BlockingObjectStore, settings: ScrubSettings
) -> tuple[OffsetMap, list[Finding]]:
    """Return the offset map, or an empty one if the log is damaged, which the tasks report."""
    namespace = settings.location.namespace
    try:
        return list_bucket(store, namespace, settings.topics or None), []
    except DamagedObjectError as error:
        if error.key == object_keys.catalog_key(namespace):
            return OffsetMap({}), [Finding(FindingKind.CATALOG, error.key, error.reason)]
        return OffsetMap({}), []


def _is_selected(names: Collection[str], topic: str) -> bool:
    return not names or topic in names
