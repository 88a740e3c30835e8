"""Writes one topic to its table, round by round.

A round starts with the offsets in the table, and ends with a commit or without effect. Invariants:

* A commit of the table holds the rows and the next offsets. If another writer has advanced the
  offsets since the round started, the commit fails, the files of the round are deleted, and the
  next round starts from the table.
* Dead letters are committed first, with their own offsets. If the process is killed between the two
  commits, the next round meets the same bad records, and drops those before these offsets.
* New columns are added before the rows that have them; an empty column does no harm.

So, whenever the process is killed, every record is exactly once in one of the two tables.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake import upsert
from kafscale.spark.jobs.lake.plan import plan_ranges, resume_offset
from kafscale.spark.jobs.lake.settings import LakeSettings, Mode, Start
from kafscale.spark.jobs.lake.task import TopicResult, TopicWork
from kafscale.spark.jobs.lake.upsert import FileChanges, RowIdentity
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.tables.base import (
    COMMIT_ATTEMPTS_MAX,
    Change,
    CommitConflictError,
    DataFile,
    Execute,
    Files,
    Progress,
    Table,
    Version,
)
from kafscale.spark.tables.maintenance import MaintenanceResult, maintain
from kafscale.spark.tables.writer import Encoding
from kafscale.spark.values import extend
from kafscale.storage.topic_catalog import CatalogTopic

logger = get_logger(__name__)

DISCOVERY_BYTES: Final = 16 * 1024 * 1024
"""How much of a topic is read twice to discover the columns of a new table."""

OnStep = Callable[[str], None]


class TopicRound(msgspec.Struct):
    """The state of a round."""

    ranges: list[OffsetRange]
    version: Version | None
    """Of the table; None until its columns are known."""
    schema: pa.Schema
    dead_letters: Version | None
    topic_mark: int | None


class TopicExport:
    """A topic, its table and its dead letters."""

    def __init__(
        self,
        topic: str,
        table: Table,
        dead_letters: Table | None,
        settings: LakeSettings,
        on_step: OnStep = lambda _step: None,
    ) -> None:
        """`on_step` gets the name of each finished step, for tests."""
        self.topic = topic
        self.table = table
        self._dead_letters = dead_letters
        self._settings = settings
        self._on_step = on_step
        is_decoded = settings.values is not None
        self._encoding = lake_rows.with_column_encodings(settings.encoding, is_decoded=is_decoded)
        self._identity: RowIdentity | None = None
        if settings.mode is Mode.UPSERT:
            self._identity = lake_rows.row_identity(settings.keys, is_decoded=is_decoded)

    def maintain(self, execute: Execute, clock: Callable[[], int]) -> MaintenanceResult:
        """Run the maintenance of the tables."""
        options = self._settings.maintenance
        column = lake_rows.time_column(is_decoded=self._settings.values is not None)
        done = maintain(
            self.table, options, column, encoding=self._encoding, execute=execute, clock=clock
        )
        if self._dead_letters is None:
            return done
        return done + maintain(
            self._dead_letters,
            options,
            "timestamp",
            encoding=Encoding(),
            execute=execute,
            clock=clock,
        )

    # --- start of a round ---------------------------------------------------------------------

    def start_round(
        self, partitions: Sequence[PartitionOffsets], known: CatalogTopic | None
    ) -> TopicRound:
        """Load the tables, and plan the next offsets."""
        mark = None if known is None else int.from_bytes(known.id[:8], "big") >> 1
        version = self.table.load()
        schema = self._first_schema() if version is None else version.schema
        if version is None and schema is not None:
            version = self.table.create(schema, self._settings.granularity)
            self._on_step("table created")
        letters = None
        if self._dead_letters is not None:
            letters = self._dead_letters.load() or self._dead_letters.create(
                lake_rows.DEAD_LETTERS, None
            )
        if version is not None:
            self._check_table(version, mark)
            version = self._skip_existing(version, partitions, mark)
        progress = Progress() if version is None else version.progress
        return TopicRound(
            self._plan(partitions, progress.offsets, is_discovery=version is None),
            version,
            schema or lake_rows.decoded_schema(pa.schema([])),
            letters,
            mark,
        )

    def _first_schema(self) -> pa.Schema | None:
        """Return the schema of a new table; None if it must be inferred from records."""
        values = self._settings.values
        if values is None:
            return lake_rows.RAW.schema
        known = lake_rows.decoder_for(values, pa.schema([])).schema
        return lake_rows.decoded_schema(known) if known is not None and len(known) else None

    def _check_table(self, version: Version, mark: int | None) -> None:
        unknown = set(self._settings.keys) - set(version.schema.names)
        if unknown:
            raise InvalidRequestError(
                f"{self.table.name} has no columns {', '.join(sorted(unknown))} for keys"
            )
        if self._settings.granularity not in {None, version.granularity}:
            raise InvalidRequestError(
                f"{self.table.name} exists and is not partitioned by {self._settings.granularity}"
            )
        seen = version.progress.topic_mark
        if seen is not None and mark is not None and seen != mark:
            raise InvalidRequestError(
                f"{self.table.name} was filled from a topic {self.topic} that has been deleted;"
                " the new topic of that name needs another table"
            )

    def _skip_existing(
        self, version: Version, partitions: Sequence[PartitionOffsets], mark: int | None
    ) -> Version:
        """With `Start.LATEST`, commit the current ends as the first offsets of the table."""
        if self._settings.start is Start.EARLIEST or version.progress.offsets:
            return version
        ends = {one.partition: one.end_offset for one in partitions}
        with suppress(CommitConflictError):  # Another writer has committed them.
            _commit(self.table, version, Change(Progress(ends, mark)), is_append=True)
        now = self.table.load()
        assert now is not None
        return now

    def _plan(
        self,
        partitions: Sequence[PartitionOffsets],
        offsets: Mapping[int, int],
        *,
        is_discovery: bool,
    ) -> list[OffsetRange]:
        settings = self._settings
        starts = {
            one.partition: resume_offset(
                one, offsets.get(one.partition), fail_on_data_loss=settings.fail_on_data_loss
            )
            for one in partitions
        }
        bytes_max = settings.commit_bytes_max
        return plan_ranges(
            partitions,
            starts,
            records_max=settings.commit_records_max,
            bytes_max=min(bytes_max, DISCOVERY_BYTES) if is_discovery else bytes_max,
        )

    # --- tasks --------------------------------------------------------------------------------

    def work(self, current: TopicRound) -> TopicWork:
        """Return what tasks need for the topic."""
        letters = current.dead_letters
        return TopicWork(
            current.schema,
            None if current.version is None else self.table.files(current.version),
            self._settings.values,
            None
            if letters is None or self._dead_letters is None
            else self._dead_letters.files(letters),
            {} if letters is None else letters.progress.offsets,
            self._encoding,
            self._identity,
        )

    def add_columns(self, current: TopicRound, schema: pa.Schema) -> None:
        """Add columns that the table lacks; create the table if it does not exist."""
        before = Progress() if current.version is None else current.version.progress
        version = current.version or self.table.create(schema, self._settings.granularity)
        if version.schema != schema:
            version = self.table.evolve(version, extend(version.schema, schema))
        if version.progress != before:
            # It is newer than the version with the offsets of the round.
            raise CommitConflictError(f"{self.table.name}: its offsets have advanced")
        self._check_table(version, current.topic_mark)
        logger.info("columns added", table=self.table.name, count=len(schema))
        current.version, current.schema = version, version.schema
        self._on_step("columns added")

    # --- end of a round -----------------------------------------------------------------------

    def commit(
        self, current: TopicRound, results: Sequence[TopicResult], execute: Execute
    ) -> list[DataFile] | None:
        """Commit the files of the tasks; None if another writer has committed first.

        Return the files that were added to the table.
        """
        version = current.version
        assert version is not None
        rows = [file for result in results for file in result.files]
        try:
            letters = [file for result in results for file in result.dead_letters]
            self._commit_dead_letters(current, letters)
            changes = self._merge(version, rows, execute)
        except CommitConflictError as error:
            self._discard(self.table.files(version), rows, error)
            return None
        change = Change(self._advance(current, version), changes.added, changes.removed)
        try:
            _commit(self.table, version, change, is_append=self._identity is None)
        except CommitConflictError as error:
            self._discard(self.table.files(version), [*changes.added, *changes.staged], error)
            return None
        self._on_step("committed")
        self.table.files(version).discard(changes.staged)
        return changes.added

    def _commit_dead_letters(self, current: TopicRound, files: Sequence[DataFile]) -> None:
        if not files:
            return
        assert current.dead_letters is not None
        assert self._dead_letters is not None
        try:
            change = Change(self._advance(current, current.dead_letters), files)
            _commit(self._dead_letters, current.dead_letters, change, is_append=True)
        except CommitConflictError:
            self._dead_letters.files(current.dead_letters).discard(files)
            raise
        self._on_step("dead letters committed")

    def _merge(self, version: Version, rows: list[DataFile], execute: Execute) -> FileChanges:
        """Return the files to add and remove; without `upsert`, add those of the tasks."""
        if self._identity is None or not rows:
            return FileChanges(added=rows)
        changes = upsert.merge(
            self.table.files(version),
            self.table.data_files(version),
            rows,
            version.schema,
            identity=self._identity,
            encoding=self._encoding,
            execute=execute,
        )
        self._on_step("merged")
        return changes

    def _discard(
        self, files: Files, written: Sequence[DataFile], error: CommitConflictError
    ) -> None:
        logger.info("commit conflict", table=self.table.name, reason=str(error))
        files.discard(written)

    def _advance(self, current: TopicRound, version: Version) -> Progress:
        """Return the progress of a table after the round; offsets never go back."""
        offsets = dict(version.progress.offsets)
        for one in current.ranges:
            offsets[one.partition] = max(offsets.get(one.partition, 0), one.end_offset)
        mark = version.progress.topic_mark if current.topic_mark is None else current.topic_mark
        return Progress(offsets, mark)


def _commit(table: Table, version: Version, change: Change, *, is_append: bool) -> None:
    """Commit; retry an append after commits of other writers that leave the offsets unchanged."""
    for _ in range(COMMIT_ATTEMPTS_MAX):
        try:
            table.commit(version, change)
        except CommitConflictError:
            now = table.load() if is_append else None
            if now is None or (now.progress, now.granularity) != (
                version.progress,
                version.granularity,
            ):
                raise
            version = now
        else:
            return
    raise CommitConflictError(f"{table.name}: {COMMIT_ATTEMPTS_MAX} commit conflicts in a row")
