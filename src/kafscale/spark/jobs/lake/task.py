"""The task of the lake job: reads offset ranges, and writes files of tables.

The result for the driver is small: file names, counts and sampled timestamps. Files are not part of
a table before the driver commits them, so a task may be repeated or killed at any time.

If values have columns that the table lacks, the task writes nothing and returns the columns; the
driver adds them and runs the task again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake.upsert import DELETED, RowIdentity, lacks_key, staged_schema
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.location import Location
from kafscale.spark.read.task import read_task
from kafscale.spark.tables.base import DataFile, Files
from kafscale.spark.tables.data_files import StagedFiles
from kafscale.spark.tables.writer import Encoding, FileWriter
from kafscale.spark.values import BadRow, ValueDecoder, ValueSpec, conform, extend


@dataclass(frozen=True)
class TopicWork:
    """How a task writes the records of a topic."""

    schema: pa.Schema
    """Of the rows; `files` may have more details of the same columns."""
    files: Files | None
    """Where rows are written; None to discover columns only."""
    values: ValueSpec | None = None
    dead_letters: Files | None = None
    """Where records are written that cannot be decoded."""
    dead_letter_offsets: Mapping[int, int] = field(default_factory=dict)
    """The offset of each partition before which dead letters are committed already."""
    encoding: Encoding = field(default_factory=Encoding)
    identity: RowIdentity | None = None
    """For `upsert`: rows are staged first."""


@dataclass(frozen=True)
class LakeItem:
    """The work of one task."""

    location: Location
    task: Task
    works: Mapping[str, TopicWork]
    """By topic."""
    fail_on_data_loss: bool = True


class TopicResult(msgspec.Struct):
    topic: str
    files: list[DataFile] = []
    dead_letters: list[DataFile] = []
    record_count: int = 0
    dead_letter_count: int = 0
    missing_schema: pa.Schema | None = None
    """The schema that the table needs first; nothing was written then."""
    timestamps: list[tuple[int, float]] = []
    """Sampled timestamps, and the number of records that each stands for."""


def write_files(item: LakeItem) -> list[TopicResult]:
    """Run a task."""
    return [
        _TopicWriter(topic, work).write(_records(item, topic, work))
        for topic, work in item.works.items()
    ]


def _records(item: LakeItem, topic: str, work: TopicWork) -> Iterator[pa.RecordBatch]:
    slices = tuple(part for part in item.task.slices if part.topic == topic)
    columns = lake_rows.RAW if work.values is None else lake_rows.DECODABLE
    return read_task(item.location, Task(slices), columns, fail_on_data_loss=item.fail_on_data_loss)


class _TopicWriter:
    """Writes the records of a topic in one task."""

    def __init__(self, topic: str, work: TopicWork) -> None:
        self._work = work
        self._result = TopicResult(topic)
        self._schema = work.schema
        self._target = work.files
        if work.files is not None and work.identity is not None:
            self._target = StagedFiles(staged_schema(work.schema), work.files.filesystem)
        self._rows = FileWriter(self._target, work.encoding) if self._target else None
        self._dead_letters = (
            FileWriter(work.dead_letters, Encoding()) if work.dead_letters else None
        )
        self._decoder: ValueDecoder | None = None
        if work.values is not None:
            self._decoder = lake_rows.decoder_for(work.values, work.schema)
        self._time_column = lake_rows.time_column(is_decoded=self._decoder is not None)

    def write(self, batches: Iterator[pa.RecordBatch]) -> TopicResult:
        for records in batches:
            self._sample(records)
            good, rows = self._decode(records)
            self._schema = extend(self._schema, rows.schema)
            if self._lacks_columns:
                continue  # The task runs again; collect all missing columns first.
            if self._work.identity is not None:
                rows = self._mark_tombstones(good, rows, self._work.identity)
            assert self._rows is not None
            assert self._target is not None
            self._result.record_count += rows.num_rows
            self._rows.add(conform(rows, self._target.schema), rows.column(self._time_column))
        return self._finish()

    @property
    def _lacks_columns(self) -> bool:
        """Whether the table needs columns before anything can be written."""
        return self._rows is None or self._schema != self._work.schema

    def _decode(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the records that can be decoded, and their rows."""
        if self._decoder is None:
            return records, records
        decoded = self._decoder.decode(records.column("value"))
        if decoded.bad:
            self._add_dead_letters(records, decoded.bad)
            records = records.filter(decoded.good)
        values, bad = lake_rows.drop_invalid_fields(decoded.table, self._work.schema)
        if bad:
            self._add_dead_letters(records, bad)
            is_good = np.ones(records.num_rows, bool)
            is_good[[row.row for row in bad]] = False
            records, values = (one.filter(pa.array(is_good)) for one in (records, values))
        return records, lake_rows.build_rows(records, values)

    def _mark_tombstones(
        self, records: pa.RecordBatch, rows: pa.RecordBatch, identity: RowIdentity
    ) -> pa.RecordBatch:
        """Return the rows that have a key, with the column `DELETED`."""
        rows = conform(rows, self._work.schema)
        rows = rows.append_column(DELETED, records.column("value").is_null())
        lacking = lacks_key(rows, identity.columns, identity.record_key)
        indexes = lacking.to_numpy(zero_copy_only=False).nonzero()[0].tolist()
        if not indexes:
            return rows
        self._add_dead_letters(
            records, [BadRow(index, "the record has no key") for index in indexes]
        )
        return rows.filter(pc.invert(lacking))

    def _add_dead_letters(self, records: pa.RecordBatch, bad: Sequence[BadRow]) -> None:
        if self._dead_letters is None:
            return
        letters = lake_rows.dead_letters(records, bad, self._work.dead_letter_offsets)
        self._result.dead_letter_count += letters.num_rows
        self._dead_letters.add(letters, letters.column("timestamp"))

    def _sample(self, records: pa.RecordBatch) -> None:
        timestamps = lake_rows.sample_timestamps(records.column("timestamp"))
        weight = records.num_rows / len(timestamps)
        self._result.timestamps += [(timestamp_ms, weight) for timestamp_ms in timestamps]

    def _finish(self) -> TopicResult:
        if self._lacks_columns:
            for writer in (self._rows, self._dead_letters):
                if writer is not None:
                    writer.abandon()
            return TopicResult(self._result.topic, missing_schema=self._schema)
        assert self._rows is not None
        self._result.files = list(self._rows.finish())
        if self._dead_letters is not None:
            self._result.dead_letters = list(self._dead_letters.finish())
        return self._result
