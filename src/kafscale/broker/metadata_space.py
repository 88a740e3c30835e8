"""`MetadataSpace`: how full etcd is, and how many bytes of offset commits it has room for.

etcd rejects all writes once its database has reached its quota: topics, leases and owners as well
as offsets. So offset commits, of which clients can send as many as they like, end before that.
From 70 % of the quota on, a user may write in five minutes, in which etcd usually compacts its
history, what is left up to 90 %, shared by all brokers: the nearer, the slower. Some bytes per
second are left to every user, so that small consumers go on; above 95 % all commits are refused.

What counts is the part of the database in use: etcd reuses the free part. The fullest member
counts, because the alarm of one stops all. Without etcd there is no quota, and nothing to read.
`group_coordinator.commit_limits` applies the rate; `health` shows the warnings.
"""

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from typing import Final, Protocol

from kafscale.metadata.store.etcd.maintenance import MemberStatus, SupportsStatus, statuses
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.counters import DatabaseSpace
from kafscale.text.units import show_size

logger = get_logger(__name__)

INTERVAL_SECONDS: Final = 5.0
"""How often the sizes are read."""

THROTTLED_FROM: Final = 0.7
FULL_AT: Final = 0.9
"""Shares of the quota between which offset commits get slower and slower."""

REFUSED_FROM: Final = 0.95

RATE_MIN: Final = 1024.0
"""How many bytes per second a user may commit at a broker in any case: four offsets."""

HORIZON_SECONDS: Final = 300.0
"""The time in which a user may write what is left."""


class SpaceSource(SupportsStatus, Protocol):
    """A connection to a member."""

    async def close(self) -> None: ...


class MetadataSpace:
    """The space in etcd, as this broker sees it."""

    def __init__(
        self,
        members: Mapping[str, SpaceSource],
        quota_bytes: int,
        metrics: Metrics,
        *,
        broker_count: Callable[[], int],
    ) -> None:
        """`quota_bytes` is the quota of members that do not report theirs."""
        self._members = members
        self._quota_bytes = quota_bytes
        self._broker_count = broker_count
        self._space: DatabaseSpace | None = None
        metrics.etcd_space = lambda: self._space

    def user_rate_max(self) -> float:
        """How many bytes per second one user may commit at this broker; may be infinite or 0."""
        space = self._space
        if space is None:
            return inf
        if space.is_full or space.used_share >= REFUSED_FROM:
            return 0.0
        if space.used_share < THROTTLED_FROM:
            return inf
        room_bytes = (FULL_AT - space.used_share) * space.quota_bytes
        return max(room_bytes / HORIZON_SECONDS / max(self._broker_count(), 1), RATE_MIN)

    def warnings(self) -> Mapping[str, str]:
        """What an operator should know; the broker serves clients nevertheless."""
        space = self._space
        if space is None:
            return {}
        if space.is_full:
            return {
                "etcd": "etcd accepts no writes (alarm NOSPACE), so topics, groups and offsets"
                " cannot be changed: compact its history, defragment all members, then disarm the"
                " alarm (docs/operations/runbook.md#kafscaleetcdnospace)"
            }
        if space.used_share >= THROTTLED_FROM:
            return {
                "etcd": f"{100 * space.used_share:.0f} % of etcd's quota of"
                f" {show_size(space.quota_bytes)} are used, and offset commits are throttled: find"
                " what fills it, or raise the quota"
                " (docs/operations/runbook.md#kafscaleetcdspacelow)"
            }
        return {}

    async def run(self) -> None:
        """Read the sizes until cancelled."""
        while self._members:
            await self.read()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def close(self) -> None:
        """Close the connections to the members."""
        for member in self._members.values():
            await member.close()

    async def read(self) -> None:
        """Read the sizes now; without a response, the last ones stay."""
        responses = (await statuses(self._members)).values()
        read = [each for each in responses if isinstance(each, MemberStatus)]
        if not read:
            return
        before = self.warnings()
        self._space = max(map(self._space_of, read))
        if (now := self.warnings()) and not before:
            logger.warning("etcd is short of space", reason=now["etcd"])
        elif before and not now:
            logger.info("etcd has space again", used_bytes=self._space.used_bytes)

    def _space_of(self, member: MemberStatus) -> DatabaseSpace:
        quota_bytes = member.quota_bytes or self._quota_bytes
        used_bytes = member.database_used_bytes or member.database_bytes
        return DatabaseSpace(member.has_no_space, used_bytes / quota_bytes, used_bytes, quota_bytes)
