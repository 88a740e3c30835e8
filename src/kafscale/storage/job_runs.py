"""Records of the runs of jobs: how each went, as small objects in the bucket.

    {namespace}/_jobs/{job}/{start in ms, 13 digits}-{run, 8 hexadecimal digits}.json

Jobs come and go, and nobody can ask them later; so each leaves a record, in JSON, for those who
look after them: the console, its metrics, people with a bucket browser. The laws: a record is one
object, written over by its own run only, while it runs and when it ends; nothing else depends on
it, and what cannot be read is passed over; of each job the newest `RUNS_MAX` are kept. Every text
and table in a record is bounded, however many topics there are.
"""

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from kafscale.aio.gather import gather_or_cancel
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

VERSION: Final = 1

RUNS_MAX: Final = 100
"""How many records of each job are kept."""
LISTED_MAX: Final = 10_000
"""How many names are looked at: a hundred jobs, or fewer that are pruned by nobody."""
READS_MAX: Final = 16
"""How many records are read at once."""
TOPICS_MAX: Final = 1_000
DETAILS_MAX: Final = 100
TEXT_MAX: Final = 1_000

Detail = str | int | float


class Outcome(StrEnum):
    """How a run ended, if it did."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class TopicRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run has done for one topic; None where the job does not tell."""

    records_in: int | None = None
    records_out: int | None = None
    size_bytes: int | None = None
    newest_timestamp_ms: int | None = None
    """The time of the newest record that was handled, which tells how fresh the result is."""
    details: dict[str, Detail] = {}


class JobRun(msgspec.Struct, frozen=True):
    """One run of a job."""

    job: str
    run: str
    """Eight hexadecimal digits, which tell runs apart that begin at the same time."""
    started_at_ms: int
    outcome: Outcome = Outcome.RUNNING
    updated_at_ms: int = 0
    """When this was written. A run that says it goes on, and has not for long, was killed."""
    ended_at_ms: int | None = None
    error: str = ""
    """Why it failed, in a sentence."""
    topics: tuple[str, ...] = ()
    """Those that it was asked for, or has met; none is all of them."""
    records_in: int | None = None
    records_out: int | None = None
    size_bytes: int | None = None
    """Written; or read, by jobs that write nothing."""
    newest_timestamp_ms: int | None = None
    by_topic: dict[str, TopicRun] = {}
    details: dict[str, Detail] = {}
    """Whatever else the job says about itself, by the names of its own summary."""
    version: int = VERSION

    @property
    def seconds(self) -> float:
        """How long it took, or has taken when it last told."""
        return max((self.ended_at_ms or self.updated_at_ms) - self.started_at_ms, 0) / 1000


def encode(run: JobRun) -> bytes:
    """A record as it is stored, cut down to what a record may hold."""
    return msgspec.json.encode(
        msgspec.structs.replace(
            run,
            error=run.error[:TEXT_MAX],
            topics=run.topics[:TOPICS_MAX],
            by_topic=dict(list(run.by_topic.items())[:TOPICS_MAX]),
            details=_bounded(run.details),
        )
    )


def decode(key: str, data: bytes | memoryview) -> JobRun:
    try:
        run = msgspec.json.decode(data, type=JobRun)
    except msgspec.DecodeError as error:
        raise DamagedObjectError(key, str(error)) from None
    if run.version != VERSION:
        raise DamagedObjectError(key, f"version {run.version} is unknown")
    return run


class JobRuns:
    """The records in a namespace."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    async def write(self, run: JobRun) -> None:
        """Write a record, or write it over; one that has ended makes old ones go."""
        key = object_keys.job_run_key(self._namespace, run.job, run.started_at_ms, run.run)
        await self._store.put(key, [encode(run)], create=False)
        if run.outcome is not Outcome.RUNNING:
            await self._prune(run.job)

    async def jobs(self) -> list[str]:
        """The jobs that have left records, by name."""
        return sorted({ref.job for ref in await self._refs()})

    async def newest(self, job: str | None = None, *, limit: int = 20) -> list[JobRun]:
        """The newest runs of a job, or of all together, newest first."""
        refs = await self._refs(job)
        refs.sort(key=lambda ref: (ref.started_at_ms, ref.run), reverse=True)
        return await self._read(refs[: max(limit, 0)])

    async def last(self) -> dict[str, JobRun]:
        """The newest run of each job that has left any."""
        newest: dict[str, object_keys.JobRunRef] = {}
        for ref in await self._refs():  # Ascending, so that the last of each job stays.
            newest[ref.job] = ref
        return {run.job: run for run in await self._read(list(newest.values()))}

    async def _refs(self, job: str | None = None) -> list[object_keys.JobRunRef]:
        prefix = object_keys.jobs_root(self._namespace) + (f"{job}/" if job else "")
        refs: list[object_keys.JobRunRef] = []
        async for chunk in self._store.list(prefix):
            parsed = (object_keys.parse_job_run(self._namespace, item.key) for item in chunk)
            refs += [ref for ref in parsed if ref is not None]
            if len(refs) >= LISTED_MAX:
                logger.warning("more records of jobs than are looked at", limit=LISTED_MAX)
                break
        return refs

    async def _read(self, refs: Sequence[object_keys.JobRunRef]) -> list[JobRun]:
        reads = asyncio.Semaphore(READS_MAX)
        found: dict[object_keys.JobRunRef, JobRun] = {}

        async def read(ref: object_keys.JobRunRef) -> None:
            key = object_keys.job_run_key(self._namespace, ref.job, ref.started_at_ms, ref.run)
            try:
                async with reads:
                    found[ref] = decode(key, await self._store.get(key))
            except ObjectNotFoundError:
                pass  # It was one of the oldest, and is gone meanwhile.
            except DamagedObjectError as error:
                logger.warning("damaged record of a job", key=key, reason=error.reason)

        await gather_or_cancel(read(ref) for ref in refs)
        return [found[ref] for ref in refs if ref in found]

    async def _prune(self, job: str) -> None:
        old = (await self._refs(job))[:-RUNS_MAX]
        if old:
            keys = (
                object_keys.job_run_key(self._namespace, ref.job, ref.started_at_ms, ref.run)
                for ref in old
            )
            await self._store.delete(list(keys))


def _bounded(details: Mapping[str, Detail]) -> dict[str, Detail]:
    few = list(details.items())[:DETAILS_MAX]
    return {name: value[:TEXT_MAX] if isinstance(value, str) else value for name, value in few}
