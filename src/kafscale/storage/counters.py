"""Counters of storage events as plain integers, which are cheap to update.

The metrics collectors read them at scrape time.
"""

from collections import Counter


class StorageCounters:
    """The counters of one broker's storage."""

    __slots__ = (
        "block_hits",
        "block_misses",
        "reads_from_segments",
        "reads_from_tail",
        "segment_bytes",
        "segments_deleted",
        "segments_rolled",
        "wal_bytes",
        "wal_puts",
        "wal_retries",
        "wal_sealed",
    )

    def __init__(self) -> None:
        self.wal_puts = 0
        self.wal_bytes = 0
        self.wal_retries = 0
        self.wal_sealed: Counter[str] = Counter()
        """Sealed objects by reason."""
        self.segments_rolled: Counter[str] = Counter()
        """Segments rolled, by reason."""
        self.segment_bytes = 0
        self.segments_deleted = 0
        self.reads_from_tail = 0
        self.reads_from_segments = 0
        self.block_hits = 0
        self.block_misses = 0
