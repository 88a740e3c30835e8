"""The invariants of `storage.objects.base`, for every store."""

import asyncio
import random
import time
from contextlib import suppress

import pytest

from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
)
from kafscale.storage.objects.factory import probe_guarantees
from kafscale.storage.objects.store import ObjectStore

# The first run builds the S3 server.
pytestmark = pytest.mark.timeout(600)

MIB = 1024 * 1024


async def list_keys(store: ObjectStore, prefix: str) -> list[str]:
    return [info.key async for chunk in store.list(prefix) for info in chunk]


async def put_all(store: ObjectStore, keys: list[str]) -> None:
    for first in range(0, len(keys), 32):
        await asyncio.gather(*(store.put(key, [b"x"]) for key in keys[first : first + 32]))


def test_parts_are_concatenated(store, namespace):
    data = random.Random(1).randbytes(100_000)
    parts = [data[:10], bytearray(data[10:70_000]), b"", memoryview(data)[70_000:]]

    async def scenario():
        await store.put(f"{namespace}/a", parts)
        assert await store.get(f"{namespace}/a") == data
        assert isinstance(await store.get(f"{namespace}/a"), memoryview)

    asyncio.run(scenario())


def test_object_can_have_more_parts_than_iov_max(store, namespace):
    parts = [b"%05d" % number for number in range(5000)]

    async def scenario():
        await store.put(f"{namespace}/a", parts)
        assert await store.get(f"{namespace}/a") == b"".join(parts)

    asyncio.run(scenario())


@pytest.mark.parametrize("create", [True, False])
def test_large_object_round_trips(store, namespace, create):
    data = random.Random(2).randbytes(12 * MIB)
    view = memoryview(data)
    parts = [view[start : start + 700_001] for start in range(0, len(data), 700_001)]

    async def scenario():
        await store.put(f"{namespace}/a", parts, create=create)
        assert await store.get(f"{namespace}/a") == data
        assert await store.get_range(f"{namespace}/a", 6 * MIB, 7 * MIB) == view[6 * MIB : 7 * MIB]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1), (0, 10), (3, 7), (9, 10), (5, 1000), (10, 11), (500, 1000)]
)
def test_range_ends_at_the_end_of_the_object(store, namespace, start, stop):
    data = b"0123456789"

    async def scenario():
        await store.put(f"{namespace}/a", [data])
        assert await store.get_range(f"{namespace}/a", start, stop) == data[start:stop]

    asyncio.run(scenario())


@pytest.mark.parametrize("length", [1, 4, 10, 1000])
def test_suffix_is_at_most_the_whole_object(store, namespace, length):
    data = b"0123456789"

    async def scenario():
        await store.put(f"{namespace}/a", [data])
        assert await store.get_suffix(f"{namespace}/a", length) == data[-length:]

    asyncio.run(scenario())


def test_missing_object_is_not_found(store, namespace):
    key = f"{namespace}/a/missing"

    async def scenario():
        await store.put(f"{namespace}/a/b", [b"x"])
        for read in (
            store.get(key),
            store.get_range(key, 0, 1),
            store.get_suffix(key, 1),
            store.head(key),
            store.get(f"{namespace}/a"),
            store.head(f"{namespace}/a"),
            store.get(f"{namespace}/a/b/c"),
        ):
            with pytest.raises(ObjectNotFoundError):
                await read

    asyncio.run(scenario())


def test_create_never_replaces_an_object(store, namespace):
    async def scenario():
        await store.put(f"{namespace}/a", [b"first"])
        with pytest.raises(ObjectExistsError):
            await store.put(f"{namespace}/a", [b"second"])
        assert await store.get(f"{namespace}/a") == b"first"

    asyncio.run(scenario())


def test_put_without_create_replaces_the_object(store, namespace):
    async def scenario():
        for body in (b"first", b"the second", b"3rd"):
            await store.put(f"{namespace}/a", [body], create=False)
            assert await store.get(f"{namespace}/a") == body

    asyncio.run(scenario())


def test_replace_needs_the_etag_of_the_object(store, namespace):
    async def scenario():
        key = f"{namespace}/a"
        with pytest.raises(ObjectChangedError):
            await store.replace(key, [b"none"], '"0"')
        await store.put(key, [b"first"])
        first = await store.head(key)
        (listed,) = [item async for chunk in store.list(f"{namespace}/") for item in chunk]
        assert listed.etag == first.etag
        await store.replace(key, [b"sec", b"ond"], first.etag)
        assert await store.get(key) == b"second"
        with pytest.raises(ObjectChangedError):
            await store.replace(key, [b"late"], first.etag)
        assert await store.get(key) == b"second"
        await store.delete([key])
        with pytest.raises(ObjectChangedError):
            await store.replace(key, [b"late"], first.etag)

    asyncio.run(scenario())


def test_one_of_many_concurrent_creates_succeeds(contended_store, namespace):
    store = contended_store

    async def attempt(key: str, writer: int) -> int | None:
        try:
            await store.put(key, [bytes([writer]) * 70_000])
        except ObjectExistsError:
            return None
        return writer

    async def scenario():
        for number in range(10):
            key = f"{namespace}/{number}"
            outcomes = await asyncio.gather(*(attempt(key, writer) for writer in range(20)))
            (winner,) = [writer for writer in outcomes if writer is not None]
            assert await store.get(key) == bytes([winner]) * 70_000

    asyncio.run(scenario())


def test_reader_sees_complete_versions_only(contended_store, namespace):
    store = contended_store
    key = f"{namespace}/a"
    bodies = [bytes([version]) * (MIB + version) for version in range(8)]

    async def write() -> None:
        for body in bodies:
            await store.put(key, [body[:1000], body[1000:]], create=False)

    async def scenario():
        await store.put(key, [bodies[0]])
        writing = asyncio.create_task(write())
        while not writing.done():
            assert bytes(await store.get(key)) in bodies
            await asyncio.sleep(0)
        await writing

    asyncio.run(scenario())


def test_cancelled_put_is_atomic(store, namespace):
    body = bytes(4 * MIB)

    async def scenario():
        for number in range(5):
            put = asyncio.ensure_future(store.put(f"{namespace}/{number}", [body]))
            for _ in range(number):
                await asyncio.sleep(0)
            put.cancel()
            await asyncio.wait([put])
        for number in range(5):
            with suppress(ObjectNotFoundError):
                assert await store.get(f"{namespace}/{number}") == body

    asyncio.run(scenario())


def test_head_returns_size_and_modification_time(store, namespace):
    async def scenario():
        before_ms = time.time() * 1000
        await store.put(f"{namespace}/a", [b"0123456789"])
        info = await store.head(f"{namespace}/a")
        assert (info.key, info.size_bytes) == (f"{namespace}/a", 10)
        # S3 has a resolution of one second, and the kernel's time of files is a few ms late.
        assert before_ms - 1100 <= info.modified_ms <= time.time() * 1000 + 1000
        ((only,),) = [chunk async for chunk in store.list(f"{namespace}/")]
        assert (only.key, only.size_bytes) == (info.key, info.size_bytes)
        assert abs(only.modified_ms - info.modified_ms) <= 1000

    asyncio.run(scenario())


def test_listing_is_sorted_by_the_whole_key(store, namespace):
    names = ["a", "a-b", "a.b/c", "a0", "A/x", "a_b", "b/2/1", "b/10/1", "b/10-1", "b/1", "_wal/0"]
    keys = [f"{namespace}/{name}" for name in names]

    async def scenario():
        await put_all(store, keys)
        assert await list_keys(store, f"{namespace}/") == sorted(keys)
        assert await list_keys(store, f"{namespace}/b/10/") == [f"{namespace}/b/10/1"]
        assert await list_keys(store, f"{namespace}/b/1/") == []
        assert await list_keys(store, f"{namespace}/nowhere/") == []

    asyncio.run(scenario())


def test_long_listing_comes_in_chunks(store, namespace):
    keys = [f"{namespace}/{number % 7}/{number:05d}" for number in range(1100)]

    async def scenario():
        await put_all(store, keys)
        chunks = [chunk async for chunk in store.list(f"{namespace}/")]
        assert len(chunks) > 1
        assert [info.key for chunk in chunks for info in chunk] == sorted(keys)
        await store.delete(keys)
        assert await list_keys(store, f"{namespace}/") == []

    asyncio.run(scenario())


def test_delete_removes_objects_and_ignores_missing_ones(store, namespace):
    keys = [f"{namespace}/{name}" for name in ("a/1", "a/2", "b")]

    async def scenario():
        await put_all(store, keys)
        await store.delete([keys[0], f"{namespace}/missing", f"{namespace}/b/below"])
        await store.delete([])
        assert await list_keys(store, f"{namespace}/") == keys[1:]
        with pytest.raises(ObjectNotFoundError):
            await store.get(keys[0])
        await store.put(keys[0], [b"again"])
        assert await store.get(keys[0]) == b"again"

    asyncio.run(scenario())


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "a/../b", "..", "a/.", ".tmp/a", "a b"])
def test_invalid_key_is_rejected_by_every_method(store, key):
    async def scenario():
        for call in (
            store.put(key, [b"x"]),
            store.replace(key, [b"x"], "0"),
            store.get(key),
            store.get_range(key, 0, 1),
            store.get_suffix(key, 1),
            store.head(key),
            store.delete([key]),
            anext(store.list(f"{key}/"), None),
        ):
            with pytest.raises(OperatingError, match=r"invalid (object key|listing prefix)"):
                await call

    asyncio.run(scenario())


def test_create_only_probe_passes_and_leaves_no_objects(store, namespace):
    async def scenario():
        await probe_guarantees(store, namespace, random.Random(1))
        assert await list_keys(store, f"{namespace}/") == []

    asyncio.run(scenario())
