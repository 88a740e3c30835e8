"""A blocking object store for synchronous code: Spark tasks, jobs and tools.

All store layers are asynchronous. Here they run on an event loop in a separate thread. Callers wait
for the result, or take a `Future` for read-ahead. Invariant: `close` cancels everything that was
submitted and ends the thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_Result = TypeVar("_Result")


class BlockingObjectStore:
    """An object store with its event loop and thread."""

    __slots__ = ("_loop", "_store", "_thread")

    def __init__(self, create: Callable[[], ObjectStore]) -> None:
        """`create` is called in the thread, so that the store belongs to its loop."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="blocking objects", daemon=True
        )
        self._thread.start()
        try:
            self._store = self._submit(_create(create)).result()
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Callable[[ObjectStore], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine that uses the store, and wait for it."""
        return self.submit(work).result()

    def submit(
        self, work: Callable[[ObjectStore], Coroutine[Any, Any, _Result]]
    ) -> Future[_Result]:
        """Start a coroutine that uses the store."""
        return self._submit(work(self._store))

    def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self._submit(self._store.put(key, parts, create=create)).result()

    def get(self, key: str) -> memoryview:
        return self._submit(self._store.get(key)).result()

    def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return self.submit_get_range(key, start, stop).result()

    def submit_get_range(self, key: str, start: int, stop: int) -> Future[memoryview]:
        return self._submit(self._store.get_range(key, start, stop))

    def get_suffix(self, key: str, length: int) -> memoryview:
        return self._submit(self._store.get_suffix(key, length)).result()

    def head(self, key: str) -> ObjectInfo:
        return self._submit(self._store.head(key)).result()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects under a prefix in key order, fetched page by page."""
        chunks = self._store.list(prefix)
        while chunk := self._submit(_next(chunks)).result():
            yield from chunk

    def delete(self, keys: Sequence[str]) -> None:
        self._submit(self._store.delete(keys)).result()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._submit(_shut_down(self._store)).result()
        finally:
            self._stop()

    def _submit(self, coroutine: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _create(create: Callable[[], ObjectStore]) -> ObjectStore:
    return create()


async def _next(chunks: Any) -> Sequence[ObjectInfo]:
    # A page may be empty even if more follow, if the prefix contains foreign objects.
    async for chunk in chunks:
        if chunk:
            return list(chunk)
    return []


async def _shut_down(store: ObjectStore) -> None:
    """Cancel pending calls, then close the store."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await store.close()
