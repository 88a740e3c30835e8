"""Standard input comes in chunks, to its end, and never more ahead than is allowed."""

import asyncio
import threading

import pytest

from kafscale.cli.commands.produce.input import CHUNKS_COUNT_MAX, Input


def drain(read):
    async def story():
        chunks = Input(read)
        found = []
        while chunk := await chunks.next():
            found.append(chunk)
        return found

    return asyncio.run(story())


def test_all_chunks_come_in_order():
    expected = [b"%d" % number for number in range(3 * CHUNKS_COUNT_MAX)]
    pending = iter([*expected, b""])
    assert drain(lambda: next(pending)) == expected


def test_input_that_cannot_be_read_has_ended():
    def read():
        raise OSError("closed")

    assert drain(read) == []


def test_no_more_is_read_ahead_than_allowed():
    full = threading.Event()
    read_count = 0

    def read():
        nonlocal read_count
        read_count += 1
        if read_count == CHUNKS_COUNT_MAX:
            full.set()
        return b"chunk"

    async def story():
        chunks = Input(read)
        assert await asyncio.to_thread(full.wait, 10)
        for _ in range(100):
            await asyncio.sleep(0)
        assert read_count == CHUNKS_COUNT_MAX
        assert await chunks.next() == b"chunk"
        assert not chunks.is_waiting

    asyncio.run(story())


@pytest.mark.parametrize("count", [1, 2])
def test_it_says_whether_there_is_something_to_be_had(count):
    pending = iter([b"x"] * count + [b""])

    async def story():
        chunks = Input(lambda: next(pending))
        for _ in range(count + 1):
            await chunks.next()
        assert chunks.is_waiting

    asyncio.run(story())
