"""What scenarios do beyond the basic events; `ENABLED` is what `make test` runs."""

import enum
from typing import Final


class Feature(enum.Enum):
    """A kind of event, with the checks that belong to it."""

    MERGES = enum.auto()
    """Jobs replace segments by larger ones with the same records."""
    COMPACTION = enum.auto()
    """Jobs replace segments by ones without superseded records."""
    BUCKET_READERS = enum.auto()
    """Readers list the bucket without metadata, as Spark does."""
    SUSPENSIONS = enum.auto()
    """A process stops between two instructions, and continues after others have taken over."""
    METADATA_OUTAGES = enum.auto()
    """A broker cannot reach the metadata store for a while, and doubts its lease."""
    CONCURRENT_SAVES = enum.auto()
    """A broker saves the state of a partition several times at once."""
    LATE_COMMITS = enum.auto()
    """Commits to the metadata store fail, and take effect later."""
    CLOCK_STEPS = enum.auto()
    """The wall clock of a broker jumps."""
    REFUSED_PARTITIONS = enum.auto()
    """The store refuses the segments of two partitions."""
    TRANSACTIONS = enum.auto()
    """Some producers send in transactions, and readers leave out what was aborted."""
    DAMAGED_INDEXES = enum.auto()
    """A bit of an index is flipped."""
    DAMAGED_SEGMENTS = enum.auto()
    """A bit of a segment is flipped."""
    DAMAGED_WAL = enum.auto()
    """A bit of the newest object of a WAL stream is flipped."""


ENABLED: Final = frozenset(
    {
        Feature.MERGES,
        Feature.COMPACTION,
        Feature.CONCURRENT_SAVES,
        Feature.BUCKET_READERS,
        Feature.SUSPENSIONS,
        Feature.METADATA_OUTAGES,
        Feature.LATE_COMMITS,
        Feature.CLOCK_STEPS,
        Feature.REFUSED_PARTITIONS,
        Feature.DAMAGED_INDEXES,
        Feature.TRANSACTIONS,
    }
)
"""Add a feature here once the engine keeps its invariants with it."""
