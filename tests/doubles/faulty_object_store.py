"""Fault injection: an object store that fails like real ones, by rules and a random seed.

Runs are repeatable: randomness comes only from the given generator, and delays only from the given
`sleep`. A `REFUSED` request has no effect, a request with `RESPONSE_LOST` has its effect, and an
`APPLIED_LATER` one takes effect only after the caller has seen it fail, which fencing must survive.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final, TypeVar

from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

OPERATIONS: Final = frozenset({"put", "get", "get_range", "get_suffix", "head", "list", "delete"})

_Result = TypeVar("_Result")


class Fault(Enum):
    """A way in which a request fails."""

    SLOW = auto()
    """The request is delayed; then the other rules apply."""
    REFUSED = auto()
    """The connection fails before anything is sent."""
    SLOW_DOWN = auto()
    """The store responds that the request rate is too high."""
    DENIED = auto()
    """The store denies the request permanently."""
    TIMED_OUT = auto()
    """The request has no effect and times out."""
    RESPONSE_LOST = auto()
    """The request takes effect, but its response is lost and it times out."""
    APPLIED_LATER = auto()
    """The request fails at once, and takes effect later."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """Which fault applies to which requests, and how often. Rules compare by identity."""

    fault: Fault
    operations: frozenset[str] = OPERATIONS
    keys: str = "*"
    """A glob pattern for the key, the prefix of a listing, or a key to delete."""
    share: float = 1.0
    times_max: int | None = None
    seconds: tuple[float, float] = (0.0, 0.0)
    """Minimum and maximum of the fault's delay."""

    def __post_init__(self) -> None:
        assert self.operations <= OPERATIONS
        assert 0 <= self.share <= 1
        assert 0 <= self.seconds[0] <= self.seconds[1]

    def matches(self, operation: str, keys: Iterable[str]) -> bool:
        return operation in self.operations and any(fnmatchcase(key, self.keys) for key in keys)


class FaultyObjectStore:
    """Injects faults into the requests to another store."""

    def __init__(
        self,
        inner: ObjectStore,
        rules: Iterable[Rule] = (),
        *,
        random: Random,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        clock: Callable[[], int] = lambda: 0,
    ) -> None:
        """`clock` is that of the store; it matters only with `list_lag_ms`."""
        self.rules = [*rules]
        """The rules, checked in order; may be changed at any time."""
        self.is_down = False
        """While true, every request fails."""
        self.resumed: asyncio.Event | None = None
        """While the process is suspended: set when it continues, with the requests it had begun."""
        self.list_lag_ms = 0
        """Listings miss objects that are younger than this, by the clock of the store."""
        self.injected: Counter[Fault] = Counter()
        """Number of injected faults, by type."""
        self._fired: Counter[Rule] = Counter()
        self._inner = inner
        self._random = random
        self._sleep = sleep
        self._clock = clock
        self._pending: set[asyncio.Task[Any]] = set()

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._inject("put", [key], lambda: self._inner.put(key, parts, create=create))

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        await self._inject("put", [key], lambda: self._inner.replace(key, parts, etag))

    async def get(self, key: str) -> memoryview:
        return await self._inject("get", [key], lambda: self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._inject(
            "get_range", [key], lambda: self._inner.get_range(key, start, stop)
        )

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._inject("get_suffix", [key], lambda: self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._inject("head", [key], lambda: self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Each page may fail separately."""
        chunks = aiter(self._inner.list(prefix))

        async def advance() -> Sequence[ObjectInfo] | None:
            return await anext(chunks, None)

        while chunk := await self._inject("list", [prefix], advance):
            if self.list_lag_ms:
                newest_ms = self._clock() - self.list_lag_ms
                chunk = [item for item in chunk if item.modified_ms <= newest_ms]
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        await self._inject("delete", keys, lambda: self._inner.delete(keys))

    async def close(self) -> None:
        await self.wait_for_late_writes()
        await self._inner.close()

    async def wait_for_late_writes(self) -> None:
        """Wait until all late requests have taken effect."""
        while self._pending:
            await asyncio.gather(*self._pending, return_exceptions=True)

    async def _inject(
        self, operation: str, keys: Sequence[str], effect: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        what = f"{operation} {keys[0] if keys else 'nothing'}"
        self._raise_if_down(what)
        for rule in self.rules:
            if self._applies(rule, operation, keys):
                await self._apply(rule, what, effect)
        while self.resumed is not None:
            await self.resumed.wait()
        self._raise_if_down(what)
        return await effect()

    def _raise_if_down(self, what: str) -> None:
        if self.is_down:
            raise StoreUnavailableError(f"{what}: the store is down (injected)")

    def _applies(self, rule: Rule, operation: str, keys: Sequence[str]) -> bool:
        if rule.times_max is not None and self._fired[rule] >= rule.times_max:
            return False
        if not rule.matches(operation, keys) or self._random.random() >= rule.share:
            return False
        self._fired[rule] += 1
        self.injected[rule.fault] += 1
        return True

    async def _apply(self, rule: Rule, what: str, effect: Callable[[], Awaitable[object]]) -> None:
        """Apply the fault; returns only if the request continues."""
        seconds = self._random.uniform(*rule.seconds)
        match rule.fault:
            case Fault.SLOW:
                return await self._sleep(seconds)
            case Fault.DENIED:
                raise OperatingError(f"{what}: denied (injected)")
            case Fault.TIMED_OUT:
                await self._sleep(seconds)
            case Fault.RESPONSE_LOST:
                await effect()
                await self._sleep(seconds)
            case Fault.APPLIED_LATER:
                self._apply_later(effect, seconds)
            case Fault.REFUSED | Fault.SLOW_DOWN:
                pass
        raise StoreUnavailableError(f"{what}: {rule.fault.name.lower()} (injected)")

    def _apply_later(self, effect: Callable[[], Awaitable[object]], seconds: float) -> None:
        async def later() -> None:
            await self._sleep(seconds)
            with suppress(OperatingError):
                await effect()  # The caller has already seen it fail; ignore the result.

        task = asyncio.ensure_future(later())
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
