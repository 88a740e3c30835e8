"""What a topic's configuration says about cleaning it, as Kafka's log cleaner would read it.

It comes from the catalog in the bucket, where a topic's own configs stand; the defaults are
Kafka's. Pure.
"""

from collections.abc import Mapping
from typing import Final, Self

import msgspec

from kafscale.spark.jobs.merge.grouping import TARGET_BYTES_MAX

SEGMENT_BYTES: Final = 100 * 1024 * 1024
DELETE_RETENTION_MS: Final = 24 * 3600 * 1000
DIRTY_RATIO_MIN: Final = 0.5
LONG_MAX: Final = 2**63 - 1


class Policy(msgspec.Struct, frozen=True):
    """When and how a topic is compacted."""

    is_compacted: bool = False
    delete_retention_ms: int = DELETE_RETENTION_MS
    """How long marks of deleted keys stay after compaction has met them."""
    dirty_ratio_min: float = DIRTY_RATIO_MIN
    """From which share of bytes on that were never compacted it is worthwhile."""
    lag_ms_min: int = 0
    """How long records stay as they are."""
    lag_ms_max: int = LONG_MAX
    """After how long they are compacted, whatever their share."""
    segment_bytes: int = SEGMENT_BYTES

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Self:
        """What a topic's own configs say.

        >>> Policy.of({"cleanup.policy": "compact, delete"}).is_compacted
        True
        """
        policies = [word.strip() for word in configs.get("cleanup.policy", "").split(",")]
        return cls(
            "compact" in policies,
            int(configs.get("delete.retention.ms", DELETE_RETENTION_MS)),
            float(configs.get("min.cleanable.dirty.ratio", DIRTY_RATIO_MIN)),
            int(configs.get("min.compaction.lag.ms", 0)),
            int(configs.get("max.compaction.lag.ms", LONG_MAX)),
            segment_bytes_of(configs),
        )


def segment_bytes_of(configs: Mapping[str, str]) -> int:
    """How large the segments of a topic are to be."""
    return min(int(configs.get("segment.bytes", SEGMENT_BYTES)), TARGET_BYTES_MAX)
