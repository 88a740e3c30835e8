"""The open WAL object: batches by partition, until the object is sealed.

Invariant: the batches of a partition are in offset order, without a gap.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


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
