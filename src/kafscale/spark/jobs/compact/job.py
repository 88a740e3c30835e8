"""`compact`: the latest record of each key, for topics whose `cleanup.policy` says so.

    choose     which partitions are worth it, and up to where          `compaction_plan`
    keys       where the newest record of each key is                  `shuffling`
    stage      segments are rewritten without what is obsolete         `rewriting`
    swap       their owners swap them in, in the order of the log      `swapping`

The laws: offsets stay what they are, and so does every record that is the newest of its key, or has
none; marks of deletion stay for `delete.retention.ms` after they were first met; what is younger
than `min.compaction.lag.ms`, or not in a segment yet, is not touched.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING

from kafscale.config.sections.security import ClientTls
from kafscale.errors import InvalidRequestError
from kafscale.spark.jobs.compact import checkpoints
from kafscale.spark.jobs.compact.candidates import Candidate, cleanable_end, is_due
from kafscale.spark.jobs.compact.cleanup_policy import Policy
from kafscale.spark.jobs.compact.dirty_ratio import dirty_since_ms, head_start
from kafscale.spark.jobs.compact.key_hash import SECRET_BYTES
from kafscale.spark.jobs.compact.rewrite import JOB, rewrite_one
from kafscale.spark.jobs.compact.run_plan import CompactionPlan
from kafscale.spark.jobs.compact.shuffle import survivors
from kafscale.spark.jobs.merge.grouping import check_known
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.segment_install import Installer, nowhere
from kafscale.spark.jobs.shared.staging import Skipped
from kafscale.spark.jobs.shared.swapping import Outcome, outdated, problems
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.runtime.job_result import JobResult
from kafscale.spark.source.location import Location
from kafscale.storage.objects.blocking import BlockingObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class CompactSettings:
    """What to compact."""

    location: Location
    control: tuple[str, ...]
    """Addresses of brokers on the control plane."""
    control_tls: ClientTls | None = None
    """The files to ask them with, where the control plane is encrypted."""
    topics: tuple[str, ...] = ()
    """Their names; none is all whose policy says so."""
    is_forced: bool = False
    """Whether to compact the topics named whatever their policy, and however little is dirty."""
    target_bytes: int = 0
    """Up to which size segments are put together; 0 is the size of the topic's own."""


def run(
    spark: "SparkSession",
    settings: CompactSettings,
    *,
    clock: Callable[[], int],
    random: Random,
    progress: bool = True,
    reached: Callable[[str], None] = nowhere,
) -> JobResult:
    """Compact what is worth it; `reached` is told each step before it is taken."""
    if settings.is_forced and not settings.topics:
        raise InvalidRequestError("name the topics that are to be compacted whatever they say")
    began_ms = clock()
    installer = Installer(
        location=settings.location,
        control=settings.control,
        control_tls=settings.control_tls,
        kind=JOB,
        run=f"{random.getrandbits(32):08x}",
        progress=progress,
        reached=reached,
    )
    with settings.location.open() as store:
        installer.check(store)
        found = list_bucket(store, settings.location.namespace, settings.topics or None)
        _check(settings, found)
        chosen = list(choose(store, settings, found, began_ms))
        installer.clear(store, [candidate.place for candidate in chosen])
        reached("keys")
        plan = CompactionPlan(settings.location, chosen, installer.run, settings.target_bytes)
        keys_work = plan.keys_work(found, random.randbytes(SECRET_BYTES), began_ms)
        counts = survivors(spark, keys_work, plan.survivors_work, progress=progress)
        make = partial(rewrite_one, settings.location, installer.run, began_ms)
        staged, skipped = installer.stage(
            spark, plan.rewrites(counts), make, attrgetter("group.place")
        )
        staging.remove(store, plan.kept_aside(counts))
        outcomes = installer.swap(store, staged)
        reached("marks")
        for topic, ends in plan.clean_ends(counts, outcomes, skipped).items():
            if (known := found.catalog.get(topic)) is not None:
                checkpoints.write(store, settings.location.namespace, topic, known.id, ends)
    skipped += [
        Skipped(place, "not all of it could be read, so it was left as it is", is_outdated=False)
        for place in plan.incomplete(counts)
    ]
    return _summary(chosen, outcomes, skipped, (clock() - began_ms) / 1000)


def _check(settings: CompactSettings, found: OffsetMap) -> None:
    """Raise unless the topics that were named exist, and may be compacted."""
    check_known(found, settings.topics)
    for name in settings.topics:
        topic = found.catalog.get(name)
        if not (settings.is_forced or Policy.of(topic.configs if topic else {}).is_compacted):
            raise InvalidRequestError(
                f"the cleanup.policy of {name!r} is not compact; compacting it has to be forced"
            )


def choose(
    store: BlockingObjectStore, settings: CompactSettings, found: OffsetMap, now_ms: int
) -> Iterator[Candidate]:
    """The partitions that are compacted."""
    for name in found.topics:
        topic = found.catalog.get(name)
        policy = Policy.of(topic.configs if topic else {})
        if not (policy.is_compacted or settings.is_forced):
            continue
        namespace = settings.location.namespace
        marks = checkpoints.read(store, namespace, name, topic.id) if topic else {}
        for partition in found.partitions.values():
            if partition.topic != name:
                continue
            head = None
            if policy.lag_ms_min:
                head = head_start(store, partition, now_ms - policy.lag_ms_min)
            candidate = Candidate(
                partition, policy, marks.get(partition.partition, 0), cleanable_end(partition, head)
            )
            since_ms = partial(dirty_since_ms, store, candidate)
            if candidate.cleanable and (settings.is_forced or is_due(candidate, since_ms, now_ms)):
                yield candidate


def _summary(
    chosen: Sequence[Candidate],
    outcomes: Sequence[Outcome],
    skipped: Sequence[Skipped],
    seconds: float,
) -> JobResult:
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for candidate in chosen:
        totals[candidate.found.topic]["partitions"] += 1
    for outcome in outcomes:
        if outcome.is_swapped:
            staged, total = outcome.staged, totals[outcome.staged.group.topic]
            total["segmentsBefore"] += len(staged.group.sources)
            total["segmentsAfter"] += 1
            total["recordsBefore"] += staged.records_before
            total["recordsAfter"] += staged.record_count
            total["bytesBefore"] += staged.group.size_bytes
            total["bytesAfter"] += staged.size_bytes
    columns = (
        "partitions",
        "segmentsBefore",
        "segmentsAfter",
        "recordsBefore",
        "recordsAfter",
        "bytesBefore",
        "bytesAfter",
    )
    return JobResult(
        JOB,
        ("topic", *columns),
        tuple((topic, *(total[name] for name in columns)) for topic, total in totals.items()),
        {
            "made": sum(outcome.is_swapped for outcome in outcomes),
            "outdated": outdated(outcomes, skipped),
            "seconds": seconds,
        },
        problems(outcomes, skipped),
    )
