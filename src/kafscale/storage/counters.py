"""Counters of storage events as plain integers, which are cheap to update.

The metrics collectors read them at scrape time.
"""

from collections import Counter


class CompactionCounters:
    """The counters of compaction by this broker."""

    __slots__ = (
        "bytes_read",
        "bytes_reclaimed",
        "bytes_written",
        "failures",
        "records_removed",
        "runs",
    )

    def __init__(self) -> None:
        self.runs = 0
        """Logs compacted."""
        self.failures = 0
        self.records_removed = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.bytes_reclaimed = 0
        """By how much segments have become smaller."""


class StorageCounters:
    """The counters of one broker's storage."""

    __slots__ = (
        "compaction",
        "damaged_reads",
        "segment_bytes",
        "segments_rolled",
        "wal_bytes",
        "wal_puts",
        "wal_retries",
    )

    def __init__(self) -> None:
        self.wal_puts = 0
        self.wal_bytes = 0
        self.wal_retries = 0
        self.segments_rolled: Counter[str] = Counter()
        """Segments rolled, by reason."""
        self.segment_bytes = 0
        self.damaged_reads = 0
        """Reads of segments that found damage, also after a second attempt."""
        self.compaction = CompactionCounters()
