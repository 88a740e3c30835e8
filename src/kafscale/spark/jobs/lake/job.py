"""The lake job: writes topics to tables, exactly once.

The job runs in rounds. In each round it lists the bucket, loads the tables, and plans the next
offsets; tasks write files; then the driver commits each topic. The only state is in the tables, so
the job may be killed at any time, started on any host, and run twice at the same time. `topic` has
the round of one topic, `task` what a task does.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from kafscale.aio.clock import clock
from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake.settings import LakeSettings, Mode
from kafscale.spark.jobs.lake.task import LakeItem, TopicResult, write_files
from kafscale.spark.jobs.lake.topic import OnStep, TopicExport, TopicRound
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.plan.task_planner import plan
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.spark.tables.base import CommitConflictError, DataFile, Execute, Table
from kafscale.spark.tables.maintenance import MaintenanceResult
from kafscale.spark.values import extend
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = get_logger(__name__)

SCHEMA_CHANGES_MAX: Final = 20
"""How often tasks may find new columns in one round."""

MAINTENANCE_INTERVAL_MS: Final = 3600 * 1000
"""How often a continuous job maintains its tables."""

CONFLICTS_MAX: Final = 100
"""How many rounds in a row may have a commit conflict."""


class TableFactory(Protocol):
    """Opens the table of a topic, or of its dead letters; `time_column` has the timestamps."""

    def __call__(self, topic: str, *, time_column: str, is_dead: bool = False) -> Table: ...


class TopicTotals(msgspec.Struct):
    """What the job has done for a topic."""

    table: str
    record_count: int = 0
    dead_letter_count: int = 0
    file_count: int = 0
    size_bytes: int = 0
    commit_count: int = 0
    conflict_count: int = 0
    freshness_ms: tuple[int, ...] = (0, 0)
    """Time from the timestamp to the commit of records, in the last commit: p50 and p99."""
    newest_ms: int | None = None
    """The greatest sampled timestamp."""


class LakeJob:
    """Runs rounds."""

    def __init__(
        self,
        settings: LakeSettings,
        open_table: TableFactory,
        execute: Execute,
        *,
        clock: Callable[[], int] = clock,
        on_step: OnStep = lambda _step: None,
    ) -> None:
        self.settings = settings
        self.totals: dict[str, TopicTotals] = {}
        self._open_table = open_table
        self._execute = execute
        self._clock = clock
        self._on_step = on_step
        self._exports: dict[str, TopicExport] = {}
        self._maintenance = MaintenanceResult()
        self._maintained_ms = clock()

    def run(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Run until all records that existed at the start are committed, or for ever."""
        settings = self.settings
        with settings.location.open() as store:
            lister = BucketLister(store, settings.location.namespace)
            subscription = settings.subscription
            offset_map = self._list(lister)
            required = subscription.require(offset_map)
            targets = {key: partition.end_offset for key, partition in required.items()}
            conflicts = 0
            while True:
                started_ms = self._clock()
                has_conflict, reached = self.run_round(lister, offset_map)
                conflicts = conflicts + 1 if has_conflict else 0
                if conflicts > CONFLICTS_MAX:
                    raise OperatingError(f"{conflicts} commit conflicts in a row")
                if settings.is_once and _is_reached(reached, targets):
                    self._maintain()
                    return
                if not settings.is_once:
                    if self._clock() - self._maintained_ms >= MAINTENANCE_INTERVAL_MS:
                        self._maintain()
                    partitions = offset_map.partitions.items()
                    ends = {key: partition.end_offset for key, partition in partitions}
                    if _is_reached(reached, ends):  # A job that is behind does not pause.
                        due_ms = started_ms + settings.interval_ms - self._clock()
                        sleep(max(due_ms, 0) / 1000)
                offset_map = self._list(lister)

    def _list(self, lister: BucketLister) -> OffsetMap:
        subscription = self.settings.subscription
        return lister.list(
            subscription.topics, subscription.matches, committed=self.settings.is_committed
        )

    def run_round(
        self, lister: BucketLister, offset_map: OffsetMap
    ) -> tuple[bool, dict[TopicPartition, int]]:
        """Run a round; return whether a commit had a conflict, and the committed offsets."""
        self._on_step("listed")
        exports = {}
        rounds = {}
        reached: dict[TopicPartition, int] = {}
        for topic, partitions in _by_topic(
            self.settings.subscription.select(offset_map).values()
        ).items():
            export = exports[topic] = self._export(topic)
            current = rounds[topic] = export.start_round(partitions, offset_map.catalog.get(topic))
            offsets = {} if current.version is None else current.version.progress.offsets
            for one in partitions:
                start = offsets.get(one.partition, one.start_offset)
                reached[topic, one.partition] = max(start, one.start_offset)
        try:
            results = self._write(lister, offset_map, exports, rounds)
        except CommitConflictError as error:
            logger.info("commit conflict", reason=str(error))
            return True, reached
        self._on_step("written")
        has_conflict = False
        for topic, topic_results in results.items():
            added = exports[topic].commit(rounds[topic], topic_results, self._execute)
            if added is not None:
                self._count(topic, topic_results, added)
                for committed in rounds[topic].ranges:
                    reached[topic, committed.partition] = committed.end_offset
            else:
                self._totals(topic).conflict_count += 1
                has_conflict = True
        return has_conflict, reached

    def summary(self) -> JobResult:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                topic,
                totals.table,
                totals.record_count,
                totals.dead_letter_count,
                totals.file_count,
                totals.size_bytes,
                totals.commit_count,
                totals.conflict_count,
                *(age_ms / 1000 for age_ms in totals.freshness_ms),
            )
            for topic, totals in sorted(self.totals.items())
        )
        columns = (
            "topic",
            "table",
            "records",
            "deadLetters",
            "files",
            "writtenBytes",
            "commits",
            "racesLost",
            "freshnessP50Seconds",
            "freshnessP99Seconds",
        )
        facts: dict[str, Cell] = {}
        if self.settings.maintenance.is_enabled:
            facts = {
                "mergedFiles": self._maintenance.merged_count,
                "expiredVersions": self._maintenance.expired_count,
                "removedFiles": self._maintenance.orphan_count,
            }
        newest_ms = {
            topic: totals.newest_ms
            for topic, totals in self.totals.items()
            if totals.newest_ms is not None
        }
        return JobResult("lake", columns, rows, facts, newest_ms=newest_ms)

    # --- tasks --------------------------------------------------------------------------------

    def _write(
        self,
        lister: BucketLister,
        offset_map: OffsetMap,
        exports: Mapping[str, TopicExport],
        rounds: Mapping[str, TopicRound],
    ) -> dict[str, list[TopicResult]]:
        """Run tasks that write files; run them again after adding missing columns."""
        ranges = [one for current in rounds.values() for one in current.ranges]
        if self.settings.is_committed:
            offset_map = lister.load_aborted(offset_map, ranges)
        tasks = plan(offset_map, ranges, task_bytes=self.settings.task_bytes)
        results: dict[str, list[TopicResult]] = {one.topic: [] for one in ranges}
        pending = [(task, sorted({part.topic for part in task.slices})) for task in tasks]
        for _ in range(SCHEMA_CHANGES_MAX):
            works = {topic: exports[topic].work(rounds[topic]) for topic in results}
            items = [
                LakeItem(
                    self.settings.location,
                    task,
                    {topic: works[topic] for topic in topics},
                    self.settings.fail_on_data_loss,
                )
                for task, topics in pending
            ]
            done = self._execute(items, write_files, description="writing") if items else []
            again = []
            missing: dict[str, list[TopicResult]] = {}
            for (task, _), task_results in zip(pending, done, strict=True):
                lacking = [each for each in task_results if each.missing_schema is not None]
                for result in task_results:
                    target = missing if result.missing_schema is not None else results
                    target.setdefault(result.topic, []).append(result)
                if lacking:
                    again.append((task, [result.topic for result in lacking]))
            if not again:
                return results
            for topic, lacking in missing.items():
                schema = rounds[topic].schema
                for result in lacking:
                    schema = extend(schema, result.missing_schema)
                exports[topic].add_columns(rounds[topic], lake_rows.without_invalid_names(schema))
            pending = again
        raise OperatingError(f"tasks found new columns {SCHEMA_CHANGES_MAX} times in one round")

    def _export(self, topic: str) -> TopicExport:
        export = self._exports.get(topic)
        if export is None:
            is_decoded = self.settings.values is not None
            time_column = lake_rows.time_column(is_decoded=is_decoded)
            dead_letters = None
            if is_decoded or self.settings.mode is Mode.UPSERT:
                dead_letters = self._open_table(topic, time_column="timestamp", is_dead=True)
            export = self._exports[topic] = TopicExport(
                topic,
                self._open_table(topic, time_column=time_column),
                dead_letters,
                self.settings,
                self._on_step,
            )
        return export

    def _maintain(self) -> None:
        """Run table maintenance, if it is enabled."""
        self._maintained_ms = self._clock()
        if not self.settings.maintenance.is_enabled:
            return
        for export in self._exports.values():
            self._maintenance += export.maintain(self._execute, self._clock)

    # --- totals -------------------------------------------------------------------------------

    def _totals(self, topic: str) -> TopicTotals:
        return self.totals.setdefault(topic, TopicTotals(self._exports[topic].table.name))

    def _count(self, topic: str, results: Sequence[TopicResult], added: Sequence[DataFile]) -> None:
        totals = self._totals(topic)
        now_ms = self._clock()
        totals.commit_count += 1
        totals.file_count += len(added)
        totals.size_bytes += sum(file.size_bytes for file in added)
        for result in results:
            totals.record_count += result.record_count
            totals.dead_letter_count += result.dead_letter_count
        ages = [(now_ms - time_ms, weight) for one in results for time_ms, weight in one.timestamps]
        if ages:
            totals.newest_ms = max(totals.newest_ms or 0, now_ms - min(ages)[0])
            totals.freshness_ms = (
                lake_rows.percentile(ages, 0.5),
                lake_rows.percentile(ages, 0.99),
            )
            logger.info(
                "committed",
                table=totals.table,
                records=sum(one.record_count for one in results),
                freshness_ms_p50=totals.freshness_ms[0],
                freshness_ms_p99=totals.freshness_ms[1],
            )


def run(
    spark: "SparkSession",
    settings: LakeSettings,
    open_table: TableFactory,
    *,
    on_progress: Callable[[JobResult], None] = lambda _: None,
) -> JobResult:
    """Run the job on Spark; `on_progress` gets the totals so far before every round."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    def on_step(step: str) -> None:
        if step == "listed":
            on_progress(job.summary())

    job = LakeJob(settings, open_table, partial(parallel_map, spark), on_step=on_step)
    try:
        job.run()
    except KeyboardInterrupt:
        logger.info("lake job stopped")
    return job.summary()


def _by_topic(partitions: Iterable[PartitionOffsets]) -> dict[str, list[PartitionOffsets]]:
    topics: dict[str, list[PartitionOffsets]] = {}
    for one in sorted(partitions, key=lambda one: (one.topic, one.partition)):
        topics.setdefault(one.topic, []).append(one)
    return topics


def _is_reached(
    reached: Mapping[TopicPartition, int], targets: Mapping[TopicPartition, int]
) -> bool:
    """Whether all target offsets are committed; partitions that no longer exist are ignored."""
    return all(reached[key] >= offset for key, offset in targets.items() if key in reached)
