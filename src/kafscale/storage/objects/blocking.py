"""An object store for code that waits: Spark's tasks, jobs and tools.

All of a store's layers are asynchronous. Here they run on an event loop in a thread of their own,
and whoever calls waits for the answer, or takes a `Future` and fetches it later, which is how
readers read ahead. The law: `close` ends everything that was begun, and the thread with it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_Result = TypeVar("_Result")


class BlockingObjectStore:
    """A store, its loop and its thread."""

    __slots__ = ("_loop", "_store", "_thread")

    def __init__(self, make: Callable[[], ObjectStore]) -> None:
        """`make` is called on the thread, so that the store belongs to its loop."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="blocking objects", daemon=True
        )
        self._thread.start()
        try:
            self._store = self._submit(_made(make)).result()
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, work: Callable[[ObjectStore], Coroutine[Any, Any, _Result]]) -> _Result:
        """Wait for something asynchronous that uses the store."""
        return self.begin(work).result()

    def begin(self, work: Callable[[ObjectStore], Coroutine[Any, Any, _Result]]) -> Future[_Result]:
        """Begin something asynchronous, and let it go on meanwhile."""
        return self._submit(work(self._store))

    def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self._submit(self._store.put(key, parts, create=create)).result()

    def get(self, key: str) -> memoryview:
        return self._submit(self._store.get(key)).result()

    def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return self.begin_range(key, start, stop).result()

    def begin_range(self, key: str, start: int, stop: int) -> Future[memoryview]:
        return self._submit(self._store.get_range(key, start, stop))

    def get_suffix(self, key: str, length: int) -> memoryview:
        return self._submit(self._store.get_suffix(key, length)).result()

    def head(self, key: str) -> ObjectInfo:
        return self._submit(self._store.head(key)).result()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object below a prefix, in the order of keys; a chunk of them at a time."""
        chunks = self._store.list(prefix)
        while chunk := self._submit(_next(chunks)).result():
            yield from chunk

    def delete(self, keys: Sequence[str]) -> None:
        self._submit(self._store.delete(keys)).result()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._submit(_end(self._store)).result()
        finally:
            self._stop()

    def _submit(self, coroutine: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(make: Callable[[], ObjectStore]) -> ObjectStore:
    return make()


async def _next(chunks: Any) -> Sequence[ObjectInfo]:
    # A chunk may be empty although more follow, where a bucket holds what is not ours.
    async for chunk in chunks:
        if chunk:
            return list(chunk)
    return []


async def _end(store: ObjectStore) -> None:
    """Give up what nobody waits for any more, then close the store."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await store.close()
