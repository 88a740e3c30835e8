"""`scrub`: everything in a namespace is read and proven, in parallel, while brokers go on.

    listing       what there is, and what belongs to nobody
    tasks         checksums of segments, WAL objects and each batch; records; indexes
    contiguity    whether segments, and the WAL, follow each other

The laws: what vanishes meanwhile is no finding. `--repair` makes lost and damaged indexes anew, and
touches nothing else: a segment is what its owner says.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from kafscale.errors import DamagedObjectError, UnknownTopicError
from kafscale.spark.jobs.scrub import contiguity
from kafscale.spark.jobs.scrub import listing as scrub_listing
from kafscale.spark.jobs.scrub.findings import Finding, Kind
from kafscale.spark.jobs.scrub.task import Checked, items_of, scrub_one
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.spark.runtime.parallel_map import parallel_map
from kafscale.spark.source.location import Location
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB: Final = "scrub"
TASK_BYTES: Final = 128 * 1024 * 1024
"""How much a task reads, roughly."""


@dataclass(frozen=True, kw_only=True)
class ScrubSettings:
    """What to check."""

    location: Location
    topics: tuple[str, ...] = ()
    """Their names; none is everything, the WAL included."""
    repair: bool = False
    """Whether indexes are made anew."""


class ScrubReport(msgspec.Struct, frozen=True):
    """What a scrub says."""

    summary: JobResult
    findings: tuple[Finding, ...] = ()

    def data(self) -> dict[str, object]:
        """The report for programs."""
        told = [
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
        return self.summary.data() | {"findings": told}


def run(
    spark: "SparkSession",
    settings: ScrubSettings,
    *,
    clock: Callable[[], int],
    progress: bool = True,
) -> ScrubReport:
    """Check everything, or some topics."""
    began_ms = clock()
    location, names = settings.location, frozenset(settings.topics)
    with location.open() as store:
        found, findings = _survey(store, settings)
        listing = scrub_listing.look(
            store, location.namespace, found.catalog, began_ms, partial(_is_wanted, names)
        )
        for name in names - found.catalog.keys() - {each.place[0] for each in listing.segments}:
            raise UnknownTopicError(f"there is no topic {name!r}")
        wal = [] if names else [(item.key, item.size_bytes) for item in listing.wal]
        results = parallel_map(
            spark,
            items_of(listing.segments, wal, TASK_BYTES),
            partial(scrub_one, location, began_ms, repair=settings.repair),
            description="checking objects",
            progress=progress,
        )
        checked = [each for result in results for each in result.checked]
        findings += listing.findings
        findings += [each for result in results for each in result.findings]
        findings += contiguity.holes(store, location.namespace, checked)
        if wal_holes := contiguity.wal_holes(found):
            again, _ = _survey(store, settings)
            findings += [each for each in contiguity.wal_holes(again) if each in wal_holes]
    facts = {
        "objects": listing.count,
        "walObjects": sum(result.wal_count for result in results),
        "seconds": (clock() - began_ms) / 1000,
    }
    return report(checked, findings, facts)


def report(
    checked: Sequence[Checked], findings: Sequence[Finding], facts: Mapping[str, Cell]
) -> ScrubReport:
    """What is told of objects that were checked."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    partitions = {each.place for each in checked}
    for topic, _ in partitions:
        totals[topic]["partitions"] += 1
    for each in checked:
        total = totals[each.place[0]]
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


def _survey(store: BlockingObjectStore, settings: ScrubSettings) -> tuple[OffsetMap, list[Finding]]:
    """A map, as far as one can be made; where the log is damaged, the tasks find out."""
    namespace = settings.location.namespace
    try:
        return list_bucket(store, namespace, settings.topics or None), []
    except DamagedObjectError as error:
        if error.key == object_keys.catalog_key(namespace):
            return OffsetMap({}), [Finding(Kind.CATALOG, error.key, error.reason)]
        return OffsetMap({}), []


def _is_wanted(names: Collection[str], topic: str) -> bool:
    return not names or topic in names
