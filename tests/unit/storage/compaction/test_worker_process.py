"""The process that compacts, and what happens when it ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doubles.local_worker import LocalWorker
from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.records import BatchView, Record, build
from kafscale.storage.compaction.messages import (
    Add,
    Added,
    Begin,
    Done,
    Finish,
    Finished,
    Note,
    Noted,
)
from kafscale.storage.compaction.worker import FRAME, NICENESS
from kafscale.storage.compaction.worker_process import COMMAND, WorkerProcess
from unit.storage.staged_segments import segment_of

COUNT = 3000
SEGMENT = b"".join(
    bytes(part)
    for part in segment_of(
        [
            BatchView(
                build(
                    [
                        Record(base + index, 1_750_000_000_000, b"%d" % (index % 700), b"v" * 500)
                        for index in range(1000)
                    ]
                )
            )
            for base in range(0, COUNT, 1000)
        ]
    ).parts
)


async def chunks():
    """The segment in parts, larger than a pipe's buffer and smaller."""
    for start in range(0, len(SEGMENT), 300_000):
        yield memoryview(SEGMENT)[start : start + 300_000]


async def compact(worker):
    results = [
        await worker.request(Begin(10**6, 1, 2, 4096)),
        await worker.request(Note("s", 0, COUNT), chunks(), len(SEGMENT)),
        await worker.request(Add("s", 0, COUNT), chunks(), len(SEGMENT)),
        await worker.request(Finish()),
    ]
    return [(reply, bytes(data)) for reply, data in results]


def test_process_does_what_the_cleaner_does():
    async def scenario():
        worker = WorkerProcess()
        try:
            results = await compact(worker)
            assert os.getpriority(os.PRIO_PROCESS, worker._process.pid) >= NICENESS
            assert await compact(worker) == results, "nothing is left of the log before"
        finally:
            worker.close()
        assert results == await compact(LocalWorker())
        assert [type(reply) for reply, _ in results] == [Done, Noted, Added, Finished]
        finished, _ = results[-1]
        assert (finished.count_before, finished.count_after) == (COUNT, 700)

    asyncio.run(scenario())


def test_damage_is_an_error_and_the_process_goes_on():
    async def garbage():
        yield memoryview(b"garbage" * 20)

    async def scenario():
        worker = WorkerProcess()
        try:
            await worker.request(Begin(10**6, 1, 2, 4096))
            process = worker._process
            with pytest.raises(DamagedObjectError, match="segment-1: magic"):
                await worker.request(Note("segment-1", 0, 9), garbage(), 140)
            await compact(worker)
            assert worker._process is process
        finally:
            worker.close()

    asyncio.run(scenario())


def test_a_process_that_ends_is_started_again():
    async def scenario():
        worker = WorkerProcess()
        try:
            await worker.request(Begin(10**6, 1, 2, 4096))
            worker._process.send_signal(signal.SIGKILL)
            with pytest.raises(OperatingError, match="compaction process"):
                await worker.request(Note("s", 0, COUNT), chunks(), len(SEGMENT))
            await compact(worker)
        finally:
            worker.close()

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_process_gets_no_credentials(monkeypatch):
    """It decodes what clients have sent."""
    monkeypatch.setenv("KAFSCALE_S3_SECRET_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    async def scenario():
        worker = WorkerProcess()
        try:
            await worker.request(Begin(10**6, 1, 2, 4096))
            path = Path(f"/proc/{worker._process.pid}/environ")
            environment = await asyncio.to_thread(path.read_bytes)
        finally:
            worker.close()
        assert b"secret" not in environment

    asyncio.run(scenario())


def test_process_ends_quietly_with_the_broker():
    """The broker may be killed while the process works on a command."""
    with subprocess.Popen(  # noqa: S603 - the command is our own.
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        command = msgspec.msgpack.encode(Begin(10**6, 1, 2, 4096))
        process.stdin.write(FRAME.pack(len(command), 0) + command)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(10) == 0


def test_process_ends_when_it_is_closed_while_it_works():
    async def scenario():
        worker = WorkerProcess()
        await worker.request(Begin(10**6, 1, 2, 4096))
        process = worker._process
        running = asyncio.create_task(worker.request(Note("s", 0, COUNT), chunks(), 10**9))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL

    asyncio.run(scenario())


@pytest.mark.parametrize("command", [Note("s", 0, COUNT), Finish()], ids=["writing", "reading"])
def test_a_stopped_process_is_killed(command):
    async def scenario():
        worker = WorkerProcess()
        try:
            await worker.request(Begin(10**6, 1, 2, 4096))
            process, limit = worker._process, worker.step_seconds_max
            worker.step_seconds_max = 0.5
            process.send_signal(signal.SIGSTOP)
            content = (chunks(), len(SEGMENT)) if isinstance(command, Note) else ()
            with pytest.raises(OperatingError, match="did nothing for"):
                await worker.request(command, *content)
            assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL
            worker.step_seconds_max = limit
            await compact(worker)
        finally:
            worker.close()

    asyncio.run(scenario())
