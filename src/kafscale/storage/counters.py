"""Counters of storage events as plain integers, which are cheap to update.

The metrics collectors read them at scrape time.
"""

from collections import Counter


class StorageCounters:
    """The counters of one broker's storage."""

    __slots__ = (
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
