"""Fault injection: one broker's connection to a metadata store, which fails like one to etcd.

A request is executed by a task of the store, not of its caller: it takes effect even if the caller
is cancelled or paused. It may fail before it has an effect, after it, or before an effect that
follows minutes later; the compares of a late commit are evaluated when it takes effect. Watches
lag, each by a time of its own, break, and may find their revision compacted. While the connection
is cut, requests and watches time out.

Runs are repeatable: randomness comes only from the given generator.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from contextvars import Context
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import Any, TypeVar

from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import (
    Committed,
    Compare,
    Entry,
    Event,
    EventKind,
    MetadataStore,
    Operation,
    Snapshot,
)

Result = TypeVar("Result")
Seconds = tuple[float, float]
"""Minimum and maximum of a random time."""


class MetadataFault(Enum):
    """A way in which a request or a watch fails."""

    REFUSED = auto()
    """The request has no effect."""
    RESPONSE_LOST = auto()
    """The request takes effect, but its response is lost."""
    APPLIED_LATER = auto()
    """The request fails, and takes effect later."""
    CUT = auto()
    """The connection is cut."""
    WATCH_BROKEN = auto()
    COMPACTED = auto()


@dataclass(frozen=True, kw_only=True)
class MetadataFaults:
    """How often a connection fails, and how."""

    delay: Seconds = (0.0005, 0.005)
    """How long a request takes, half of it before its effect."""
    refused: float = 0.0
    response_lost: float = 0.0
    applied_later: float = 0.0
    later: tuple[Seconds, ...] = ((0.1, 5.0),)
    """The ranges of which one is chosen for a request that takes effect later."""
    timeout: Seconds = (0.0, 2.0)
    """How long a caller waits until it sees a request fail."""
    watch_lag: Seconds = (0.0, 0.01)
    """How long each watch is behind; chosen again now and then."""
    watch_broken: float = 0.0
    compacted: float = 0.0
    """The share of watches that find their revision compacted when they begin."""


NO_METADATA_FAULTS = MetadataFaults()


class FaultyMetadataStore:
    """A connection to another metadata store."""

    def __init__(
        self,
        inner: MetadataStore,
        faults: MetadataFaults = NO_METADATA_FAULTS,
        *,
        random: Random,
        context: Context | None = None,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        """`context` is that of the store's tasks; late requests wait by `sleep`."""
        self.faults = faults
        self.injected: Counter[MetadataFault] = Counter()
        self._inner = inner
        self._random = random
        self._context = context
        self._sleep = sleep
        self._connected = asyncio.Event()
        self._connected.set()
        self._lags: dict[str, float] = {}
        self._requests: set[asyncio.Task[Any]] = set()
        self._late: set[asyncio.Task[Any]] = set()

    # --- the connection ---------------------------------------------------------------------------

    @property
    def is_cut(self) -> bool:
        return not self._connected.is_set()

    def cut(self) -> None:
        """From now on no request arrives; those under way may still take effect."""
        self._connected.clear()

    def heal(self) -> None:
        self._connected.set()

    def change(self, faults: MetadataFaults) -> None:
        """Fail in another way, and choose the lags of all watches again."""
        self.faults = faults
        self._lags.clear()

    async def wait_for_late_requests(self) -> None:
        """Wait until all late requests have taken effect."""
        while self._late:
            await asyncio.wait(set(self._late))

    # --- requests ---------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        return await self._request(lambda: self._inner.get(key), changes=False)

    async def range(self, prefix: str) -> Snapshot:
        return await self._request(lambda: self._inner.range(prefix), changes=False)

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        return await self._request(lambda: self._inner.commit(compares, operations))

    async def grant(self, ttl_ms: int) -> int:
        return await self._request(lambda: self._inner.grant(ttl_ms))

    async def keep_alive(self, lease: int) -> bool:
        return await self._request(lambda: self._inner.keep_alive(lease))

    async def revoke(self, lease: int) -> None:
        return await self._request(lambda: self._inner.revoke(lease))

    async def close(self) -> None:
        """Close the connection; the store itself stays open."""
        self.cut()

    async def _request(
        self, effect: Callable[[], Awaitable[Result]], *, changes: bool = True
    ) -> Result:
        request = self._start(self._execute(effect, changes=changes), self._requests)
        # A caller that is cancelled leaves its request to the store.
        await asyncio.wait({request})
        return request.result()

    async def _execute(self, effect: Callable[[], Awaitable[Result]], *, changes: bool) -> Result:
        delay = self._random.uniform(*self.faults.delay) / 2
        await asyncio.sleep(delay)
        if self.is_cut:
            await self._fail(MetadataFault.CUT)
        fault = self._choose(changes=changes)
        if fault is MetadataFault.REFUSED:
            await self._fail(fault)
        if fault is MetadataFault.APPLIED_LATER:
            seconds = self._random.uniform(*self._random.choice(self.faults.later))
            self._start(self._apply_later(effect, seconds), self._late)
            await self._fail(fault)
        result = await effect()
        if fault is MetadataFault.RESPONSE_LOST:
            await self._fail(fault)
        await asyncio.sleep(delay)
        if self.is_cut:
            await self._fail(MetadataFault.CUT)
        return result

    def _choose(self, *, changes: bool) -> MetadataFault | None:
        faults, drawn = self.faults, self._random.random()
        for fault, share in (
            (MetadataFault.REFUSED, faults.refused),
            (MetadataFault.RESPONSE_LOST, faults.response_lost),
            (MetadataFault.APPLIED_LATER, faults.applied_later if changes else 0.0),
        ):
            if drawn < share:
                return fault
            drawn -= share
        return None

    async def _fail(self, fault: MetadataFault) -> None:
        self.injected[fault] += 1
        await asyncio.sleep(self._random.uniform(*self.faults.timeout))
        raise StoreUnavailableError(f"{fault.name.lower()} (injected)")

    async def _apply_later(self, effect: Callable[[], Awaitable[object]], seconds: float) -> None:
        await self._sleep(seconds)
        with suppress(OperatingError):  # Its caller has seen it fail.
            await effect()

    def _start(
        self, coroutine: Coroutine[Any, Any, Result], tasks: set[asyncio.Task[Any]]
    ) -> asyncio.Task[Result]:
        context = self._context.copy() if self._context is not None else None
        task = asyncio.create_task(coroutine, context=context)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_retrieve_failure)
        return task

    # --- watches ----------------------------------------------------------------------------------

    async def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        await self._check_connected()
        if self._random.random() < self.faults.compacted:
            self.injected[MetadataFault.COMPACTED] += 1
            yield [Event(EventKind.COMPACTED, prefix, b"", after_revision)]
            return
        async with aclosing(self._inner.watch(prefix, after_revision)) as watch:
            async for events in watch:
                await asyncio.sleep(self._lag(prefix))
                await self._check_connected()
                if self._random.random() < self.faults.watch_broken:
                    self.injected[MetadataFault.WATCH_BROKEN] += 1
                    raise StoreUnavailableError("watch broken (injected)")
                yield events

    def _lag(self, prefix: str) -> float:
        if prefix not in self._lags or self._random.random() < 0.1:
            self._lags[prefix] = self._random.uniform(*self.faults.watch_lag)
        return self._lags[prefix]

    async def _check_connected(self) -> None:
        """Wait for the connection as long as a client does."""
        if self.is_cut:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*self.faults.timeout)):
                    await self._connected.wait()
        if self.is_cut:
            self.injected[MetadataFault.CUT] += 1
            raise StoreUnavailableError("cut (injected)")


def _retrieve_failure(request: "asyncio.Task[Any]") -> None:
    """Without this, asyncio reports failures of requests whose callers were cancelled."""
    if not request.cancelled():
        request.exception()
