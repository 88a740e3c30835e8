"""The WAL buffer: the open object with its batches, and the policy that decides when it is sealed.

The policy is a trade between produce latency and the cost of PUTs. An object costs one PUT whatever
its size, so waiting longer is cheaper. An object is sealed when it is full, when its first batch
has waited for the flush interval, when a flush is requested, or, before any of these, as soon as an
upload slot is idle and the PUT budget allows it. So a single producer gets its response after one
round trip, and a busy broker batches automatically. If the budget is used up, an object that is
large enough is still sealed when no more batches arrive, because then all producers are waiting for
it.

Producers whose batches are acknowledged together send their next batches together, a moment later.
After a large object, the next one therefore waits briefly until it has about as many batches.
Otherwise the first batch would be uploaded alone and the number of objects would double.

Invariants:

1. An object that is due (full, late, flush requested) waits only for an upload slot, neither for
   the budget nor for another event.
2. The number of PUTs is at most burst + rate x time, plus those that were due or held at least
   `quiet_bytes`. These put the budget into debt, which later idle slots repay; the debt is bounded,
   so that idle slots do not stay unused for long after a burst.
3. An object that could be sealed waits at most `coalesce_ms` for more batches; a small object after
   a small one does not wait.
4. The batches of a partition in an object are in offset order, without a gap.

This module has no clock and does no I/O: `writer` passes the time and uploads the objects.
"""

import enum
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from kafscale.aio.token_bucket import TokenBucket
from kafscale.storage.formats import object_keys, wal_object

Key = TypeVar("Key", bound=Hashable)

FIRST_SEQUENCE = 1
"""The first sequence with records; 0 is the object that created the stream."""

_ROUNDING_MS: Final = 1e-3
"""Less than a clock tick: a token is not waited for because a floating-point number was rounded."""


class PartitionBatches(Generic[Key]):
    """The batches of one partition in an open object, in offset order."""

    __slots__ = (
        "base_offset",
        "buffers",
        "count",
        "key",
        "last_offset",
        "max_timestamp_ms",
        "size_bytes",
    )

    def __init__(self, key: Key, base_offset: int) -> None:
        self.key = key
        self.buffers: list[memoryview] = []
        self.size_bytes = 0
        self.base_offset = base_offset
        self.last_offset = base_offset - 1
        self.count = 0
        self.max_timestamp_ms = -1

    def __repr__(self) -> str:
        return (
            f"<PartitionBatches {self.key} offsets {self.base_offset}..{self.last_offset}"
            f" bytes {self.size_bytes}>"
        )


class OpenObject(Generic[Key]):
    """The next WAL object, while it accepts batches."""

    __slots__ = (
        "_partitions",
        "added_ms",
        "batch_count",
        "count",
        "expected_batches",
        "flush_requested",
        "opened_ms",
        "size_bytes",
    )

    def __init__(self, expected_batches: int = 0) -> None:
        self._partitions: dict[Key, PartitionBatches[Key]] = {}
        self.expected_batches = expected_batches
        """Number of batches expected within a moment of the first one."""
        self.batch_count = 0
        self.size_bytes = 0
        self.count = 0
        """Number of records."""
        self.opened_ms = 0
        """When the first batch was added; undefined while empty."""
        self.added_ms = 0
        """When the last batch was added."""
        self.flush_requested = False
        """Whether a flush was requested; set by the writer."""

    @property
    def is_empty(self) -> bool:
        return not self._partitions

    def add(  # noqa: PLR0917 - keywords cost time on the produce path
        self,
        key: Key,
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        count: int,
        max_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Add a batch of the partition that `key` identifies."""
        if not self._partitions:
            self.opened_ms = now_ms
        self.added_ms = now_ms
        batches = self._partitions.get(key)
        if batches is None:
            batches = self._partitions[key] = PartitionBatches(key, base_offset)
        assert base_offset == batches.last_offset + 1, f"{key}: gap before offset {base_offset}"
        size_bytes = len(batch)
        batches.buffers.append(batch)
        batches.size_bytes += size_bytes
        batches.last_offset = last_offset
        batches.count += count
        batches.max_timestamp_ms = max(batches.max_timestamp_ms, max_timestamp_ms)
        self.size_bytes += size_bytes
        self.batch_count += 1
        self.count += count

    def partitions(self) -> Iterable[PartitionBatches[Key]]:
        """The batches by partition, in order of their first batch."""
        return self._partitions.values()


class StreamPosition:
    """The next sequence of a stream."""

    __slots__ = ("broker_id", "epoch", "namespace", "sequence")

    def __init__(self, namespace: str, broker_id: int, epoch: int) -> None:
        self.namespace = namespace
        self.broker_id = broker_id
        self.epoch = epoch
        self.sequence = FIRST_SEQUENCE

    def next_object(self, now_ms: int, trimmed_to: int) -> tuple[str, wal_object.Header]:
        header = wal_object.Header(self.broker_id, self.epoch, self.sequence, now_ms, trimmed_to)
        key = object_keys.wal_key(self.namespace, self.broker_id, self.epoch, self.sequence)
        self.sequence += 1
        return key, header


class PutBudget:
    """A token bucket of PUTs with a rate per second and a burst."""

    __slots__ = ("_bucket",)

    def __init__(self, puts_per_second: float | None, burst: int = 1) -> None:
        """Without a rate the budget is unlimited."""
        self._bucket: TokenBucket | None = None
        if puts_per_second is not None:
            # Debt is limited to one full bucket, so a burst is repaid after at most two fillings.
            seconds = burst / puts_per_second
            self._bucket = TokenBucket(
                puts_per_second, burst_seconds=seconds, wait_seconds_max=seconds
            )

    def ready_at(self, now_ms: int) -> int:
        """When a whole token is available, if none is consumed before; `now_ms` if one is now."""
        if self._bucket is None:
            return now_ms
        wait_ms = 1000 * self._bucket.wait_seconds(1, now_ms / 1000)
        return now_ms + math.ceil(wait_ms - _ROUNDING_MS)

    def consume(self, now_ms: int) -> None:
        """Count a PUT, with or without a token for it."""
        if self._bucket is not None:
            self._bucket.consume(1, now_ms / 1000)


class SealReason(enum.StrEnum):
    """Why an object is sealed."""

    BYTES = "bytes"
    MESSAGES = "messages"
    INTERVAL = "interval"
    EXPLICIT = "explicit"
    IDLE = "idle"
    QUIET = "quiet"


class Seal(NamedTuple):
    """Seal the object now."""

    reason: SealReason


class Wait(NamedTuple):
    """Decide again at the next event (batch, flush request, finished upload), or at a time.

    Without a time, only an event can change the decision.
    """

    until_ms: int | None


_WAIT_FOR_EVENT: Final = Wait(None)
_SEAL: Final = {reason: Seal(reason) for reason in SealReason}


@dataclass(frozen=True, kw_only=True, slots=True)
class SealPolicy:
    """Decides when an open object is sealed."""

    flush_bytes: int
    """An object of this size is due."""
    flush_messages: int
    """An object with this number of records is due."""
    flush_interval_ms: int
    """An object is due this long after its first batch."""
    uploads_max: int
    """Limit of concurrent uploads."""
    idle_uploads_max: int
    """With fewer uploads than this, a slot counts as idle. 1 if the budget is unlimited: batches
    that arrive while the disk is busy then share an object."""
    quiet_bytes: int | None = None
    """An object of this size is worth a PUT over budget if no more batches arrive; None: never."""
    quiet_ms: int = 25
    """No more batches are expected after a pause of this length."""
    coalesce_ms: int = 2
    """How long after its first batch an object may wait for as many batches as the last one had."""
    coalesce_bytes: int = 128 * 1024
    """Coalesce only after an object of this size: small objects cost little."""

    def __post_init__(self) -> None:
        assert 1 <= self.idle_uploads_max <= self.uploads_max

    def decide(
        self, object_: OpenObject[Key], now_ms: int, uploads_in_flight: int, budget: PutBudget
    ) -> Seal | Wait:
        """Whether to seal now. The caller consumes from the budget for every sealed object."""
        if object_.is_empty or uploads_in_flight >= self.uploads_max:
            return _WAIT_FOR_EVENT
        reason = self._due(object_, now_ms)
        if reason is not None:
            return _SEAL[reason]
        due_at_ms = object_.opened_ms + self.flush_interval_ms
        if uploads_in_flight >= self.idle_uploads_max:
            return Wait(due_at_ms)
        coalesced_at_ms = object_.opened_ms + self.coalesce_ms
        if now_ms < coalesced_at_ms and object_.batch_count < object_.expected_batches:
            return Wait(min(due_at_ms, coalesced_at_ms))
        ready_at_ms = budget.ready_at(now_ms)
        if ready_at_ms == now_ms:
            return _SEAL[SealReason.IDLE]
        return self._decide_over_budget(object_, now_ms, min(due_at_ms, ready_at_ms))

    def _decide_over_budget(
        self, object_: OpenObject[Key], now_ms: int, until_ms: int
    ) -> Seal | Wait:
        """Whether to seal over budget; at `until_ms` there is a token or the object is due."""
        if self.quiet_bytes is None:
            return Wait(until_ms)
        quiet_at_ms = object_.added_ms + self.quiet_ms
        if now_ms >= quiet_at_ms and object_.size_bytes >= self.quiet_bytes:
            return _SEAL[SealReason.QUIET]
        check_at_ms = quiet_at_ms if quiet_at_ms > now_ms else now_ms + self.quiet_ms
        return Wait(min(until_ms, check_at_ms))

    def should_decide_now(self, object_: OpenObject[Key]) -> bool:
        """Whether the last batch may change the decision before the time that `decide` returned."""
        return (
            object_.batch_count == object_.expected_batches
            or object_.size_bytes >= self.flush_bytes
            or object_.count >= self.flush_messages
        )

    def next_object(self, sealed: OpenObject[Key]) -> OpenObject[Key]:
        """The object to open after one that was sealed."""
        if sealed.size_bytes < self.coalesce_bytes:
            return OpenObject()
        # A few fewer, because some producers have left or send smaller requests.
        return OpenObject(expected_batches=sealed.batch_count * 7 // 8)

    def _due(self, object_: OpenObject[Key], now_ms: int) -> SealReason | None:
        if object_.size_bytes >= self.flush_bytes:
            return SealReason.BYTES
        if object_.count >= self.flush_messages:
            return SealReason.MESSAGES
        if now_ms - object_.opened_ms >= self.flush_interval_ms:
            return SealReason.INTERVAL
        if object_.flush_requested:
            return SealReason.EXPLICIT
        return None
