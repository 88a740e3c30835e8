"""What one task of the lake job does: offset ranges in, files of tables out.

Bytes are handled here, and what goes back to the driver is small: the names of files, counts, and
some times for the figures. Nothing that is written here counts before the driver commits it, so
a task may be repeated, or be given up half-way, at any time.

Where values have columns that the table lacks, the task writes nothing, and tells which; the driver
adds them, and the task is done again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafscale.spark.jobs.lake import keys, upsert
from kafscale.spark.jobs.lake import rows as lake_rows
from kafscale.spark.jobs.lake.keys import Identity
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.task import read_task
from kafscale.spark.source.location import Location
from kafscale.spark.tables.base import DataFile, Files
from kafscale.spark.tables.staging import StagedFiles
from kafscale.spark.tables.writer import Encoding, FileWriter
from kafscale.spark.values import BadRow, ValueDecoder, ValueSpec, conform, extend


@dataclass(frozen=True)
class TopicWork:
    """What is to become of a topic's records."""

    schema: pa.Schema
    """Of the table's rows; the files may know more about the same columns."""
    files: Files | None
    """Where rows go; None to find out only which columns they have."""
    values: ValueSpec | None = None
    dead: Files | None = None
    """Where records go that cannot be decoded."""
    dead_to: Mapping[int, int] = field(default_factory=dict)
    """Up to which offsets they are there already."""
    encoding: Encoding = field(default_factory=Encoding)
    identity: Identity | None = None
    """What rows are known by, if they are to take the place of others; they are staged then."""


@dataclass(frozen=True)
class LakeItem:
    """The work of one task."""

    location: Location
    task: Task
    works: Mapping[str, TopicWork]
    """By topic, for those of the task."""
    fail_on_data_loss: bool = True


class TopicResult(msgspec.Struct):
    """What a task has made of a topic."""

    topic: str
    files: list[DataFile] = []
    dead: list[DataFile] = []
    record_count: int = 0
    dead_count: int = 0
    missing: pa.Schema | None = None
    """The columns that the table has to have first; nothing was written then."""
    times: list[tuple[int, float]] = []
    """When some records were made, and for how many each stands."""


def write(item: LakeItem) -> list[TopicResult]:
    """Do the work of a task."""
    return [
        _Topic(topic, work).write(_records(item, topic, work)) for topic, work in item.works.items()
    ]


def _records(item: LakeItem, topic: str, work: TopicWork) -> Iterator[pa.RecordBatch]:
    slices = tuple(part for part in item.task.slices if part.topic == topic)
    columns = lake_rows.RAW if work.values is None else lake_rows.DECODABLE
    return read_task(item.location, Task(slices), columns, fail_on_data_loss=item.fail_on_data_loss)


class _Topic:
    """A topic's records on their way through one task."""

    def __init__(self, topic: str, work: TopicWork) -> None:
        self._work = work
        self._result = TopicResult(topic)
        self._schema = work.schema
        self._target = work.files
        if work.files is not None and work.identity is not None:
            self._target = StagedFiles(upsert.staged_schema(work.schema), work.files.filesystem)
        self._rows = FileWriter(self._target, work.encoding) if self._target else None
        self._dead = FileWriter(work.dead, Encoding()) if work.dead else None
        self._decoder: ValueDecoder | None = None
        if work.values is not None:
            self._decoder = lake_rows.decoder_for(work.values, work.schema)
        self._time = lake_rows.time_column(is_decoded=self._decoder is not None)

    def write(self, batches: Iterator[pa.RecordBatch]) -> TopicResult:
        for records in batches:
            self._sample(records)
            good, rows = self._shaped(records)
            self._schema = extend(self._schema, rows.schema)
            if self._is_missing:
                continue  # It has to be done again; meanwhile, look what else there is.
            if self._work.identity is not None:
                rows = self._keyed(good, rows, self._work.identity)
            assert self._rows is not None
            assert self._target is not None
            self._result.record_count += rows.num_rows
            self._rows.add(conform(rows, self._target.schema), rows.column(self._time))
        return self._finish()

    @property
    def _is_missing(self) -> bool:
        """Whether the table has to change before anything can be written."""
        return self._rows is None or self._schema != self._work.schema

    def _shaped(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The records that are good, and their rows."""
        if self._decoder is None:
            return records, records
        decoded = self._decoder.decode(records.column("value"))
        if decoded.bad:
            self._bury(records, decoded.bad)
            records = records.filter(decoded.good)
        values, bad = lake_rows.bad_fields(decoded.table, self._work.schema)
        if bad:
            self._bury(records, bad)
            is_good = np.ones(records.num_rows, bool)
            is_good[[row.row for row in bad]] = False
            records, values = (one.filter(pa.array(is_good)) for one in (records, values))
        return records, lake_rows.good_rows(records, values)

    def _keyed(
        self, records: pa.RecordBatch, rows: pa.RecordBatch, identity: Identity
    ) -> pa.RecordBatch:
        """The rows with a key, and which of them are tombstones."""
        rows = conform(rows, self._work.schema)
        rows = rows.append_column(keys.DELETED, records.column("value").is_null())
        lacking = keys.incomplete(rows, identity.columns, identity.record_key)
        indexes = lacking.to_numpy(zero_copy_only=False).nonzero()[0].tolist()
        if not indexes:
            return rows
        self._bury(records, [BadRow(index, "it has no key") for index in indexes])
        return rows.filter(pc.invert(lacking))

    def _bury(self, records: pa.RecordBatch, bad: Sequence[BadRow]) -> None:
        if self._dead is None:
            return
        letters = lake_rows.dead_letters(records, bad, self._work.dead_to)
        self._result.dead_count += letters.num_rows
        self._dead.add(letters, letters.column("timestamp"))

    def _sample(self, records: pa.RecordBatch) -> None:
        times = lake_rows.sampled_times(records.column("timestamp"))
        weight = records.num_rows / len(times)
        self._result.times += [(time_ms, weight) for time_ms in times]

    def _finish(self) -> TopicResult:
        if self._is_missing:
            for writer in (self._rows, self._dead):
                if writer is not None:
                    writer.abandon()
            return TopicResult(self._result.topic, missing=self._schema)
        assert self._rows is not None
        self._result.files = list(self._rows.finish())
        self._result.dead = list(self._dead.finish()) if self._dead else []
        return self._result
