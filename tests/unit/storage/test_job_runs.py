"""Job run records: written, read newest first, bounded."""

import asyncio

import msgspec
import pytest

from kafscale.errors import DamagedObjectError
from kafscale.metadata.topics import names
from kafscale.storage import job_runs
from kafscale.storage.formats import object_keys
from kafscale.storage.job_runs import (
    DETAILS_MAX,
    RUNS_MAX,
    TEXT_MAX,
    TOPICS_MAX,
    JobRun,
    JobRuns,
    Outcome,
    TopicRun,
)
from kafscale.storage.objects.memory import MemoryObjectStore

START_MS = 1_700_000_000_000


def run_of(number=0, job="lake", **other):
    begun = {"job": job, "run": f"{number:08x}", "started_at_ms": START_MS + number}
    return JobRun(**(begun | {"outcome": Outcome.SUCCEEDED} | other))


def with_store(scenario):
    async def body():
        store = MemoryObjectStore(lambda: 0)
        await scenario(store, JobRuns(store, "default"))

    asyncio.run(body())


def test_record_round_trip():
    ended = run_of(
        7,
        ended_at_ms=START_MS + 2007,
        topics=("orders",),
        records_in=5,
        records_out=4,
        size_bytes=100,
        newest_timestamp_ms=START_MS,
        details={"seconds": 1.5, "target": "x"},
        by_topic={"orders": TopicRun(records_in=5, details={"commits": 2})},
    )
    assert ended.seconds == 2.0

    async def scenario(store, runs):
        await runs.write(ended)
        assert await runs.newest() == [ended]
        key = "default/_jobs/lake/1700000000007-00000007.json"
        assert msgspec.json.decode(await store.get(key))["outcome"] == "succeeded"

    with_store(scenario)


def test_run_overwrites_its_own_record():
    async def scenario(_store, runs):
        await runs.write(run_of(outcome=Outcome.RUNNING, updated_at_ms=START_MS + 500))
        assert [(run.outcome, run.seconds) for run in await runs.newest()] == [("running", 0.5)]
        await runs.write(run_of(outcome=Outcome.FAILED, error="there is no topic"))
        assert [run.error for run in await runs.newest()] == ["there is no topic"]

    with_store(scenario)


def test_newest_runs_come_first_for_one_job_or_all():
    async def scenario(_store, runs):
        for number in (3, 1, 2):
            await runs.write(run_of(number))
            await runs.write(run_of(number + 10, "merge"))
        assert [run.run[-1] for run in await runs.newest("lake")] == ["3", "2", "1"]
        newest = [(run.job, run.run[-1]) for run in await runs.newest(limit=4)]
        assert newest == [("merge", "d"), ("merge", "c"), ("merge", "b"), ("lake", "3")]
        assert await runs.newest(limit=0) == []
        assert await runs.jobs() == ["lake", "merge"]
        assert await runs.newest("absent") == []

    with_store(scenario)


def test_old_records_are_pruned_per_job():
    async def scenario(_store, runs):
        await runs.write(run_of(0, "merge"))
        for number in range(RUNS_MAX + 3):
            await runs.write(run_of(number))
        result = await runs.newest("lake", limit=1000)
        assert len(result) == RUNS_MAX
        assert (result[0].started_at_ms, result[-1].started_at_ms) == (
            START_MS + RUNS_MAX + 2,
            START_MS + 3,
        )
        assert len(await runs.newest("merge")) == 1

    with_store(scenario)


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"{}",
        b'{"job":"lake","run":"0","started_at_ms":"then"}',
        b'{"job":"\xff"}',
        b'{"unknown":' + b"[" * 100_000,
    ],
)
def test_unreadable_records_are_skipped(data):
    async def scenario(store, runs):
        await store.put(object_keys.job_run_key("default", "lake", START_MS, "0f0f0f0f"), [data])
        await store.put("default/_jobs/lake/note.txt", [b"by hand"])
        await runs.write(run_of(1))
        assert [run.run for run in await runs.newest()] == ["00000001"]

    with_store(scenario)
    with pytest.raises(DamagedObjectError, match="some-key"):
        job_runs.decode("some-key", data)


def test_records_of_later_versions_are_skipped():
    with pytest.raises(DamagedObjectError, match="version 9"):
        job_runs.decode("k", job_runs.encode(run_of(version=9)))


def test_record_is_truncated_to_its_limits():
    large = run_of(
        error="e" * 10_000,
        topics=tuple(f"t{n}" for n in range(3000)),
        by_topic={f"t{n}": TopicRun() for n in range(3000)},
        details={f"d{n}": "x" * 10_000 for n in range(3000)},
    )
    decoded = job_runs.decode("k", job_runs.encode(large))
    assert (len(decoded.error), len(decoded.topics), len(decoded.by_topic)) == (
        TEXT_MAX,
        TOPICS_MAX,
        TOPICS_MAX,
    )
    assert {len(str(text)) for text in decoded.details.values()} == {TEXT_MAX}
    assert len(decoded.details) == DETAILS_MAX


def test_topics_cannot_use_the_jobs_directory():
    assert object_keys.JOBS_DIRECTORY in object_keys.RESERVED_TOPICS
    assert names.RESERVED >= object_keys.RESERVED_TOPICS
    assert object_keys.parse_segment("ns", f"ns/_jobs/0/segment-{0:020d}.kfs") is None


@pytest.mark.parametrize(
    "key",
    [
        "ns/_jobs/lake/170000000000-0f0f0f0f.json",
        "ns/_jobs/lake/1700000000000-0f0f0f0.json",
        "ns/_jobs/Lake/1700000000000-0f0f0f0f.json",
        "ns/_jobs/a/b/1700000000000-0f0f0f0f.json",
        "other/_jobs/lake/1700000000000-0f0f0f0f.json",
        "ns/_jobs/lake/1700000000000-0f0f0f0f.json.tmp",
    ],
)
def test_other_keys_are_not_records(key):
    assert object_keys.parse_job_run("ns", key) is None
