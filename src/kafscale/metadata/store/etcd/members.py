"""The etcd members, ordered by preference.

The member that responded last is used again, so that a failed member delays a request or two, not
every one. The member that failed last is used last, even if it is the only one connected; the
others get a moment to connect first. All members connect concurrently, and the first that succeeds
is used. `client` decides what counts as a failure.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.etcd.member import Member
from kafscale.observability.logging import get_logger

_RECONNECT_GRACE_S: Final = 0.25
"""How long other members may take to connect before a failed member is used again."""

_SETTLE_S: Final = 0.05
"""How long to wait for cancelled calls to finish. gRPC delivers their results to the event loop,
and logs errors if that is closed."""

logger = get_logger(__name__)


class Members:
    """All members, the preferred one first."""

    def __init__(self, members: Sequence[Member]) -> None:
        assert members
        self._members = list(members)
        self._connecting: asyncio.Task[None] | None = None
        self._failing: set[Member] = set()
        self._reason = "no connection"
        self._closed = False

    def __len__(self) -> int:
        return len(self._members)

    @property
    def preferred(self) -> Member:
        """The member that is used next, if it is connected."""
        return self._members[0]

    @property
    def all(self) -> Sequence[Member]:
        return tuple(self._members)

    @property
    def closed(self) -> bool:
        return self._closed

    async def connected(self, deadline: float) -> Member:
        """Return a connected member; waits until `deadline`, in the event loop's time."""
        loop = asyncio.get_running_loop()
        grace_end = loop.time() + _RECONNECT_GRACE_S
        while True:
            if self._closed:
                raise StoreUnavailableError("the metadata store is closed")
            member = next((member for member in self._members if member.is_connected()), None)
            is_last_choice = member in self._failing and member is not self.preferred
            if member and not (is_last_choice and loop.time() < grace_end):
                self.prefer(member)
                return member
            if loop.time() >= deadline:
                endpoints = ", ".join(sorted(member.endpoint for member in self._members))
                raise StoreUnavailableError(
                    f"no etcd member is reachable ({endpoints}): {self._reason}"
                )
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.create_task(self._connect(), name="connect to etcd")
            # The task is shared by all waiters, and continues if one of them gives up.
            until = grace_end if member else deadline
            await asyncio.wait([self._connecting], timeout=max(0, until - loop.time()))

    def prefer(self, member: Member) -> None:
        """Use this member from now on."""
        if member is not self._members[0]:
            self._members.remove(member)
            self._members.insert(0, member)

    def mark_failed(self, member: Member, reason: str) -> None:
        """Use other members first from now on."""
        self._reason = reason
        self._members.remove(member)
        self._members.append(member)
        if member not in self._failing and not self._closed:
            self._failing.add(member)
            logger.warning("etcd member failed", endpoint=member.endpoint, reason=reason)
        member.cancel_streams()

    def mark_healthy(self, member: Member) -> None:
        """Record a successful request."""
        if member in self._failing:
            self._failing.remove(member)
            logger.info("etcd member recovered", endpoint=member.endpoint)

    async def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for member in self._members:
            await member.close()
        await asyncio.sleep(_SETTLE_S)

    async def _connect(self) -> None:
        """Return when one more member is connected."""
        missing = [member for member in self._members if not member.is_connected()]
        tries = [asyncio.ensure_future(member.connect()) for member in missing]
        try:
            if tries:
                await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for attempt in tries:
                attempt.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
