"""Writes the run record of a job to the bucket that the job works on.

    with record_run(location, "merge", topics) as record:
        summary = merge.run(spark, settings, clock=clock, random=random)
        record.set_summary(summary)

The record is written when the run starts, periodically while it runs, and when it ends or fails.
Invariants: a record that cannot be written is logged and does not fail the job; a write takes at
most `WRITE_S_MAX`. Exceptions of other libraries may contain secrets, such as the URL of a catalog,
so the record has only their type.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import SystemRandom
from typing import Final

import msgspec

from kafscale.aio.clock import clock
from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.storage.job_runs import Detail, JobRun, JobRuns, Outcome, TopicRun
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

WRITE_S_MAX: Final = 10.0
PROGRESS_INTERVAL_MS: Final = 60_000
"""How often a running job updates its record."""

RECORDS_IN: Final = ("recordsBefore", "records")
RECORDS_OUT: Final = ("recordsAfter", "written", "records")
SIZE_BYTES: Final = ("bytesAfter", "writtenBytes", "madeBytes", "sizeBytes", "bytes")
"""Column names in job summaries, in order of preference."""

Clock = Callable[[], int]


class RunRecord:
    """The record of a run in progress."""

    def __init__(self, location: Location | None, run: JobRun, clock: Clock = clock) -> None:
        """Without a location, the record is not written."""
        self._location = location
        self._clock = clock
        self._written_ms = 0
        self.run = run

    def set_summary(self, summary: JobResult) -> None:
        """Take totals from the summary of a run; problems make the run a failure."""
        self.run = with_summary(self.run, summary)

    def update_progress(self, summary: JobResult) -> None:
        """Take totals from a run in progress, and write them every `PROGRESS_INTERVAL_MS`."""
        if self._clock() - self._written_ms >= PROGRESS_INTERVAL_MS:
            self.run = with_summary(self.run, summary)
            self.write()

    def set_totals(
        self,
        details: Mapping[str, Detail],
        by_topic: Mapping[str, TopicRun],
        problems: Sequence[str] = (),
    ) -> None:
        """Set the totals of a job that has no summary."""
        times_ms = (topic.newest_timestamp_ms or 0 for topic in by_topic.values())
        self.run = msgspec.structs.replace(
            self.run,
            topics=self.run.topics or tuple(by_topic),
            error=_describe(problems),
            records_in=sum(topic.records_in or 0 for topic in by_topic.values()),
            size_bytes=sum(topic.size_bytes or 0 for topic in by_topic.values()),
            newest_timestamp_ms=max(times_ms, default=0) or None,
            by_topic=dict(by_topic),
            details=dict(details),
        )

    def end(self, error: str = "") -> None:
        self.run = msgspec.structs.replace(
            self.run,
            outcome=Outcome.FAILED if error else Outcome.SUCCEEDED,
            ended_at_ms=self._clock(),
            error=error,
        )
        self.write()

    def write(self) -> None:
        if self._location is None:
            return
        self._written_ms = self._clock()
        run = msgspec.structs.replace(self.run, updated_at_ms=self._written_ms)
        namespace = self._location.namespace
        try:
            with self._location.open() as store:
                store.run(lambda objects: _write(objects, namespace, run))
        except Exception as error:  # noqa: BLE001 - the record never fails the job.
            logger.warning("run record not written", job=run.job, reason=str(error))


@contextmanager
def record_run(
    location: Location | None, job: str, topics: Sequence[str] = (), *, clock: Clock = clock
) -> Iterator[RunRecord]:
    """Record the run of a job inside the block; without a location, write nothing."""
    run = JobRun(
        job=job,
        run=f"{SystemRandom().getrandbits(32):08x}",
        started_at_ms=clock(),
        topics=tuple(topics),
    )
    record = RunRecord(location, run, clock)
    record.write()
    try:
        yield record
    except BaseException as error:
        record.end(_reason(error))
        raise
    record.end(record.run.error)


def with_summary(run: JobRun, summary: JobResult) -> JobRun:
    """Return the record of a run with the totals of a summary."""
    rows = [dict(zip(summary.columns, row, strict=True)) for row in summary.rows]
    by_topic: dict[str, list[dict[str, Cell]]] = {}
    for row in rows:
        # Jobs that work on a single topic name it once, in the facts.
        if isinstance(topic := row.get("topic", summary.facts.get("topic")), str):
            by_topic.setdefault(topic, []).append(row)
    return msgspec.structs.replace(
        run,
        topics=run.topics or tuple(by_topic),
        error=_describe(summary.problems),
        records_in=_total(rows, RECORDS_IN),
        records_out=_total(rows, RECORDS_OUT),
        size_bytes=_total(rows, SIZE_BYTES),
        newest_timestamp_ms=max(summary.newest_ms.values(), default=None),
        by_topic={
            topic: TopicRun(
                records_in=_total(topic_rows, RECORDS_IN),
                records_out=_total(topic_rows, RECORDS_OUT),
                size_bytes=_total(topic_rows, SIZE_BYTES),
                newest_timestamp_ms=summary.newest_ms.get(topic),
            )
            for topic, topic_rows in by_topic.items()
        },
        details={
            name: str(cell).lower() if isinstance(cell, bool) else cell
            for name, cell in summary.facts.items()
            if cell is not None
        },
    )


def _describe(problems: Sequence[str]) -> str:
    """Return problems as one line; empty if there are none."""
    first = "".join(problems[:1])
    return f"{len(problems)} problems, the first: {first}" if len(problems) > 1 else first


def _total(rows: Iterable[Mapping[str, Cell]], names: Sequence[str]) -> int | None:
    """Return the sum of the first of these columns that exists; None if none exists."""
    rows = list(rows)
    for name in names:
        if any(name in row for row in rows):
            return sum(int(row.get(name) or 0) for row in rows)
    return None


def _reason(error: BaseException) -> str:
    if isinstance(error, KafscaleError):
        return str(error) or type(error).__name__
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted"
    return f"{type(error).__name__}: see the output of the job"


async def _write(objects: ObjectStore, namespace: str, run: JobRun) -> None:
    async with asyncio.timeout(WRITE_S_MAX):
        await JobRuns(objects, namespace).write(run)
