"""The WAL writer: collects batches of many partitions in objects, and makes them durable in order.

Invariants (numbered as in `docs/architecture.md`):

1. A batch's future is resolved only after its object is durable.
3. Objects are uploaded in parallel but acknowledged in order: object n+1 advances no high watermark
   and resolves no future before object n.
4. A failed PUT is retried until it succeeds or this broker is fenced. It is never skipped, so there
   are no gaps. Meanwhile appends over `buffer_bytes_max` are rejected.
5. If the outcome of a PUT is unknown, the object is read back and compared.
6. Objects are create-only: a fence at the next sequence ends this epoch.

An object of many batches is encoded in a thread, and acknowledged over several turns of the event
loop, so that no turn takes long. Meanwhile it counts as not acknowledged, for the order in 3.

`buffer` decides when an object is sealed, `formats.wal_object` defines its format, and
`trimmer` deletes objects whose records are in segments.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Final

from kafscale.aio.backoff import Backoff
from kafscale.errors import (
    FencedError,
    NotOwnerError,
    ObjectExistsError,
    OperatingError,
    OverloadedError,
)
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.storage.counters import StorageCounters
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.comparison import is_equal
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.wal.buffer import OpenObject, PutBudget, Seal, SealPolicy, StreamPosition
from kafscale.storage.wal.sealed_object import SealedObject

logger = get_logger(__name__)

PUT_TIMEOUT_SECONDS = 60.0
INLINE_BATCHES_MAX: Final = 500
INLINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Objects up to this size are encoded at once: a thread takes longer."""
RUNS_PER_TURN: Final = 500
"""How many runs are acknowledged in one turn of the event loop."""


class WalWriter:
    """Makes batches durable, and acknowledges them to logs and producers in order."""

    def __init__(
        self,
        store: ObjectStore,
        position: StreamPosition,
        *,
        seal_policy: SealPolicy,
        budget: PutBudget,
        buffer_bytes_max: int,
        on_object_durable: Callable[[SealedObject], None],
        clock: Callable[[], int],
        random: Random,
        counters: StorageCounters,
        deletable_to: Callable[[], int] = lambda: 0,
        is_memory_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """`deletable_to` returns the sequence up to which objects are not needed any more.

        `is_memory_full` returns whether memory for durable records is exhausted as well.
        """
        self._store = store
        self._position = position
        self._seal_policy = seal_policy
        self._budget = budget
        self._buffer_bytes_max = buffer_bytes_max
        self._on_object_durable = on_object_durable
        self._clock = clock
        self._random = random
        self._counters = counters
        self._deletable_to = deletable_to
        self._is_memory_full = is_memory_full
        self._loop = asyncio.get_running_loop()
        self._open: OpenObject[PartitionLog] = OpenObject()
        self._open_future = self._new_future()
        self._sealed: deque[SealedObject] = deque()
        self._uploads: set[asyncio.Task[None]] = set()
        self._soon: asyncio.Handle | None = None
        self._acknowledging: asyncio.Handle | None = None
        """The next turn that acknowledges, if one was not enough."""
        self._timer: asyncio.TimerHandle | None = None
        self._backpressure: asyncio.Future[None] | None = None
        self._store_recovered: asyncio.Future[None] = self._loop.create_future()
        self.unflushed_bytes = 0
        """Bytes appended but not yet durable."""
        self.fenced: asyncio.Future[None] = self._loop.create_future()
        """Resolved when another broker has fenced this epoch."""
        self._span_links = tracing.collect_links()
        self._closed_reason: NotOwnerError | None = None
        """Why the writer is closed; None while it is open."""

    # --- append ---------------------------------------------------------------------------------

    def append(  # noqa: PLR0917 - keywords cost time on the produce path.
        self,
        log: PartitionLog,
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        count: int,
        max_timestamp_ms: int,
    ) -> "asyncio.Future[None]":
        """Add a batch that has its offsets; the future is resolved when it is durable."""
        if self._closed_reason is not None:
            raise type(self._closed_reason)(*self._closed_reason.args)
        size_bytes = len(batch)
        if self.unflushed_bytes and self.unflushed_bytes + size_bytes > self._buffer_bytes_max:
            raise OverloadedError(
                f"WAL buffer is full: {self.unflushed_bytes} bytes are not written yet"
            )
        if self._is_memory_full():
            raise OverloadedError(
                "memory is full: segments are rolled more slowly than records arrive"
            )
        self._open.add(
            log, batch, base_offset, last_offset, count, max_timestamp_ms, self._steady_ms()
        )
        self.unflushed_bytes += size_bytes
        if self._span_links is not None:
            self._span_links.add_current()
        if self._soon is None and (
            self._timer is None or self._seal_policy.should_decide_now(self._open)
        ):
            # At the end of this loop iteration, so that requests that arrive together share an
            # object.
            self._soon = self._loop.call_soon(self._seal_if_due)
        return self._open_future

    @property
    def is_uploading(self) -> bool:
        """Whether a sealed object is not durable yet; it may wait for its next attempt."""
        return bool(self._sealed)

    def unflushed_bytes_by_log(self) -> dict[PartitionLog, int]:
        """Bytes of each log that are appended but not yet durable."""
        sizes = {batches.key: batches.size_bytes for batches in self._open.partitions()}
        for sealed in self._sealed:
            for batches in sealed.content.partitions():
                sizes[batches.key] = sizes.get(batches.key, 0) + batches.size_bytes
        return sizes

    def backpressure(self) -> "asyncio.Future[None] | None":
        """A future that producers should wait for before they send more; None if not needed."""
        if self.unflushed_bytes * 2 <= self._buffer_bytes_max:
            return None
        if self._backpressure is None:
            self._backpressure = self._loop.create_future()
        return self._backpressure

    def flush_soon(self) -> None:
        """Seal the open object without waiting for more batches."""
        if not self._open.is_empty:
            self._open.flush_requested = True
            self._seal_if_due()

    def retry_now(self) -> None:
        """Retry failed uploads immediately, because the store is available again."""
        self._store_recovered.set_result(None)
        self._store_recovered = self._loop.create_future()

    async def flush(self) -> None:
        """Wait until everything appended so far is durable."""
        if not self._open.is_empty:
            newest = self._open_future
            self.flush_soon()
        elif self._sealed:
            newest = self._sealed[-1].future
        else:
            return
        await asyncio.shield(newest)

    @property
    def is_closed(self) -> bool:
        """Whether the writer has stopped permanently."""
        return self._closed_reason is not None

    def abort(self) -> None:
        """Stop immediately, as in a crash; the outcome of unfinished uploads is unknown."""
        for upload in self._uploads:
            upload.cancel()
        self._close(NotOwnerError("this broker has stopped"))

    # --- seal ---------------------------------------------------------------------------------

    @property
    def next_sequence(self) -> int:
        """The sequence of the object that is sealed next."""
        return self._position.sequence

    def _seal_if_due(self) -> None:
        self._cancel_timers()
        if self._closed_reason is not None:
            return
        now_ms = self._steady_ms()
        decision = self._seal_policy.decide(self._open, now_ms, len(self._uploads), self._budget)
        if isinstance(decision, Seal):
            self._budget.consume(now_ms)
            self._seal()
        elif decision.until_ms is not None:
            delay_ms = max(decision.until_ms - now_ms, 1)
            self._timer = self._loop.call_later(delay_ms / 1000, self._seal_if_due)

    def _cancel_timers(self) -> None:
        """Cancel the pending calls of `_seal_if_due`."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def seal_marker(self) -> None:
        """Write an object without records, if no other object is about to say what is trimmed."""
        if self._closed_reason is None and self._open.is_empty and not self._sealed:
            self._seal()

    def _seal(self) -> None:
        key, header = self._position.next_object(self._clock(), self._deletable_to())
        sealed = SealedObject(key, header, self._open, self._open_future)
        if self._span_links is not None:
            sealed.causes = self._span_links.take()
        self._open = self._seal_policy.next_object(self._open)
        self._open_future = self._new_future()
        self._sealed.append(sealed)
        upload = self._loop.create_task(self._upload(sealed))
        self._uploads.add(upload)
        upload.add_done_callback(self._on_uploaded)

    def _on_uploaded(self, upload: "asyncio.Task[None]") -> None:
        self._uploads.discard(upload)
        if not upload.cancelled() and (error := upload.exception()) is not None:
            logger.error("wal upload crashed", exc_info=error)
            self._fence()
        self._seal_if_due()

    # --- upload ---------------------------------------------------------------------------------

    async def _upload(self, sealed: SealedObject) -> None:
        content = sealed.content
        if content.batch_count <= INLINE_BATCHES_MAX and content.size_bytes <= INLINE_BYTES_MAX:
            sealed.encode()
        else:
            await self._loop.run_in_executor(None, sealed.encode)
        backoff = Backoff(self._random)
        while self._closed_reason is None:
            try:
                async with asyncio.timeout(PUT_TIMEOUT_SECONDS):
                    is_durable = await self._put(sealed)
            except (OperatingError, TimeoutError) as error:
                pause_seconds = backoff.next_seconds()
                self._counters.wal_retries += 1
                logger.warning(
                    "wal upload failed",
                    key=sealed.key,
                    error=str(error) or "timed out",
                    tries=backoff.tries,
                    retry_in_seconds=round(pause_seconds, 3),
                )
                await asyncio.wait([self._store_recovered], timeout=pause_seconds)
                continue
            if not is_durable:
                logger.error("wal fenced", key=sealed.key)
                self._fence()
                return
            sealed.is_durable = True
            self._counters.wal_puts += 1
            self._counters.wal_bytes += sealed.size_bytes
            self._acknowledge()
            return

    async def _put(self, sealed: SealedObject) -> bool:
        """Upload the object; False if another broker has taken its key."""
        with _span(sealed):
            try:
                await self._store.put(sealed.key, sealed.parts, create=True)
            except ObjectExistsError:
                return await is_equal(await self._store.get(sealed.key), sealed.parts)
            return True

    def _acknowledge(self) -> None:
        """Acknowledge the durable objects up to the first that is not."""
        if self._acknowledging is None:
            self._acknowledge_some()

    def _acknowledge_some(self) -> None:
        """Acknowledge what fits into this turn of the event loop."""
        self._acknowledging = None
        now_ms = self._clock()
        runs_left = RUNS_PER_TURN
        while self._sealed and self._sealed[0].is_durable and self._closed_reason is None:
            sealed = self._sealed[0]
            first = sealed.acknowledged_count
            runs = sealed.runs[first : first + runs_left]
            for log, run in runs:
                log.advance_high_watermark(run, now_ms)
            runs_left -= len(runs)
            sealed.acknowledged_count += len(runs)
            if sealed.acknowledged_count < len(sealed.runs):
                self._acknowledging = self._loop.call_soon(self._acknowledge_some)
                break
            self._sealed.popleft()
            self.unflushed_bytes -= sealed.content.size_bytes
            self._on_object_durable(sealed)
            if not sealed.future.done():
                sealed.future.set_result(None)
        if self._backpressure is not None and self.unflushed_bytes * 2 <= self._buffer_bytes_max:
            self._backpressure.set_result(None)
            self._backpressure = None

    def _fence(self) -> None:
        """Stop, because another broker has ended this epoch."""
        if not self.fenced.done():
            self.fenced.set_result(None)
        self._close(FencedError("this broker is fenced: another one has taken over"))

    def _close(self, reason: NotOwnerError) -> None:
        """Stop permanently, and fail all pending futures with the reason."""
        if self._closed_reason is not None:
            return
        self._closed_reason = reason
        self._cancel_timers()
        for future in [*(sealed.future for sealed in self._sealed), self._open_future]:
            if not future.done():
                future.set_exception(reason)
        if self._backpressure is not None:
            self._backpressure.set_result(None)
            self._backpressure = None
        self._sealed.clear()
        self._open = OpenObject()
        self.unflushed_bytes = 0

    def _steady_ms(self) -> int:
        """A monotonic clock."""
        return int(self._loop.time() * 1000)

    def _new_future(self) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(_retrieve)
        return future


def _span(sealed: SealedObject) -> AbstractContextManager[tracing.Span | None]:
    """A child span of the first request in the object, linked to all other requests."""
    parent = sealed.causes[0] if sealed.causes else None
    attributes: tracing.Attributes = {
        "kafscale.object.key": sealed.key,
        "kafscale.object.bytes": sealed.size_bytes,
    }
    return tracing.span("WAL object", attributes=attributes, parent=parent, links=sealed.causes[1:])


def _retrieve(future: "asyncio.Future[None]") -> None:
    # With acks=0 and acks=1 no request awaits the future; avoid "exception was never retrieved".
    if not future.cancelled():
        future.exception()
