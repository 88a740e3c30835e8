"""The lake job: topics become tables, exactly once.

Round after round: one look at the log, what the tables say, a plan; tasks write files; a commit for
every topic. There is no state but the tables', so the job may be stopped and started anywhere, also
twice at a time. How a topic's round goes is in `lake_topic`, what a task does in `lake_task`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake.settings import LakeSettings, Mode
from kafscale.spark.jobs.lake.task import LakeItem, TopicResult, write
from kafscale.spark.jobs.lake.topic import Checkpoint, Round, TopicExport
from kafscale.spark.log.bucket_listing import BucketLister
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.plan.task_planner import plan
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.spark.tables.base import CommitConflictError, DataFile, Execute, Table
from kafscale.spark.tables.maintenance import MaintenanceResult
from kafscale.spark.values import extend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_logger(__name__)

GROWTHS_MAX: Final = 20
"""How often in one round tasks may find columns that nobody has found before."""

UPKEEP_INTERVAL_MS: Final = 3600 * 1000
"""How often a job that goes on looks after its tables."""

RACES_MAX: Final = 100
"""How many rounds in a row may be void because another writer was faster."""


class TableOf(Protocol):
    """The table of a topic, or that of its dead letters; `time_column` is when rows are from."""

    def __call__(self, topic: str, *, time_column: str, is_dead: bool = False) -> Table: ...


class Tally(msgspec.Struct):
    """What has been done for a topic."""

    table: str
    record_count: int = 0
    dead_count: int = 0
    file_count: int = 0
    size_bytes: int = 0
    commit_count: int = 0
    race_count: int = 0
    freshness_ms: tuple[int, ...] = (0, 0)
    """From the time of records to the commit: of the median, of the 99th percentile; lately."""
    newest_ms: int | None = None
    """The time of the newest record, as far as times were looked at."""


class Lake:
    """The job; `run` makes one round after the other."""

    def __init__(
        self,
        settings: LakeSettings,
        table_of: TableOf,
        execute: Execute,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        checkpoint: Checkpoint = lambda _step: None,
    ) -> None:
        self.settings = settings
        self.tallies: dict[str, Tally] = {}
        self._table_of = table_of
        self._execute = execute
        self._clock = clock
        self._checkpoint = checkpoint
        self._exports: dict[str, TopicExport] = {}
        self._upkeep = MaintenanceResult()
        self._upkeep_ms = clock()

    def run(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Work until all is done that was there at the beginning, or for ever."""
        settings = self.settings
        with settings.location.open() as store:
            lister = BucketLister(store, settings.location.namespace)
            subscription = settings.subscription
            found = lister.list(subscription.topics, subscription.matches)
            targets = {place: one.end_offset for place, one in subscription.require(found).items()}
            races = 0
            while True:
                began_ms = self._clock()
                is_void, reached = self.round(found)
                races = races + 1 if is_void else 0
                if races > RACES_MAX:
                    raise OperatingError(f"another writer was faster {races} times in a row")
                if settings.is_once and _is_reached(reached, targets):
                    self._maintain()
                    return
                if not settings.is_once:
                    if self._clock() - self._upkeep_ms >= UPKEEP_INTERVAL_MS:
                        self._maintain()
                    ends = {place: one.end_offset for place, one in found.partitions.items()}
                    if _is_reached(reached, ends):  # Whoever is behind does not rest.
                        due_ms = began_ms + settings.interval_ms - self._clock()
                        sleep(max(due_ms, 0) / 1000)
                found = lister.list(subscription.topics, subscription.matches)

    def round(self, found: OffsetMap) -> tuple[bool, dict[TopicPartition, int]]:
        """One round; whether any of its commits was void, and the offsets that are done."""
        self._checkpoint("surveyed")
        exports = {}
        rounds = {}
        reached: dict[TopicPartition, int] = {}
        for topic, partitions in _by_topic(
            self.settings.subscription.select(found).values()
        ).items():
            export = exports[topic] = self._export(topic)
            current = rounds[topic] = export.begin(partitions, found.catalog.get(topic))
            offsets = {} if current.version is None else current.version.progress.offsets
            for one in partitions:
                start = offsets.get(one.partition, one.start_offset)
                reached[topic, one.partition] = max(start, one.start_offset)
        try:
            results = self._write(found, exports, rounds)
        except CommitConflictError as error:
            log.info("another writer was faster", reason=str(error))
            return True, reached
        self._checkpoint("written")
        is_void = False
        for topic, done in results.items():
            added = exports[topic].commit(rounds[topic], done, self._execute)
            if added is not None:
                self._count(topic, done, added)
                for moved in rounds[topic].ranges:
                    reached[topic, moved.partition] = moved.end_offset
            else:
                self._tally(topic).race_count += 1
                is_void = True
        return is_void, reached

    def summary(self) -> JobResult:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                topic,
                tally.table,
                tally.record_count,
                tally.dead_count,
                tally.file_count,
                tally.size_bytes,
                tally.commit_count,
                tally.race_count,
                *(age_ms / 1000 for age_ms in tally.freshness_ms),
            )
            for topic, tally in sorted(self.tallies.items())
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
        if self.settings.upkeep.is_enabled:
            facts = {
                "mergedFiles": self._upkeep.merged_count,
                "expiredVersions": self._upkeep.expired_count,
                "removedFiles": self._upkeep.orphan_count,
            }
        newest_ms = {
            topic: tally.newest_ms
            for topic, tally in self.tallies.items()
            if tally.newest_ms is not None
        }
        return JobResult("lake", columns, rows, facts, newest_ms=newest_ms)

    # --- tasks --------------------------------------------------------------------------------

    def _write(
        self, found: OffsetMap, exports: Mapping[str, TopicExport], rounds: Mapping[str, Round]
    ) -> dict[str, list[TopicResult]]:
        """Have the tasks write everything, again where columns were missing."""
        ranges = [one for current in rounds.values() for one in current.ranges]
        tasks = plan(found, ranges, task_bytes=self.settings.task_bytes)
        results: dict[str, list[TopicResult]] = {one.topic: [] for one in ranges}
        left = [(task, sorted({part.topic for part in task.slices})) for task in tasks]
        for _ in range(GROWTHS_MAX):
            works = {topic: exports[topic].work(rounds[topic]) for topic in results}
            items = [
                LakeItem(
                    self.settings.location,
                    task,
                    {topic: works[topic] for topic in topics},
                    self.settings.fail_on_data_loss,
                )
                for task, topics in left
            ]
            done = self._execute(items, write, description="writing") if items else []
            again = []
            missing: dict[str, list[TopicResult]] = {}
            for (task, _), made in zip(left, done, strict=True):
                short = [result for result in made if result.missing is not None]
                for result in made:
                    target = missing if result.missing is not None else results
                    target.setdefault(result.topic, []).append(result)
                if short:
                    again.append((task, [result.topic for result in short]))
            if not again:
                return results
            for topic, found_missing in missing.items():
                schema = rounds[topic].schema
                for result in found_missing:
                    schema = extend(schema, result.missing)
                exports[topic].grow(rounds[topic], lake_rows.well_named(schema))
            left = again
        raise OperatingError(f"tasks have found new columns {GROWTHS_MAX} times in one round")

    def _export(self, topic: str) -> TopicExport:
        export = self._exports.get(topic)
        if export is None:
            is_decoded = self.settings.values is not None
            time_column = lake_rows.time_column(is_decoded=is_decoded)
            dead = None
            if is_decoded or self.settings.mode is Mode.UPSERT:
                dead = self._table_of(topic, time_column="timestamp", is_dead=True)
            export = self._exports[topic] = TopicExport(
                topic,
                self._table_of(topic, time_column=time_column),
                dead,
                self.settings,
                self._checkpoint,
            )
        return export

    def _maintain(self) -> None:
        """Look after the tables, if that is wanted."""
        self._upkeep_ms = self._clock()
        if not self.settings.upkeep.is_enabled:
            return
        for export in self._exports.values():
            self._upkeep += export.maintain(self._execute, self._clock)

    # --- figures ------------------------------------------------------------------------------

    def _tally(self, topic: str) -> Tally:
        return self.tallies.setdefault(topic, Tally(self._exports[topic].table.name))

    def _count(self, topic: str, results: Sequence[TopicResult], added: Sequence[DataFile]) -> None:
        tally = self._tally(topic)
        now_ms = self._clock()
        tally.commit_count += 1
        tally.file_count += len(added)
        tally.size_bytes += sum(file.size_bytes for file in added)
        for result in results:
            tally.record_count += result.record_count
            tally.dead_count += result.dead_count
        ages = [(now_ms - time_ms, weight) for one in results for time_ms, weight in one.times]
        if ages:
            tally.newest_ms = max(tally.newest_ms or 0, now_ms - min(ages)[0])
            tally.freshness_ms = (lake_rows.percentile(ages, 0.5), lake_rows.percentile(ages, 0.99))
            log.info(
                "committed",
                table=tally.table,
                records=sum(one.record_count for one in results),
                freshness_ms_p50=tally.freshness_ms[0],
                freshness_ms_p99=tally.freshness_ms[1],
            )


def run(
    spark: "SparkSession",
    settings: LakeSettings,
    table_of: TableOf,
    *,
    progress: Callable[[JobResult], None] = lambda _: None,
) -> JobResult:
    """Run the job on Spark; `progress` is told before every round what was done so far."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it needs Spark, which tests of the rest do not.

    def checkpoint(step: str) -> None:
        if step == "surveyed":
            progress(lake.summary())

    lake = Lake(settings, table_of, partial(parallel_map, spark), checkpoint=checkpoint)
    try:
        lake.run()
    except KeyboardInterrupt:
        log.info("stopped")
    return lake.summary()


def _by_topic(found: Iterable[PartitionOffsets]) -> dict[str, list[PartitionOffsets]]:
    topics: dict[str, list[PartitionOffsets]] = {}
    for one in sorted(found, key=lambda one: (one.topic, one.partition)):
        topics.setdefault(one.topic, []).append(one)
    return topics


def _is_reached(
    reached: Mapping[TopicPartition, int], targets: Mapping[TopicPartition, int]
) -> bool:
    """Whether all has come that was to; what is not there any more cannot."""
    return all(reached[place] >= offset for place, offset in targets.items() if place in reached)
