"""A tenure: the time in which this broker answers for one shard of groups, under one claim.

The laws: what is asked for in a tenure is written while its claim holds, or never, and whoever
waits for it is told which of the two. Of several values for one key only the newest is written; a
write is made from what it is about at the moment when it leaves. A tenure that is over stays so:
the same shard may come back, but in another tenure, which knows nothing of what this one left.

How writes reach the store is left to `writer`, what is answered for to `shards`.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from kafscale.errors import CoordinatorUnavailableError, NotCoordinatorError
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.store.base import Operation

Making = Callable[[], Operation]
"""Makes an operation of the key's newest value, when its time has come."""

Done = Callable[[], object]
Lost = Callable[[NotCoordinatorError], object]


class Phase(enum.Enum):
    """How far a tenure is."""

    LOADING = "loading"
    """What the store knows is being read."""
    SERVING = "serving"
    LEAVING = "leaving"
    """Nobody is answered any more; what is pending is still written."""
    OVER = "over"


class Tenure:
    """One shard in our hands: its claim, and what its groups want written."""

    __slots__ = ("_asked", "_departed", "_over", "_rouse", "_waiting", "guard", "phase", "shard")

    def __init__(
        self, shard: int, guard: OwnershipGuard, rouse: Callable[["Tenure"], None]
    ) -> None:
        self.shard = shard
        self.guard = guard
        self.phase = Phase.LOADING
        self._rouse = rouse
        """Tells the writer that something is to be written."""
        self._asked: dict[str, Making] = {}
        self._waiting: list[tuple[Done, Lost]] = []
        """Who waits for what was asked for."""
        self._departed: list[tuple[Done, Lost]] | None = None
        """Who waits for what is on its way; None where nothing is."""
        self._over: NotCoordinatorError | None = None

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def asked_count(self) -> int:
        """How many keys wait to be sent."""
        return len(self._asked)

    # --- for groups -----------------------------------------------------------------------------

    def write(self, operations: Mapping[str, Making]) -> None:
        """Have these keys written; those that wait already get the newer value."""
        if not self.is_over:
            self._asked.update(operations)
            self._rouse(self)

    def when_durable(self, done: Done, lost: Lost = lambda _error: None) -> None:
        """Call `done` once all that was asked for up to now is in the store; at once, if it is.

        Call `lost` instead once that cannot be any more.
        """
        if self._over is not None:
            lost(self._over)
        elif self._asked:
            self._waiting.append((done, lost))
        elif self._departed is not None:
            self._departed.append((done, lost))
        else:
            done()

    def durable_within(self, seconds: float) -> Awaitable[None]:
        """The same, for somebody who cannot wait for ever; the writing goes on all the same.

        What counts is what was asked for up to this call, not up to its being awaited.
        """
        return _within(seconds, self._outcome())

    async def settled(self) -> None:
        """Wait until all that was asked for up to now is written, or never will be."""
        await self._outcome()

    def _outcome(self) -> asyncio.Future[NotCoordinatorError | None]:
        outcome: asyncio.Future[NotCoordinatorError | None]
        outcome = asyncio.get_running_loop().create_future()
        self.when_durable(partial(_tell, outcome, None), partial(_tell, outcome))
        return outcome

    # --- for the writer -------------------------------------------------------------------------

    def depart(self) -> list[Operation]:
        """What is to be written now."""
        asked, self._asked = self._asked, {}
        self._departed, self._waiting = self._waiting, []
        return [make() for make in asked.values()]

    def arrive(self) -> None:
        """What departed last is in the store."""
        departed, self._departed = self._departed or [], None
        for done, _ in departed:
            done()

    # --- the end --------------------------------------------------------------------------------

    def end(self, error: NotCoordinatorError) -> None:
        """Write nothing more, and tell everybody who waits."""
        self.phase = Phase.OVER
        self._over = error
        self._asked.clear()
        told = [*(self._departed or ()), *self._waiting]
        self._departed, self._waiting = None, []
        for _, lost in told:
            lost(error)


def _tell(
    outcome: asyncio.Future[NotCoordinatorError | None], error: NotCoordinatorError | None
) -> None:
    # Whoever has stopped waiting has cancelled it.
    if not outcome.done():
        outcome.set_result(error)


async def _within(seconds: float, outcome: asyncio.Future[NotCoordinatorError | None]) -> None:
    try:
        async with asyncio.timeout(seconds):
            error = await outcome
    except TimeoutError as late:
        raise CoordinatorUnavailableError("the metadata store is slow; try again") from late
    if error is not None:
        raise error
