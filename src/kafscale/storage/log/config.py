"""Topic configuration that applies to a partition's log; resolved by the broker."""

import msgspec

from kafscale.records import Codec, TimestampType
from kafscale.storage.compaction.rules import CompactionRules


class LogSettings(msgspec.Struct, frozen=True, gc=False):
    """The topic configs that a `PartitionLog` applies."""

    segment_bytes: int
    """Roll a segment at this size (`segment.bytes`)."""
    segment_ms: int
    """Roll a segment at this age, even if it is small (`segment.ms`)."""
    retention_ms: int
    """How long records are kept (`retention.ms`); -1 keeps them forever."""
    retention_bytes: int
    """Size limit of a partition (`retention.bytes`); -1 is unlimited."""
    message_bytes_max: int
    """The largest accepted batch (`max.message.bytes`)."""
    timestamp_type: TimestampType
    compression: Codec | None
    """Codec for batches that arrive uncompressed, applied when rolling; None: no compression."""
    has_delete_policy: bool = True
    """Whether `cleanup.policy` contains `delete`, so that records may be deleted from the start."""
    compaction: CompactionRules | None = None
    """How to compact, if `cleanup.policy` contains `compact`."""
    timestamp_after_max_ms: int = 2**63 - 1
    """How far a CreateTime may be in the future (`message.timestamp.after.max.ms`)."""
    timestamp_before_max_ms: int = 2**63 - 1
    """How far a CreateTime may be in the past (`message.timestamp.before.max.ms`)."""

    @property
    def requires_keys(self) -> bool:
        """Whether every record needs a key, because the topic is compacted."""
        return self.compaction is not None
