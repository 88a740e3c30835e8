"""Committed offsets, those that are pending in transactions, and when offsets expire.

Expiration follows Kafka (KIP-211). While a group has members, an offset is kept as long as a member
is subscribed to its topic. Without members, it is kept for the retention time after the group
became empty, or after the commit if that is later; in a group that never had members, after the
commit. A commit with its own retention time is kept for that time, whatever the group does.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kafscale.text.topic_partition import TopicPartition


class CommittedOffset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The next offset to read in a partition."""

    offset: int
    leader_epoch: int = -1
    """-1 if the client did not send it."""
    metadata: str = ""
    committed_ms: int
    expires_ms: int | None = None
    """Set if the commit had its own retention time."""
    topic_id: bytes = b""
    """The topic's id: offsets of a deleted topic do not apply to a new one of the same name."""
    commit_number: int = 0
    """Ascending in the commits of a group while it has transactions; 0 if it had none.

    As in Kafka, the newest of several commits counts, also if it is in a transaction that ends
    after a newer commit.
    """

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it was committed for this topic, as far as is known."""
        return self.topic_id in {b"", topic_id}


class PendingOffsets(msgspec.Struct, kw_only=True):
    """What a group commits with the transaction of a producer."""

    producer_id: int
    producer_epoch: int
    started_ms: int
    """When the first offsets were added."""
    offsets: dict[TopicPartition, CommittedOffset]
    is_committed: bool = False
    """Whether the transaction is committed: the offsets count, and get records of their own."""


def expired(
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    now_ms: int,
    retention_ms: int,
    empty_since_ms: int | None,
    is_read: Callable[[str], bool],
) -> Iterable[TopicPartition]:
    """The topic partitions whose offsets have expired.

    `empty_since_ms` is None if membership is unknown, such as in a group of consumers that assign
    partitions to themselves; `is_read` tests whether a member is subscribed to a topic.
    """
    for topic_partition, committed in offsets.items():
        if committed.expires_ms is not None:
            due_ms = committed.expires_ms
        else:
            due_ms = max(committed.committed_ms, empty_since_ms or 0) + retention_ms
        if due_ms <= now_ms and not is_read(topic_partition[0]):
            yield topic_partition
