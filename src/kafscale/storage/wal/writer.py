"""The WAL: appended batches become durable objects, many partitions in each, and count in order.

The invariants (`docs/architecture.md` numbers them the same way):

1. A batch's future is resolved only after its object is durable.
3. Objects are uploaded in parallel but count in order: object n+1 advances no watermark and
   resolves no future before object n has.
4. A failed PUT is tried again until it succeeds or this broker finds itself fenced. It is never
   skipped, so there are no holes. Meanwhile appends meet `buffer_bytes_max` and are refused.
5. A PUT that ends in doubt is settled by reading the object back and comparing.
6. Objects are create-only: whoever put a fence at our next sequence has ended this epoch.

When an object is sealed is decided in `buffer`, what it looks like in `wal`; objects that segments
have made superfluous are deleted by `trim`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random

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
from kafscale.records.checksum import Buffer
from kafscale.storage.counters import Statistics
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import Run
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.wal.buffer.open_object import (
    OpenObject,
    PutBudget,
    Seal,
    SealReason,
    SealRules,
)

log = get_logger(__name__)

PUT_TIMEOUT_SECONDS = 60.0

DOUBT_MS = 100
"""From this time on a PUT may have been tried more than once: stores pause as long in between."""

LINGER_MS = 60_000
"""How long a try that was given up may still be under way to the store."""

FIRST_SEQUENCE = 1
"""Where a stream's records begin: at 0 lies the object that opened it, see `streams`."""


class WalPosition:
    """Which object comes next in which stream."""

    __slots__ = ("broker_id", "epoch", "namespace", "sequence")

    def __init__(self, namespace: str, broker_id: int, epoch: int) -> None:
        self.namespace = namespace
        self.broker_id = broker_id
        self.epoch = epoch
        self.sequence = FIRST_SEQUENCE

    def take(self, now_ms: int) -> tuple[str, wal_object.Header]:
        header = wal_object.Header(self.broker_id, self.epoch, self.sequence, now_ms)
        key = object_keys.wal_key(self.namespace, self.broker_id, self.epoch, self.sequence)
        self.sequence += 1
        return key, header


class SealedObject:
    """An object on its way to the store."""

    __slots__ = (
        "causes",
        "durable",
        "future",
        "kept_until_ms",
        "key",
        "parts",
        "runs",
        "size_bytes",
        "unflushed_bytes",
    )

    def __init__(
        self,
        key: str,
        parts: list[Buffer],
        runs: list[tuple[PartitionLog, Run]],
        future: "asyncio.Future[None]",
        unflushed_bytes: int,
    ) -> None:
        self.key = key
        self.parts = parts
        self.runs = runs
        self.future = future
        self.unflushed_bytes = unflushed_bytes
        self.size_bytes = sum(map(len, parts))
        self.durable = False
        self.causes: list[tracing.Span] = []
        """The requests whose records are in it, where these are traced."""
        self.kept_until_ms = 0
        """Until then a PUT of it that nobody waits for any more may still be under way."""


class WalWriter:
    """Makes batches durable, and tells their logs and their producers in order."""

    def __init__(
        self,
        store: ObjectStore,
        position: WalPosition,
        *,
        rules: SealRules,
        budget: PutBudget,
        buffer_bytes_max: int,
        on_durable: Callable[[SealedObject], None],
        clock: Callable[[], int],
        random: Random,
        statistics: Statistics,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_full` tells that memory for records that are durable has run out, too."""
        self._store = store
        self._position = position
        self._rules = rules
        self._budget = budget
        self._buffer_bytes_max = buffer_bytes_max
        self._on_durable = on_durable
        self._clock = clock
        self._random = random
        self._statistics = statistics
        self._is_full = is_full
        self._loop = asyncio.get_running_loop()
        self._open: OpenObject[PartitionLog] = OpenObject()
        self._open_future = self._new_future()
        self._sealed: deque[SealedObject] = deque()
        self._uploads: set[asyncio.Task[None]] = set()
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._store_back: asyncio.Future[None] = self._loop.create_future()
        self.unflushed_bytes = 0
        """Bytes that are appended and not yet durable."""
        self.fenced: asyncio.Future[None] = self._loop.create_future()
        """Resolved when another broker has ended this epoch."""
        self._causes = tracing.causes()
        self._ended: NotOwnerError | None = None
        """Why nothing is taken or acknowledged any more."""

    # --- in -----------------------------------------------------------------------------------

    def append(  # noqa: PLR0917 - keywords cost time on the produce path.
        self,
        partition: PartitionLog,
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        count: int,
        max_timestamp_ms: int,
    ) -> "asyncio.Future[None]":
        """Take a stamped batch; the future is resolved when it is durable."""
        if self._ended is not None:
            raise type(self._ended)(*self._ended.args)
        size_bytes = len(batch)
        if self.unflushed_bytes and self.unflushed_bytes + size_bytes > self._buffer_bytes_max:
            raise OverloadedError(
                f"{self.unflushed_bytes} bytes wait to be written, the store does not keep up"
            )
        if self._is_full():
            raise OverloadedError("segments are not made as fast as records come")
        self._open.add(
            partition, batch, base_offset, last_offset, count, max_timestamp_ms, self._steady_ms()
        )
        self.unflushed_bytes += size_bytes
        if self._causes is not None:
            self._causes.note()
        if self._soon is None and (self._timer is None or self._rules.is_ready(self._open)):
            # At the end of this turn of the loop, so that requests which came in together go out
            # together.
            self._soon = self._loop.call_soon(self._seal_if_due)
        return self._open_future

    def waiting_bytes(self) -> dict[PartitionLog, int]:
        """How many bytes of each partition are appended and not yet durable."""
        found = {piece.key: piece.size_bytes for piece in self._open.pieces()}
        for sealed in self._sealed:
            for partition, run in sealed.runs:
                found[partition] = found.get(partition, 0) + len(run)
        return found

    def congestion(self) -> "asyncio.Future[None] | None":
        """What producers should wait for before they send more, if anything."""
        if self.unflushed_bytes * 2 <= self._buffer_bytes_max:
            return None
        if self._drained is None:
            self._drained = self._loop.create_future()
        return self._drained

    def hurry(self) -> None:
        """Seal what is open without waiting for more."""
        if not self._open.is_empty:
            self._open.flush_requested = True
            self._seal_if_due()

    def try_again(self) -> None:
        """Let uploads that failed wait no longer: the store is back."""
        self._store_back.set_result(None)
        self._store_back = self._loop.create_future()

    async def flush(self) -> None:
        """Make everything durable that has been appended so far."""
        if not self._open.is_empty:
            newest = self._open_future
            self.hurry()
        elif self._sealed:
            newest = self._sealed[-1].future
        else:
            return
        await asyncio.shield(newest)

    @property
    def is_over(self) -> bool:
        """Whether nothing is taken any more, and nothing will be."""
        return self._ended is not None

    def abandon(self) -> None:
        """Stop at once, as a crash would; what is not durable yet stays in doubt."""
        for upload in self._uploads:
            upload.cancel()
        self._end(NotOwnerError("this broker has stopped serving"))

    # --- seal ---------------------------------------------------------------------------------

    def _seal_if_due(self) -> None:
        self._rest()
        if self._ended is not None:
            return
        now_ms = self._steady_ms()
        decision = self._rules.decide(self._open, now_ms, len(self._uploads), self._budget)
        if isinstance(decision, Seal):
            self._budget.take(now_ms)
            self._seal(decision.reason)
        elif decision.until_ms is not None:
            delay_ms = max(decision.until_ms - now_ms, 1)
            self._timer = self._loop.call_later(delay_ms / 1000, self._seal_if_due)

    def _rest(self) -> None:
        """Decide nothing until something happens."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _seal(self, reason: SealReason) -> None:
        key, header = self._position.take(self._clock())
        runs = [
            (piece.key, Run.joined(piece.buffers, piece.last_offset, piece.max_timestamp_ms))
            for piece in self._open.pieces()
        ]
        pieces = [
            wal_object.Piece(
                partition.topic_id,
                partition.topic,
                partition.partition,
                run.view,
                run.base_offset,
                run.last_offset,
                run.max_timestamp_ms,
            )
            for partition, run in runs
        ]
        sealed = SealedObject(
            key, wal_object.encode(header, pieces), runs, self._open_future, self._open.size_bytes
        )
        if self._causes is not None:
            sealed.causes = self._causes.take()
        self._open = self._rules.after(self._open)
        self._open_future = self._new_future()
        self._sealed.append(sealed)
        self._statistics.wal_sealed[reason] += 1
        upload = self._loop.create_task(self._upload(sealed))
        self._uploads.add(upload)
        upload.add_done_callback(self._on_uploaded)

    def _on_uploaded(self, upload: "asyncio.Task[None]") -> None:
        self._uploads.discard(upload)
        if not upload.cancelled() and (error := upload.exception()) is not None:
            log.error("wal upload broke", exc_info=error)
            self._fence()
        self._seal_if_due()

    # --- out ----------------------------------------------------------------------------------

    async def _upload(self, sealed: SealedObject) -> None:
        backoff = Backoff(self._random)
        started_ms = self._steady_ms()
        while self._ended is None:
            try:
                async with asyncio.timeout(PUT_TIMEOUT_SECONDS):
                    is_durable = await self._put(sealed)
            except (OperatingError, TimeoutError) as error:
                pause_seconds = backoff.next_seconds()
                self._statistics.wal_retries += 1
                log.warning(
                    "wal upload failed",
                    key=sealed.key,
                    error=str(error) or "timed out",
                    tries=backoff.tries,
                    retry_in_seconds=round(pause_seconds, 3),
                )
                await asyncio.wait([self._store_back], timeout=pause_seconds)
                continue
            if not is_durable:
                log.error("wal fenced", key=sealed.key)
                self._fence()
                return
            if self._steady_ms() - started_ms >= DOUBT_MS:
                sealed.kept_until_ms = self._clock() + LINGER_MS
            sealed.durable = True
            self._statistics.wal_puts += 1
            self._statistics.wal_bytes += sealed.size_bytes
            self._acknowledge()
            return

    async def _put(self, sealed: SealedObject) -> bool:
        """Whether the object is durable; if not, its place has been taken by somebody else."""
        with _span(sealed):
            try:
                await self._store.put(sealed.key, sealed.parts, create=True)
            except ObjectExistsError:
                return bytes(await self._store.get(sealed.key)) == b"".join(sealed.parts)
            return True

    def _acknowledge(self) -> None:
        """Let the objects count that are durable together with all before them."""
        now_ms = self._clock()
        while self._sealed and self._sealed[0].durable and self._ended is None:
            sealed = self._sealed.popleft()
            for partition, run in sealed.runs:
                partition.on_durable(run, now_ms)
            self.unflushed_bytes -= sealed.unflushed_bytes
            self._on_durable(sealed)
            if not sealed.future.done():
                sealed.future.set_result(None)
        if self._drained is not None and self.unflushed_bytes * 2 <= self._buffer_bytes_max:
            self._drained.set_result(None)
            self._drained = None

    def _fence(self) -> None:
        """Stop, because this epoch is over."""
        if not self.fenced.done():
            self.fenced.set_result(None)
        self._end(FencedError("another broker has taken over from this one"))

    def _end(self, reason: NotOwnerError) -> None:
        """Take and acknowledge nothing any more; those who wait are told."""
        if self._ended is not None:
            return
        self._ended = reason
        self._rest()
        for future in [*(sealed.future for sealed in self._sealed), self._open_future]:
            if not future.done():
                future.set_exception(reason)
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        self._sealed.clear()
        self._open = OpenObject()
        self.unflushed_bytes = 0

    def _steady_ms(self) -> int:
        """A clock for waiting, which is never set back."""
        return int(self._loop.time() * 1000)

    def _new_future(self) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(_retrieve)
        return future


def _span(sealed: SealedObject) -> AbstractContextManager[tracing.Span | None]:
    """A child of the first request whose records are in it, linked to all others."""
    parent = sealed.causes[0] if sealed.causes else None
    attributes: tracing.Attributes = {
        "kafscale.object.key": sealed.key,
        "kafscale.object.bytes": sealed.size_bytes,
    }
    return tracing.span("WAL object", attributes=attributes, parent=parent, links=sealed.causes[1:])


def _retrieve(future: "asyncio.Future[None]") -> None:
    # Batches with acks 0 and 1 wait for nobody; their failure must not be reported as forgotten.
    if not future.cancelled():
        future.exception()
