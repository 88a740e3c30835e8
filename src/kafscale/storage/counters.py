"""What storage has done so far, as plain numbers that cost nothing to move.

Metrics are made of them when somebody looks.
"""

from collections import Counter


class Statistics:
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
        """Segments made, by reason."""
        self.segment_bytes = 0
        self.segments_deleted = 0
        self.reads_from_tail = 0
        self.reads_from_segments = 0
        self.block_hits = 0
        self.block_misses = 0
