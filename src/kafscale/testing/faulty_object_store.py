"""Faults on purpose: an object store that fails as real ones do, by rules and by a seed.

The laws: chance comes only from the generator given, and waiting only from the `sleep` given, so a
run can be repeated; and a fault says the truth about what it leaves behind. A request that was
`REFUSED` had no effect, one whose `ANSWER_LOST` had its effect, and one that `LANDS_LATER` has it
only after the caller was told that it failed, which is what a fence must withstand.
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
    """What can go wrong with a request."""

    SLOW = auto()
    """It takes time first; then the other rules have their say."""
    REFUSED = auto()
    """The connection fails before anything is sent."""
    SLOW_DOWN = auto()
    """The store answers that it is asked too much."""
    DENIED = auto()
    """The store answers that it will not, now or later."""
    TIMED_OUT = auto()
    """Nothing happens, and that only shows after a while."""
    ANSWER_LOST = auto()
    """It happens, but the answer does not come; after a while the caller gives up."""
    LANDS_LATER = auto()
    """The caller gives up at once, and it happens after a while."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """Which fault befalls which requests, and how often. Two rules are never the same."""

    fault: Fault
    operations: frozenset[str] = OPERATIONS
    keys: str = "*"
    """A pattern as for file names, for the key, the prefix of a listing or a key to delete."""
    share: float = 1.0
    times_max: int | None = None
    seconds: tuple[float, float] = (0.0, 0.0)
    """The least and the longest of the while that the fault takes."""

    def __post_init__(self) -> None:
        assert self.operations <= OPERATIONS
        assert 0 <= self.share <= 1
        assert 0 <= self.seconds[0] <= self.seconds[1]

    def concerns(self, operation: str, keys: Iterable[str]) -> bool:
        return operation in self.operations and any(fnmatchcase(key, self.keys) for key in keys)


class FaultyObjectStore:
    """A store in front of another, worse than it."""

    def __init__(
        self,
        inner: ObjectStore,
        rules: Iterable[Rule] = (),
        *,
        random: Random,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self.rules = [*rules]
        """The rules in force, asked in order; they may be changed at any time."""
        self.is_down = False
        """While true, every request is refused."""
        self.injected: Counter[Fault] = Counter()
        """How many faults there have been so far, by kind."""
        self._fired: Counter[Rule] = Counter()
        self._inner = inner
        self._random = random
        self._sleep = sleep
        self._under_way: set[asyncio.Task[Any]] = set()

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._suffer("put", [key], lambda: self._inner.put(key, parts, create=create))

    async def get(self, key: str) -> memoryview:
        return await self._suffer("get", [key], lambda: self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._suffer(
            "get_range", [key], lambda: self._inner.get_range(key, start, stop)
        )

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._suffer("get_suffix", [key], lambda: self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._suffer("head", [key], lambda: self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Each chunk may fail by itself."""
        chunks = aiter(self._inner.list(prefix))

        async def advance() -> Sequence[ObjectInfo] | None:
            return await anext(chunks, None)

        while chunk := await self._suffer("list", [prefix], advance):
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        await self._suffer("delete", keys, lambda: self._inner.delete(keys))

    async def close(self) -> None:
        await self.settle()
        await self._inner.close()

    async def settle(self) -> None:
        """Wait until everything that was to land later has landed."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _suffer(
        self, operation: str, keys: Sequence[str], effect: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        what = f"{operation} {keys[0] if keys else 'nothing'}"
        self._refuse_if_down(what)
        for rule in self.rules:
            if self._strikes(rule, operation, keys):
                await self._inflict(rule, what, effect)
        self._refuse_if_down(what)
        return await effect()

    def _refuse_if_down(self, what: str) -> None:
        if self.is_down:
            raise StoreUnavailableError(f"{what}: the store is down, on purpose")

    def _strikes(self, rule: Rule, operation: str, keys: Sequence[str]) -> bool:
        if rule.times_max is not None and self._fired[rule] >= rule.times_max:
            return False
        if not rule.concerns(operation, keys) or self._random.random() >= rule.share:
            return False
        self._fired[rule] += 1
        self.injected[rule.fault] += 1
        return True

    async def _inflict(
        self, rule: Rule, what: str, effect: Callable[[], Awaitable[object]]
    ) -> None:
        """Do what the fault does; return only from those that a request survives."""
        seconds = self._random.uniform(*rule.seconds)
        match rule.fault:
            case Fault.SLOW:
                return await self._sleep(seconds)
            case Fault.DENIED:
                raise OperatingError(f"{what}: denied, on purpose")
            case Fault.TIMED_OUT:
                await self._sleep(seconds)
            case Fault.ANSWER_LOST:
                await effect()
                await self._sleep(seconds)
            case Fault.LANDS_LATER:
                self._land(effect, seconds)
            case Fault.REFUSED | Fault.SLOW_DOWN:
                pass
        raise StoreUnavailableError(f"{what}: {rule.fault.name.lower()}, on purpose")

    def _land(self, effect: Callable[[], Awaitable[object]], seconds: float) -> None:
        async def later() -> None:
            await self._sleep(seconds)
            with suppress(OperatingError):
                await effect()  # Nobody waits for the answer any more, whatever it is.

        task = asyncio.ensure_future(later())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
