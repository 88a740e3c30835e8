"""What a topic's configuration says about its logs; the broker resolves it, storage obeys it."""

import msgspec

from kafscale.records import Codec, TimestampType


class LogSettings(msgspec.Struct, frozen=True, gc=False):
    """The settings that a partition's log keeps to."""

    segment_bytes: int
    """The size of a segment that is full."""
    segment_ms: int
    """The age at which a segment is made however small it is."""
    retention_ms: int
    """How long records are kept; -1 is for ever."""
    retention_bytes: int
    """How many bytes of a partition are kept; -1 is all."""
    message_bytes_max: int
    """The largest batch that is taken."""
    timestamp_type: TimestampType
    compression: Codec | None
    """What segments compress uncompressed batches with; None leaves them as they came."""
    is_pruned: bool = True
    """Whether records are deleted from the log's start on; not where it is compacted only."""
