"""`CommitLimits`: how many bytes of offset commits a broker writes to the metadata store.

    if not limits.try_admit(user, group_id, size_bytes):
        await limits.wait(user, group_id, size_bytes)

Every commit is a new revision in etcd, also of an offset that exists: without a limit one client
can fill etcd faster than its history is compacted. A commit is admitted by two limits: that of its
user and that of its group. While etcd is nearly full, the limit of every user is lowered
(`metadata_space`).

Invariants:

* A commit is admitted before it is written, or not at all: more connections do not help.
* A refused commit uses up nothing. So a small commit is not kept out by large ones that wait.
* A commit waits for at most `WAIT_SECONDS_MAX`, and the waiting ones have a bound.
* Time is passed in; what is remembered of users and groups is bounded.
"""

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from kafscale.aio.token_bucket import TokenBucket
from kafscale.config.sections.groups import Offsets
from kafscale.errors import CommitsThrottledError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema import keys
from kafscale.observability.logging import RateLimitedLogger, get_logger
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.text.topic_partition import TopicPartition
from kafscale.text.units import MIB

logger = get_logger(__name__)

OFFSET_BYTES: Final = 200
"""What a committed offset takes in etcd besides names and metadata: its value, and etcd's own."""

BURST_SECONDS: Final = 5.0
"""How many seconds of unused rate may be used at once: consumers commit every 5 seconds."""

DEBT_SECONDS_MAX: Final = 60.0
"""The longest time for which a commit that is larger than a burst delays the next one."""

WAIT_SECONDS_MAX: Final = 4.0
"""How long a commit waits; its connection waits, too, so it is less than a session timeout."""

WAITING_BYTES_MAX: Final = 64 * MIB
"""The size of all commits that may wait; further ones are refused at once."""

MUTE_MS: Final = 1000
"""For how long the connection of a refused commit is muted."""

PAUSE_SECONDS_MIN: Final = 0.1
"""The pause before the second attempt; it doubles."""

QUOTA: Final = "offset_commits"
"""The name in metrics."""

_BUCKETS_MAX: Final = 10_000


class CommitLimits:
    """The limits of one broker."""

    def __init__(
        self,
        settings: Offsets,
        counters: SecurityCounters,
        *,
        clock: Callable[[], int],
        timer: Callable[[], float],
        user_rate_max: Callable[[], float] = lambda: inf,
    ) -> None:
        """`user_rate_max` returns the bytes per second that etcd has room for, or infinity.

        `timer` returns monotonic seconds, `clock` ms since 1970.
        """
        self._user_rate = settings.user_commit_bytes_per_second or inf
        self._group_rate = settings.group_commit_bytes_per_second or inf
        self._user_rate_max = user_rate_max
        self._counters = counters
        self._timer = timer
        self._log = RateLimitedLogger(clock)
        self._users: dict[str, TokenBucket] = {}
        self._groups: dict[str, TokenBucket] = {}
        self._waiting_bytes = 0

    def try_admit(self, user: str, group_id: str, size_bytes: int) -> bool:
        """Whether a commit may be written now; if so, it counts."""
        return not self._wait_seconds(user, group_id, size_bytes)

    async def wait(self, user: str, group_id: str, size_bytes: int) -> None:
        """Wait until a commit may be written; raises `CommitsThrottledError` if that is late."""
        self._counters.throttled[QUOTA] = self._counters.throttled.get(QUOTA, 0) + 1
        self._log.warn(
            logger,
            "offset commit throttled",
            user=user,
            group_id=group_id,
            size_bytes=size_bytes,
            rate_max=min(self._user_rate, self._user_rate_max()),
        )
        error = CommitsThrottledError(
            f"user {user!r} or group {group_id!r} commits more bytes than its limit; try again"
        )
        if self._waiting_bytes + size_bytes > WAITING_BYTES_MAX:
            raise error
        self._waiting_bytes += size_bytes
        try:
            if not await self._wait(user, group_id, size_bytes):
                raise error
        finally:
            self._waiting_bytes -= size_bytes

    async def _wait(self, user: str, group_id: str, size_bytes: int) -> bool:
        deadline = self._timer() + WAIT_SECONDS_MAX
        pause_seconds = PAUSE_SECONDS_MIN
        while wait_seconds := self._wait_seconds(user, group_id, size_bytes):
            left_seconds = deadline - self._timer()
            if left_seconds <= 0:
                return False
            await asyncio.sleep(min(max(wait_seconds, pause_seconds), left_seconds))
            pause_seconds *= 2
        return True

    def _wait_seconds(self, user: str, group_id: str, size_bytes: int) -> float:
        """Charge a commit and return 0, or the seconds until another attempt makes sense."""
        now = self._timer()
        rate_max = self._user_rate_max()
        charged: list[TokenBucket] = []
        waits = [0.0]
        if (rate := min(self._user_rate, rate_max)) < inf:
            bucket = _bucket(self._users, user, rate, now)
            # A commit above the burst would let etcd grow by more than it has room for.
            needed = size_bytes if rate_max < inf else min(size_bytes, bucket.capacity)
            waits.append(bucket.wait_seconds(needed, now))
            charged.append(bucket)
        if self._group_rate < inf:
            bucket = _bucket(self._groups, group_id, self._group_rate, now)
            waits.append(bucket.wait_seconds(min(size_bytes, bucket.capacity), now))
            charged.append(bucket)
        wait_seconds = max(waits)
        if not wait_seconds:
            for bucket in charged:
                bucket.consume(size_bytes, now)
        return wait_seconds


def commit_bytes(group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
    """The size of a commit in the metadata store, roughly."""
    each = OFFSET_BYTES + len(keys.committed_offsets(group_id))
    return sum(
        each + len(topic) + len(committed.metadata.encode())
        for (topic, _), committed in offsets.items()
    )


def _bucket(buckets: dict[str, TokenBucket], name: str, rate: float, now: float) -> TokenBucket:
    rate = max(rate, 1.0)
    bucket = buckets.get(name)
    if bucket is None:
        if len(buckets) >= _BUCKETS_MAX:
            _evict(buckets, now)
        bucket = buckets[name] = TokenBucket(
            rate, burst_seconds=BURST_SECONDS, wait_seconds_max=DEBT_SECONDS_MAX
        )
    bucket.rate = rate
    return bucket


def _evict(buckets: dict[str, TokenBucket], now: float) -> None:
    """Forget unused buckets, which has no effect, and the oldest if there are too many."""
    used = [each for each in buckets.items() if not each[1].is_full(now)]
    buckets.clear()
    buckets.update(used[-_BUCKETS_MAX // 2 :])
