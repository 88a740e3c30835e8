"""`OpenTransactions`: which groups have offsets in which transactions, by shard and producer.

A transaction has groups of a shard if one of them has pending offsets. Its first offsets in a shard
need a guard: the transaction's coordinator has confirmed after `start_verification` that the
transaction is open and includes the shard, and no marker has come since. Otherwise a late commit
would begin a transaction after its own marker, and its offsets would stay pending for ever.

Invariants: a guard is valid in the session of its shard only: another coordinator may have had the
marker. A marker by a coordinator that was replaced is refused, as far as that is remembered: it may
be late, and the producer in its next transaction. A transaction whose marker has come is not open,
also while its groups are being ended (`TransactionEndings`).

A transaction may have thousands of groups, and every commit asks for its epoch: nothing here but
the marker looks at each of them.
"""

from collections.abc import Collection
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from kafscale.errors import TransactionCoordinatorFencedError

if TYPE_CHECKING:
    from kafscale.broker.group_coordinator.group_offsets import GroupOffsets

MARKED_COUNT_MAX: Final = 10_000
"""Producers of which the coordinator is remembered."""


class OpenTransaction(NamedTuple):
    """A transaction with pending offsets in a shard."""

    producer_id: int
    epoch: int
    started_ms: int


class _Transaction:
    """A transaction of a shard: what its groups have in common, and the groups."""

    __slots__ = ("epoch", "groups", "started_ms")

    def __init__(self, epoch: int, started_ms: int) -> None:
        self.epoch = epoch
        self.started_ms = started_ms
        self.groups: dict[GroupOffsets, None] = {}
        """In order of arrival."""


class VerificationGuard:
    """Permits the first offsets of a transaction in a shard."""

    __slots__ = ("__weakref__", "adds_partition", "epoch", "is_valid")

    def __init__(self, epoch: int, *, adds_partition: bool) -> None:
        self.epoch = epoch
        self.adds_partition = adds_partition
        """Whether the coordinator adds the shard to the transaction (KIP-890)."""
        self.is_valid = True


class OpenTransactions:
    """The transactions of all groups of this broker."""

    def __init__(self) -> None:
        self._open: dict[int, dict[int, _Transaction]] = {}
        """By shard and producer id."""
        self._guards: WeakValueDictionary[tuple[int, int], VerificationGuard]
        self._guards = WeakValueDictionary()
        """By shard and producer id; a guard is held by the request that it is about."""
        self._coordinator_epochs: dict[tuple[int, int], int] = {}
        """The highest epoch of a marker's coordinator, by shard and producer id."""

    def add(self, shard: int, opened: OpenTransaction, group: "GroupOffsets") -> None:
        """Record that a group has offsets in the transaction of a producer."""
        producers = self._open.setdefault(shard, {})
        transaction = producers.get(opened.producer_id)
        if transaction is None:
            transaction = _Transaction(opened.epoch, opened.started_ms)
            producers[opened.producer_id] = transaction
        transaction.epoch = max(transaction.epoch, opened.epoch)
        transaction.started_ms = min(transaction.started_ms, opened.started_ms)
        transaction.groups[group] = None

    def discard(self, shard: int, producer_id: int, group: "GroupOffsets") -> None:
        """Forget a group that has no offsets in the open transaction of a producer any more."""
        producers = self._open.get(shard, {})
        transaction = producers.get(producer_id)
        if transaction is None or group not in transaction.groups:
            return
        del transaction.groups[group]
        if not transaction.groups:
            del producers[producer_id]

    def take(self, shard: int, producer_id: int) -> Collection["GroupOffsets"]:
        """The groups with offsets in a transaction, which is not open any more."""
        transaction = self._open.get(shard, {}).pop(producer_id, None)
        return transaction.groups if transaction else ()

    def epoch_of(self, shard: int, producer_id: int) -> int | None:
        """The producer's epoch in its open transaction; None if it has none."""
        transaction = self._open.get(shard, {}).get(producer_id)
        return None if transaction is None else transaction.epoch

    def list(self, shard: int) -> list[OpenTransaction]:
        """The open transactions of a shard, ascending by producer id."""
        return [
            OpenTransaction(producer_id, each.epoch, each.started_ms)
            for producer_id, each in sorted(self._open.get(shard, {}).items(), key=itemgetter(0))
        ]

    # --- verification ---------------------------------------------------------------------------

    def start_verification(
        self, shard: int, producer_id: int, epoch: int, *, adds_partition: bool
    ) -> VerificationGuard:
        """The guard for the first offsets; concurrent requests share one."""
        guard = self._guards.get((shard, producer_id))
        if guard is None:
            guard = VerificationGuard(epoch, adds_partition=adds_partition)
            self._guards[shard, producer_id] = guard
        guard.epoch = max(guard.epoch, epoch)
        return guard

    def check_coordinator(self, shard: int, producer_id: int, coordinator_epoch: int) -> None:
        """Raise if a marker comes from a coordinator that another one has replaced."""
        known_epoch = self._coordinator_epochs.pop((shard, producer_id), coordinator_epoch)
        # Inserted again, so that the producer marked longest ago comes first.
        self._coordinator_epochs[shard, producer_id] = max(known_epoch, coordinator_epoch)
        if len(self._coordinator_epochs) > MARKED_COUNT_MAX:
            del self._coordinator_epochs[next(iter(self._coordinator_epochs))]
        if coordinator_epoch < known_epoch:
            raise TransactionCoordinatorFencedError(
                f"coordinator epoch {coordinator_epoch} of producer {producer_id} is older than"
                f" {known_epoch}"
            )

    def coordinator_epoch(self, shard: int, producer_id: int) -> int | None:
        """The highest epoch of a marker's coordinator, as far as it is remembered."""
        return self._coordinator_epochs.get((shard, producer_id))

    def on_marker(self, shard: int, producer_id: int, epoch: int) -> None:
        """Invalidate the guard of the transaction that a marker ends."""
        guard = self._guards.get((shard, producer_id))
        # With KIP-890, a marker of this epoch ended the transaction before.
        if guard is not None and not (guard.adds_partition and guard.epoch == epoch):
            self._invalidate(shard, producer_id)

    def on_unloaded(self, shards: Collection[int]) -> None:
        """Invalidate the guards of shards that are not served any more."""
        for shard, producer_id in list(self._guards):
            if shard in shards:
                self._invalidate(shard, producer_id)

    def _invalidate(self, shard: int, producer_id: int) -> None:
        guard = self._guards.pop((shard, producer_id), None)
        if guard is not None:
            guard.is_valid = False
