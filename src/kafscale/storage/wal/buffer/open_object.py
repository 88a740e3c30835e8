"""The open WAL object: the batches that wait in it, and when it is sealed.

Latency and the bill pull apart. What waits longer travels cheaper, since an object costs one PUT
whatever it holds. One rule settles it: an object is sealed when it is full, when its first batch
has waited for as long as may be, when somebody asks, or, before any of these, as soon as an upload
slot is idle and the budget of PUTs allows. So a quiet producer is answered after one round trip,
and a busy broker batches by itself. Where the budget does not allow, an object that is worth its
price is still sealed when nothing more comes: everybody waits for it then.

Producers that are answered together send their next batches together, a moment later. So after a
large object the next one waits for that moment, until it has about as many batches: otherwise the
first of them would travel alone, and the objects be twice as many.

The laws:

1. An object that is due (full, late, asked for) waits for nothing but an upload slot: neither for
   the budget nor for another event.
2. PUTs number at most the burst and the rate times the time, and those that were due, or held
   `quiet_bytes`. These put the budget in debt, so that idle slots make up for it later; the debt is
   bounded, so that they do not stay unused for long after a rush.
3. Batches of a partition lie in the order of their offsets, without a gap.
4. An object that could be sealed waits for companions `gather_ms` at most, and a small one after a
   small one not at all.

Nothing here knows the time, the format of the object (`wal`) or uploads (`flush`).
"""

import enum
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class PutBudget:
    """A token bucket of PUTs: so many a second, and so many at once after a pause.

    It is kept as one number, the time at which the bucket is full again: each PUT moves it on by
    the time in which one token comes.
    """

    __slots__ = ("_burst_ms", "_debt_ms", "_full_at_ms", "_token_ms")

    def __init__(self, puts_per_second: float | None, burst: int = 1) -> None:
        """Without a rate, the budget is unlimited."""
        assert puts_per_second is None or puts_per_second > 0
        assert burst >= 1
        self._token_ms = 0.0 if puts_per_second is None else 1000 / puts_per_second
        self._burst_ms = self._token_ms * (burst - 1)
        # As much again as a full bucket: after a rush it takes no longer than two fillings.
        self._debt_ms = self._token_ms * burst
        self._full_at_ms = -math.inf

    def available(self, now_ms: int) -> bool:
        """Whether there is a whole token."""
        return now_ms >= self._full_at_ms - self._burst_ms

    def ready_at(self, now_ms: int) -> int:
        """When there is a whole token, if none is taken until then."""
        if self.available(now_ms):
            return now_ms
        return math.ceil(self._full_at_ms - self._burst_ms)

    def take(self, now_ms: int) -> None:
        """Count a PUT, whether there was a token for it or not."""
        full_at_ms = max(self._full_at_ms, now_ms) + self._token_ms
        empty_ms = self._burst_ms + self._token_ms
        self._full_at_ms = min(full_at_ms, now_ms + empty_ms + self._debt_ms)


class Gathered(Generic[Key]):
    """The batches of one partition in an open object, in the order of their offsets."""

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
            f"<Gathered {self.key} offsets {self.base_offset}..{self.last_offset}"
            f" bytes {self.size_bytes}>"
        )


class OpenObject(Generic[Key]):
    """What the next WAL object will hold."""

    __slots__ = (
        "_gathered",
        "added_ms",
        "awaited_count",
        "batch_count",
        "count",
        "flush_requested",
        "opened_ms",
        "size_bytes",
    )

    def __init__(self, awaited_count: int = 0) -> None:
        self._gathered: dict[Key, Gathered[Key]] = {}
        self.awaited_count = awaited_count
        """How many batches are expected to come within a moment of the first."""
        self.batch_count = 0
        self.size_bytes = 0
        self.count = 0
        """How many records wait."""
        self.opened_ms = 0
        """When the first batch came; meaningless before."""
        self.added_ms = 0
        """When the last batch came."""
        self.flush_requested = False
        """Whether somebody has asked for this object to be sealed; set from outside."""

    @property
    def is_empty(self) -> bool:
        return not self._gathered

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
        """Take in a batch of the partition that `key` stands for."""
        if not self._gathered:
            self.opened_ms = now_ms
        self.added_ms = now_ms
        gathered = self._gathered.get(key)
        if gathered is None:
            gathered = self._gathered[key] = Gathered(key, base_offset)
        assert base_offset == gathered.last_offset + 1, f"{key}: a gap before {base_offset}"
        size_bytes = len(batch)
        gathered.buffers.append(batch)
        gathered.size_bytes += size_bytes
        gathered.last_offset = last_offset
        gathered.count += count
        gathered.max_timestamp_ms = max(gathered.max_timestamp_ms, max_timestamp_ms)
        self.size_bytes += size_bytes
        self.batch_count += 1
        self.count += count

    def pieces(self) -> Iterable[Gathered[Key]]:
        """What waits, by partition, in the order in which they first came."""
        return self._gathered.values()


class SealReason(enum.StrEnum):
    """Why an object was sealed: also a label of the metric."""

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
    """Decide again when a batch comes, a flush is asked for or an upload ends; at the latest, then.

    Without a time only one of these can change the decision.
    """

    until_ms: int | None


_WAIT_FOR_EVENT: Final = Wait(None)
_SEAL: Final = {reason: Seal(reason) for reason in SealReason}


@dataclass(frozen=True, kw_only=True, slots=True)
class SealRules:
    """When an open object is sealed."""

    flush_bytes: int
    """From this size on it is due."""
    flush_messages: int
    """From this number of records on it is due."""
    flush_interval_ms: int
    """This long after its first batch it is due."""
    uploads_max: int
    """How many uploads there may be at once."""
    idle_uploads_max: int
    """Below this number of uploads a slot counts as idle. One, where the budget is unlimited:
    what comes while the disk is busy then travels together."""
    quiet_bytes: int | None = None
    """From this size on it is worth a PUT beyond the budget, if nothing more comes; None: never."""
    quiet_ms: int = 25
    """After this time without a batch, nothing more comes."""
    gather_ms: int = 2
    """How long after its first batch an object may wait for as many as the last one had,"""
    gather_bytes: int = 128 * 1024
    """if that one had this size at least: many small ones cost little, and their senders wait."""

    def __post_init__(self) -> None:
        assert 1 <= self.idle_uploads_max <= self.uploads_max

    def decide(
        self, object_: OpenObject[Key], now_ms: int, uploads_in_flight: int, budget: PutBudget
    ) -> Seal | Wait:
        """Whether to seal. Who does takes from the budget, whatever the reason."""
        if object_.is_empty or uploads_in_flight >= self.uploads_max:
            return _WAIT_FOR_EVENT
        reason = self._due(object_, now_ms)
        if reason is not None:
            return _SEAL[reason]
        due_at_ms = object_.opened_ms + self.flush_interval_ms
        if uploads_in_flight >= self.idle_uploads_max:
            return Wait(due_at_ms)
        gathered_at_ms = object_.opened_ms + self.gather_ms
        if now_ms < gathered_at_ms and object_.batch_count < object_.awaited_count:
            return Wait(min(due_at_ms, gathered_at_ms))
        if budget.available(now_ms):
            return _SEAL[SealReason.IDLE]
        return self._decide_beyond(object_, now_ms, min(due_at_ms, budget.ready_at(now_ms)))

    def _decide_beyond(self, object_: OpenObject[Key], now_ms: int, until_ms: int) -> Seal | Wait:
        """Whether to seal beyond the budget, which has a token at `until_ms`, or then it is due."""
        if self.quiet_bytes is None:
            return Wait(until_ms)
        quiet_at_ms = object_.added_ms + self.quiet_ms
        if now_ms >= quiet_at_ms and object_.size_bytes >= self.quiet_bytes:
            return _SEAL[SealReason.QUIET]
        look_at_ms = quiet_at_ms if quiet_at_ms > now_ms else now_ms + self.quiet_ms
        return Wait(min(until_ms, look_at_ms))

    def is_ready(self, object_: OpenObject[Key]) -> bool:
        """Whether to decide again, for what has come since, before the time that was told."""
        return (
            object_.batch_count == object_.awaited_count
            or object_.size_bytes >= self.flush_bytes
            or object_.count >= self.flush_messages
        )

    def after(self, sealed: OpenObject[Key]) -> OpenObject[Key]:
        """The object that is opened after one that was sealed."""
        if sealed.size_bytes < self.gather_bytes:
            return OpenObject()
        # Not quite as many: who has left, or sends a smaller request, is not waited for.
        return OpenObject(awaited_count=sealed.batch_count * 7 // 8)

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
