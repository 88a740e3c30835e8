"""Isolation levels of consumers."""

from enum import StrEnum


class IsolationLevel(StrEnum):
    """Which records a consumer sees, by Kafka's names."""

    READ_UNCOMMITTED = "read_uncommitted"
    """All records, also of open and aborted transactions."""
    READ_COMMITTED = "read_committed"
    """Records that are not transactional, and those of committed transactions."""

    @property
    def code(self) -> int:
        """The number in requests."""
        return int(self is IsolationLevel.READ_COMMITTED)
