"""The record that a job leaves of its run, beside the records that it works on.

    with recorded(location, "merge", topics) as record:
        summary = merge.run(spark, settings, clock=clock, random=random)
        record.done(summary)

It is written when the run begins, now and then while it goes on, and when it ends, however it ends.
The law: a record that cannot be written is logged and otherwise no concern of the job; nobody waits
for it longer than `WRITE_S_MAX`. What others than Kafscale raise may hold secrets, such as the
address of a catalog, so only its kind is told.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import SystemRandom
from typing import Final

import msgspec

from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.spark.runtime.job_result import Cell, JobResult
from kafscale.spark.source.location import Location
from kafscale.storage.job_runs import Detail, JobRun, JobRuns, Outcome, TopicRun
from kafscale.storage.objects.store import ObjectStore

log = get_logger(__name__)

WRITE_S_MAX: Final = 10.0
PROGRESS_INTERVAL_MS: Final = 60_000
"""How often a job that goes on writes its record over."""

RECORDS_IN: Final = ("recordsBefore", "records")
RECORDS_OUT: Final = ("recordsAfter", "written", "records")
SIZE_BYTES: Final = ("bytesAfter", "writtenBytes", "madeBytes", "sizeBytes", "bytes")
"""What the figures are called in the summaries of jobs; the first that is there counts."""

Clock = Callable[[], int]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class RunRecord:
    """The record of a run that goes on."""

    def __init__(self, location: Location | None, begun: JobRun, clock: Clock = now_ms) -> None:
        """Without a location, nothing is written."""
        self._location = location
        self._clock = clock
        self._written_ms = 0
        self.run = begun

    def done(self, summary: JobResult) -> None:
        """Take the figures of a run from what it says; problems are a failure."""
        self.run = with_figures(self.run, summary)

    def progress(self, summary: JobResult) -> None:
        """The same, of a run that goes on; written where that was not done for a while."""
        if self._clock() - self._written_ms >= PROGRESS_INTERVAL_MS:
            self.run = with_figures(self.run, summary)
            self.write()

    def tell(
        self,
        details: Mapping[str, Detail],
        by_topic: Mapping[str, TopicRun],
        problems: Sequence[str] = (),
    ) -> None:
        """Take the figures of a job that says them in other ways than by a summary."""
        times_ms = (topic.newest_timestamp_ms or 0 for topic in by_topic.values())
        self.run = msgspec.structs.replace(
            self.run,
            topics=self.run.topics or tuple(by_topic),
            error=_told(problems),
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
        except Exception as error:  # noqa: BLE001 - whatever it is, the job is not to suffer from it.
            log.warning("the record of a run was not written", job=run.job, reason=str(error))


@contextmanager
def recorded(
    location: Location | None, job: str, topics: Sequence[str] = (), *, clock: Clock = now_ms
) -> Iterator[RunRecord]:
    """Write a record of what happens inside the block; without a location, do not."""
    begun = JobRun(
        job=job,
        run=f"{SystemRandom().getrandbits(32):08x}",
        started_at_ms=clock(),
        topics=tuple(topics),
    )
    record = RunRecord(location, begun, clock)
    record.write()
    try:
        yield record
    except BaseException as error:
        record.end(_reason(error))
        raise
    record.end(record.run.error)


def with_figures(run: JobRun, summary: JobResult) -> JobRun:
    """The record of a run, with the figures of a summary."""
    rows = [dict(zip(summary.columns, row, strict=True)) for row in summary.rows]
    by_topic: dict[str, list[dict[str, Cell]]] = {}
    for row in rows:
        # Jobs of one topic say once which it is.
        if isinstance(topic := row.get("topic", summary.facts.get("topic")), str):
            by_topic.setdefault(topic, []).append(row)
    return msgspec.structs.replace(
        run,
        topics=run.topics or tuple(by_topic),
        error=_told(summary.problems),
        records_in=_total(rows, RECORDS_IN),
        records_out=_total(rows, RECORDS_OUT),
        size_bytes=_total(rows, SIZE_BYTES),
        newest_timestamp_ms=max(summary.newest_ms.values(), default=None),
        by_topic={
            topic: TopicRun(
                records_in=_total(found, RECORDS_IN),
                records_out=_total(found, RECORDS_OUT),
                size_bytes=_total(found, SIZE_BYTES),
                newest_timestamp_ms=summary.newest_ms.get(topic),
            )
            for topic, found in by_topic.items()
        },
        details={
            name: str(cell).lower() if isinstance(cell, bool) else cell
            for name, cell in summary.facts.items()
            if cell is not None
        },
    )


def _told(problems: Sequence[str]) -> str:
    """Problems as one sentence; nothing, where there are none."""
    first = "".join(problems[:1])
    return f"{len(problems)} problems, the first: {first}" if len(problems) > 1 else first


def _total(rows: Iterable[Mapping[str, Cell]], names: Sequence[str]) -> int | None:
    """The sum of the first column that is there; None if there is none."""
    rows = list(rows)
    for name in names:
        if any(name in row for row in rows):
            return sum(int(row.get(name) or 0) for row in rows)
    return None


def _reason(error: BaseException) -> str:
    if isinstance(error, KafscaleError):
        return str(error) or type(error).__name__
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "it was interrupted"
    return f"{type(error).__name__}: what the job printed tells more"


async def _write(objects: ObjectStore, namespace: str, run: JobRun) -> None:
    async with asyncio.timeout(WRITE_S_MAX):
        await JobRuns(objects, namespace).write(run)
