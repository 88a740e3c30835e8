"""The loading cache: bounded, with one load per value."""

import asyncio

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.storage.read.loading_cache import LoadingCache
from unit.storage.engines import simulate


class Loader:
    """Returns a value after a second, and counts its calls."""

    def __init__(self, value: bytes = b"value", error: Exception | None = None) -> None:
        self._value = value
        self._error = error
        self.count = 0

    async def __call__(self) -> bytes:
        self.count += 1
        await asyncio.sleep(1)
        if self._error is not None:
            raise self._error
        return self._value


def new_cache(bytes_max: int = 100) -> LoadingCache[str, bytes]:
    return LoadingCache(bytes_max, len)


def test_concurrent_readers_share_one_load():
    async def scenario():
        cache, loader = new_cache(), Loader()
        result = await asyncio.gather(*(cache.load("a", loader) for _ in range(50)))
        assert result == [b"value"] * 50
        assert loader.count == 1
        assert await cache.load("a", loader) == b"value"
        assert loader.count == 1

    simulate(scenario)


def test_least_recently_used_value_is_evicted_first():
    async def scenario():
        cache = new_cache(100)
        for key in "abc":
            await cache.load(key, Loader(b"x" * 40))
            assert cache.size_bytes <= 100
            cache.get("a")
        assert [key in cache for key in "abc"] == [True, False, True]
        assert cache.size_bytes == 80

    simulate(scenario)


def test_limit_can_be_lowered_and_raised():
    async def scenario():
        cache = new_cache(100)
        for key in "ab":
            await cache.load(key, Loader(b"x" * 40))
        cache.limit(50)
        assert [key in cache for key in "ab"] == [False, True]
        assert cache.size_bytes == 40
        cache.limit(100)
        await cache.load("a", Loader(b"x" * 40))
        assert cache.size_bytes == 80

    simulate(scenario)


def test_value_larger_than_the_cache_is_kept_alone():
    async def scenario():
        cache = new_cache(10)
        await cache.load("a", Loader(b"x" * 5))
        await cache.load("b", Loader(b"x" * 40))
        assert "a" not in cache
        assert cache.size_bytes == 40
        await cache.load("c", Loader(b"x" * 5))
        assert cache.size_bytes == 5

    simulate(scenario)


def test_failure_is_raised_to_all_readers_and_not_cached():
    async def scenario():
        cache = new_cache()
        failing = Loader(error=StoreUnavailableError("down"))
        outcomes = await asyncio.gather(
            *(cache.load("a", failing) for _ in range(3)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailableError] * 3
        assert failing.count == 1
        assert await cache.load("a", Loader()) == b"value"

    simulate(scenario)


def test_cancelled_reader_does_not_stop_the_load():
    async def scenario():
        cache, loader = new_cache(), Loader()
        leaving = asyncio.ensure_future(cache.load("a", loader))
        staying = asyncio.ensure_future(cache.load("a", loader))
        await asyncio.sleep(0.5)
        leaving.cancel()
        assert await staying == b"value"
        assert leaving.cancelled()

    simulate(scenario)


def test_value_discarded_while_loading_is_not_cached():
    async def scenario():
        cache = new_cache()
        reading = asyncio.ensure_future(cache.load("a", Loader(b"old")))
        await asyncio.sleep(0.5)
        cache.discard(lambda key: key == "a")
        assert await cache.load("a", Loader(b"new")) == b"new"
        assert await reading == b"old"
        assert cache.get("a") == b"new"
        assert cache.size_bytes == 3

    simulate(scenario)


def test_value_that_is_put_replaces_an_older_one():
    async def scenario():
        cache = new_cache()
        reading = asyncio.ensure_future(cache.load("a", Loader(b"old")))
        await asyncio.sleep(0.5)
        cache.put("a", b"newer")
        assert await reading == b"old"
        cache.put("a", b"new")
        assert await cache.load("a", Loader(b"unused")) == b"new"
        assert cache.size_bytes == 3
        cache.put("b", bytes(99))
        assert cache.get("a") is None, "the size is limited"

    simulate(scenario)


def test_clear_fails_waiting_readers():
    async def scenario():
        cache = new_cache()
        reading = asyncio.ensure_future(cache.load("a", Loader()))
        await asyncio.sleep(0.5)
        cache.clear()
        with pytest.raises(StoreUnavailableError):
            await reading
        assert cache.size_bytes == 0
        assert await cache.load("a", Loader()) == b"value"

    simulate(scenario)
