"""One topic on its way into its table, a round at a time.

A round begins with what the tables say, and ends with a commit, or with nothing. The laws:

* The table's commit holds the rows and the next offsets. If anybody has moved the offsets since the
  round began, it is void: its files are removed, and the next round begins from the table.
* Dead letters are committed first, with offsets of their own. Should the round end between the two
  commits, the next one meets the same bad records, and leaves out those below these offsets.
* Columns that are new are added before the rows that have them: a table with an empty column more
  is as right as before.

So, whenever the process is killed, every record is in exactly one of the two tables, once.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.lake import plan, upsert
from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake.keys import Identity
from kafscale.spark.jobs.lake.settings import LakeSettings, Mode, Start
from kafscale.spark.jobs.lake.task import TopicResult, TopicWork
from kafscale.spark.jobs.lake.upsert import Merged
from kafscale.spark.plan.offset_map import CatalogTopic, PartitionOffsets
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

log = get_logger(__name__)

DISCOVERY_BYTES: Final = 16 * 1024 * 1024
"""How much of a topic is read, twice, to find out which columns its first table needs."""

Checkpoint = Callable[[str], None]


class Round(msgspec.Struct):
    """What a round knows."""

    ranges: list[OffsetRange]
    version: Version | None
    """Of the table; None as long as nobody knows its columns."""
    schema: pa.Schema
    dead: Version | None
    topic_mark: int | None


class TopicExport:
    """A topic, its table and its dead letters."""

    def __init__(
        self,
        topic: str,
        table: Table,
        dead: Table | None,
        settings: LakeSettings,
        checkpoint: Checkpoint = lambda _step: None,
    ) -> None:
        """`checkpoint` is called between all steps, with their names: tests stop there."""
        self.topic = topic
        self.table = table
        self._dead = dead
        self._settings = settings
        self._checkpoint = checkpoint
        is_decoded = settings.values is not None
        self._encoding = lake_rows.laid_out(settings.encoding, is_decoded=is_decoded)
        self._identity: Identity | None = None
        if settings.mode is Mode.UPSERT:
            self._identity = lake_rows.identity(settings.keys, is_decoded=is_decoded)

    def maintain(self, execute: Execute, clock: Callable[[], int]) -> MaintenanceResult:
        """Look after the tables."""
        upkeep = self._settings.upkeep
        column = lake_rows.time_column(is_decoded=self._settings.values is not None)
        done = maintain(
            self.table, upkeep, column, encoding=self._encoding, execute=execute, clock=clock
        )
        if self._dead is None:
            return done
        return done + maintain(
            self._dead, upkeep, "timestamp", encoding=Encoding(), execute=execute, clock=clock
        )

    # --- the beginning of a round -------------------------------------------------------------

    def begin(self, found: Sequence[PartitionOffsets], known: CatalogTopic | None) -> Round:
        """Look at the tables, and choose the offsets that come next."""
        mark = None if known is None else int.from_bytes(known.id[:8], "big") >> 1
        version = self.table.load()
        schema = self._first_schema() if version is None else version.schema
        if version is None and schema is not None:
            version = self.table.create(schema, self._settings.unit)
            self._checkpoint("table created")
        dead = None
        if self._dead is not None:
            dead = self._dead.load() or self._dead.create(lake_rows.DEAD_LETTERS, None)
        if version is not None:
            self._check(version, mark)
            version = self._begin_at_end(version, found, mark)
        progress = Progress() if version is None else version.progress
        return Round(
            self._ranges(found, progress.offsets, is_discovery=version is None),
            version,
            schema or lake_rows.decoded_schema(pa.schema([])),
            dead,
            mark,
        )

    def _first_schema(self) -> pa.Schema | None:
        """The columns of a new table; None if only the records can tell."""
        values = self._settings.values
        if values is None:
            return lake_rows.RAW.schema
        known = lake_rows.decoder_for(values, pa.schema([])).schema
        return lake_rows.decoded_schema(known) if known is not None and len(known) else None

    def _check(self, version: Version, mark: int | None) -> None:
        unknown = set(self._settings.keys) - set(version.schema.names)
        if unknown:
            raise InvalidRequestError(
                f"{self.table.name} has no columns {', '.join(sorted(unknown))} to be known by"
            )
        if self._settings.unit not in {None, version.granularity}:
            raise InvalidRequestError(
                f"{self.table.name} is there, and is not partitioned by {self._settings.unit}"
            )
        seen = version.progress.topic_mark
        if seen is not None and mark is not None and seen != mark:
            raise InvalidRequestError(
                f"{self.table.name} was filled from a topic {self.topic} that has been deleted;"
                " the one of that name now is another, and needs a table of its own"
            )

    def _begin_at_end(
        self, version: Version, found: Sequence[PartitionOffsets], mark: int | None
    ) -> Version:
        """If only new records are wanted, write down what is not new."""
        if self._settings.start is Start.EARLIEST or version.progress.offsets:
            return version
        ends = {one.partition: one.end_offset for one in found}
        with suppress(CommitConflictError):  # Somebody else has written it down.
            _commit(self.table, version, Change(Progress(ends, mark)), is_append=True)
        now = self.table.load()
        assert now is not None
        return now

    def _ranges(
        self, found: Sequence[PartitionOffsets], offsets: Mapping[int, int], *, is_discovery: bool
    ) -> list[OffsetRange]:
        settings = self._settings
        starts = {
            one.partition: plan.resume(
                one, offsets.get(one.partition), fail_on_data_loss=settings.fail_on_data_loss
            )
            for one in found
        }
        bytes_max = settings.commit_bytes_max
        return plan.ranges(
            found,
            starts,
            records_max=settings.commit_records_max,
            bytes_max=min(bytes_max, DISCOVERY_BYTES) if is_discovery else bytes_max,
        )

    # --- in between ---------------------------------------------------------------------------

    def work(self, current: Round) -> TopicWork:
        """What tasks have to know."""
        return TopicWork(
            current.schema,
            None if current.version is None else self.table.files(current.version),
            self._settings.values,
            None if current.dead is None or self._dead is None else self._dead.files(current.dead),
            {} if current.dead is None else current.dead.progress.offsets,
            self._encoding,
            self._identity,
        )

    def grow(self, current: Round, schema: pa.Schema) -> None:
        """Give the table columns that it lacks, creating it if need be."""
        began = Progress() if current.version is None else current.version.progress
        version = current.version or self.table.create(schema, self._settings.unit)
        if version.schema != schema:
            version = self.table.evolve(version, extend(version.schema, schema))
        if version.progress != began:
            # It is a newer version than the one that the round's offsets are from.
            raise CommitConflictError(f"{self.table.name}: its offsets have moved")
        self._check(version, current.topic_mark)
        log.info("columns added", table=self.table.name, count=len(schema))
        current.version, current.schema = version, version.schema
        self._checkpoint("columns added")

    # --- the end of a round -------------------------------------------------------------------

    def commit(
        self, current: Round, results: Sequence[TopicResult], execute: Execute
    ) -> list[DataFile] | None:
        """Make what the tasks have written count; None if somebody else was faster.

        The files that the table has more are returned.
        """
        version = current.version
        assert version is not None
        rows = [file for result in results for file in result.files]
        try:
            self._commit_dead(current, [file for result in results for file in result.dead])
            merged = self._merged(version, rows, execute)
        except CommitConflictError as error:
            self._lose(self.table.files(version), rows, error)
            return None
        change = Change(self._moved(current, version), merged.added, merged.removed)
        try:
            _commit(self.table, version, change, is_append=self._identity is None)
        except CommitConflictError as error:
            self._lose(self.table.files(version), [*merged.added, *merged.staged], error)
            return None
        self._checkpoint("committed")
        self.table.files(version).discard(merged.staged)
        return merged.added

    def _commit_dead(self, current: Round, files: Sequence[DataFile]) -> None:
        if not files:
            return
        assert current.dead is not None
        assert self._dead is not None
        try:
            change = Change(self._moved(current, current.dead), files)
            _commit(self._dead, current.dead, change, is_append=True)
        except CommitConflictError:
            self._dead.files(current.dead).discard(files)
            raise
        self._checkpoint("dead letters committed")

    def _merged(self, version: Version, rows: list[DataFile], execute: Execute) -> Merged:
        """The files to exchange: those of the tasks, unless rows take the place of others."""
        if self._identity is None or not rows:
            return Merged(added=rows)
        merged = upsert.merge(
            self.table.files(version),
            self.table.data_files(version),
            rows,
            version.schema,
            identity=self._identity,
            encoding=self._encoding,
            execute=execute,
        )
        self._checkpoint("merged")
        return merged

    def _lose(self, files: Files, left: Sequence[DataFile], error: CommitConflictError) -> None:
        log.info("another writer was faster", table=self.table.name, reason=str(error))
        files.discard(left)

    def _moved(self, current: Round, version: Version) -> Progress:
        """How far a table has come with the round; offsets move only forward."""
        offsets = dict(version.progress.offsets)
        for one in current.ranges:
            offsets[one.partition] = max(offsets.get(one.partition, 0), one.end_offset)
        mark = version.progress.topic_mark if current.topic_mark is None else current.topic_mark
        return Progress(offsets, mark)


def _commit(table: Table, version: Version, change: Change, *, is_append: bool) -> None:
    """Commit; what only appends, also if others have changed all but the offsets meanwhile."""
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
    raise CommitConflictError(
        f"{table.name}: others were faster {COMMIT_ATTEMPTS_MAX} times in a row"
    )
