"""Committed offsets: how far a group has read, and when that may be forgotten.

The rules of forgetting are Kafka's (KIP-211). While a group has members, an offset is kept as long
as some member reads its topic. Without members, it is kept for the retention time after the group
became empty, or after the commit where that is later; in a group that never had members, after the
commit. A commit that brought a retention time of its own is kept for that, whatever the group does.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kafscale.groups.model import TopicPartition


class CommittedOffset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far a group has read a partition: the next offset to read."""

    offset: int
    leader_epoch: int = -1
    """-1 where the client did not say."""
    metadata: str = ""
    committed_ms: int
    expires_ms: int | None = None
    """Where the commit brought a retention time of its own."""
    topic_id: bytes = b""
    """Of the topic that was read: one created again under its name begins anew."""

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it was committed for this topic, as far as that is known."""
        return self.topic_id in {b"", topic_id}


def expired(
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    now_ms: int,
    retention_ms: int,
    empty_since_ms: int | None,
    is_read: Callable[[str], bool],
) -> Iterable[TopicPartition]:
    """The places whose offsets may be forgotten.

    `empty_since_ms` is None where nothing is known of members, such as in a group of consumers that
    assign partitions to themselves; `is_read` says whether a member reads a topic.
    """
    for place, committed in offsets.items():
        if committed.expires_ms is not None:
            due_ms = committed.expires_ms
        else:
            due_ms = max(committed.committed_ms, empty_since_ms or 0) + retention_ms
        if due_ms <= now_ms and not is_read(place[0]):
            yield place
