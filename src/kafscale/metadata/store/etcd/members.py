"""The members of the etcd cluster, and which of them is asked.

The laws: the member that answered last is asked again, so that one that fails slows down a request
or two and not every one; the one that failed last is asked last, even if it is the only one with a
connection and others have to be given a moment to make theirs. All try that at once, and the first
to have one is taken. What counts as a failure is left to `client`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.etcd.member import Member
from kafscale.observability.logging import get_logger

_RECONNECT_GRACE_S: Final = 0.25
"""How long others may take to connect before a member that has failed is asked again."""

_SETTLE_S: Final = 0.05
"""How long the ends of cancelled calls may take to arrive. gRPC delivers them to the loop of the
call, even if that is closed by then, and stumbles; there is nothing to wait for but the time."""

_log = get_logger(__name__)


class Members:
    """All members, the best first."""

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
        """The one that is asked next, if it can be."""
        return self._members[0]

    @property
    def all(self) -> Sequence[Member]:
        return tuple(self._members)

    @property
    def closed(self) -> bool:
        return self._closed

    async def connected(self, deadline: float) -> Member:
        """A member with a connection, waited for until the loop's clock shows `deadline`."""
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
                    f"no member of etcd ({endpoints}) can be reached: {self._reason}"
                )
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.create_task(self._connect(), name="connect to etcd")
            # The task is shared by all who wait, and outlasts those who give up.
            until = grace_end if member else deadline
            await asyncio.wait([self._connecting], timeout=max(0, until - loop.time()))

    def prefer(self, member: Member) -> None:
        """Ask this one from now on."""
        if member is not self._members[0]:
            self._members.remove(member)
            self._members.insert(0, member)

    def mark_failed(self, member: Member, reason: str) -> None:
        """Ask others first from now on."""
        self._reason = reason
        self._members.remove(member)
        self._members.append(member)
        if member not in self._failing and not self._closed:
            self._failing.add(member)
            _log.warning("etcd member fails", endpoint=member.endpoint, reason=reason)
        member.cancel_streams()

    def mark_healthy(self, member: Member) -> None:
        """Nothing is wrong with it, or not any more."""
        if member in self._failing:
            self._failing.remove(member)
            _log.info("etcd member responses again", endpoint=member.endpoint)

    async def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        for member in self._members:
            await member.close()
        await asyncio.sleep(_SETTLE_S)

    async def _connect(self) -> None:
        """Return when one more member has a connection."""
        missing = [member for member in self._members if not member.is_connected()]
        tries = [asyncio.ensure_future(member.connect()) for member in missing]
        try:
            if tries:
                await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for attempt in tries:
                attempt.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
