"""Records of job runs, as small JSON objects in the bucket.

    {namespace}/_jobs/{job}/{start in ms, 13 digits}-{run, 8 hexadecimal digits}.json

Jobs are short-lived processes, so each run leaves a record for the console, its metrics and
operators. Invariants: a record is one object, written only by its own run, while it runs and when
it ends. Nothing else depends on it, and unreadable records are skipped. The newest `RUNS_MAX`
records of each job are kept. All texts and tables in a record are bounded.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import list_objects
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.json import DECODE_ERRORS

logger = get_logger(__name__)

VERSION: Final = 1

RUNS_MAX: Final = 100
"""Records kept per job."""
LISTED_MAX: Final = 10_000
"""Limit of listed keys: a hundred jobs, or fewer whose records were not pruned."""
READS_MAX: Final = 16
"""Limit of concurrent reads."""
TOPICS_MAX: Final = 1_000
DETAILS_MAX: Final = 100
TEXT_MAX: Final = 1_000

Detail = str | int | float


class Outcome(StrEnum):
    """The state or result of a run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class TopicRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Results of a run for one topic; None if the job does not report the value."""

    records_in: int | None = None
    records_out: int | None = None
    size_bytes: int | None = None
    newest_timestamp_ms: int | None = None
    """Timestamp of the newest record that was processed; shows how fresh the result is."""
    details: dict[str, Detail] = {}


class JobRun(msgspec.Struct, frozen=True):
    """One run of a job."""

    job: str
    run: str
    """Eight hexadecimal digits, to distinguish runs that start in the same millisecond."""
    started_at_ms: int
    outcome: Outcome = Outcome.RUNNING
    updated_at_ms: int = 0
    """When the record was written. A running job that stopped updating it was killed."""
    ended_at_ms: int | None = None
    error: str = ""
    """Why it failed."""
    topics: tuple[str, ...] = ()
    """The topics of the run; empty means all."""
    records_in: int | None = None
    records_out: int | None = None
    size_bytes: int | None = None
    """Bytes written, or read by jobs that only read."""
    newest_timestamp_ms: int | None = None
    by_topic: dict[str, TopicRun] = {}
    details: dict[str, Detail] = {}
    """Other results, with the names of the job's own summary."""
    version: int = VERSION

    @property
    def seconds(self) -> float:
        """Duration of the run, or of its part up to the last update."""
        return max((self.ended_at_ms or self.updated_at_ms) - self.started_at_ms, 0) / 1000


def encode(run: JobRun) -> bytes:
    """Encode a record, truncated to its limits."""
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
    except DECODE_ERRORS as error:
        raise DamagedObjectError(key, str(error)) from None
    if run.version != VERSION:
        raise DamagedObjectError(key, f"version {run.version} is unknown")
    return run


class JobRuns:
    """The job runs of a namespace."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    async def write(self, run: JobRun) -> None:
        """Write or update a record; at the end of a run, delete old records."""
        key = object_keys.job_run_key(self._namespace, run.job, run.started_at_ms, run.run)
        await self._store.put(key, [encode(run)], create=False)
        if run.outcome is not Outcome.RUNNING:
            await self._prune(run.job)

    async def jobs(self) -> list[str]:
        """The names of all jobs with records."""
        return sorted({ref.job for ref in await self._refs()})

    async def newest(self, job: str | None = None, *, limit: int = 20) -> list[JobRun]:
        """The newest runs of one job or of all jobs, newest first."""
        refs = await self._refs(job)
        refs.sort(key=lambda ref: (ref.started_at_ms, ref.run), reverse=True)
        return await self._read(refs[: max(limit, 0)])

    async def _refs(self, job: str | None = None) -> list[object_keys.JobRunRef]:
        prefix = object_keys.jobs_root(self._namespace) + (f"{job}/" if job else "")
        refs: list[object_keys.JobRunRef] = []
        async for ref, _ in list_objects(self._store, self._namespace, prefix):
            if isinstance(ref, object_keys.JobRunRef):
                refs.append(ref)
            if len(refs) >= LISTED_MAX:
                logger.warning("too many run records, the rest is ignored", limit=LISTED_MAX)
                break
        return refs

    async def _read(self, refs: Sequence[object_keys.JobRunRef]) -> list[JobRun]:
        async def read(ref: object_keys.JobRunRef) -> JobRun | None:
            key = object_keys.job_run_key(self._namespace, ref.job, ref.started_at_ms, ref.run)
            try:
                return decode(key, await self._store.get(key))
            except ObjectNotFoundError:
                return None  # Pruned since the listing.
            except DamagedObjectError as error:
                logger.warning("damaged run record", key=key, reason=error.reason)
                return None

        runs = await map_limited(read, refs, READS_MAX)
        return [run for run in runs if run is not None]

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
