"""The topic configs that control compaction, and when a partition is due by them. Pure.

    log start … clean end … cleanable end … log end
    |  compacted earlier  |  dirty  |  head: not rewritten

A partition is due if the dirty share of its cleanable bytes exceeds `min.cleanable.dirty.ratio`, or
if a dirty record is older than `max.compaction.lag.ms`. The head consists of records that are not
in segments yet, and of the first segment with a record younger than `min.compaction.lag.ms`, or at
or above the last stable offset, and all that follow it.
"""

from typing import Final

import msgspec

LONG_MAX: Final = 2**63 - 1


class CompactionRules(msgspec.Struct, frozen=True, gc=False):
    """The configs of a compacted topic; the defaults are Kafka's."""

    delete_retention_ms: int = 24 * 3600 * 1000
    """How long tombstones stay after the first compaction that meets them."""
    dirty_ratio_min: float = 0.5
    """Compact if a larger share of the cleanable bytes is dirty."""
    lag_ms_min: int = 0
    """Do not compact younger records."""
    lag_ms_max: int = LONG_MAX
    """Compact older dirty records, whatever the dirty ratio."""

    @property
    def has_lag_max(self) -> bool:
        return self.lag_ms_max != LONG_MAX

    def is_due(self, dirty_ratio: float, dirty_since_ms: int | None, now_ms: int) -> bool:
        """Whether to compact a partition that has dirty records.

        `dirty_since_ms` is the time of the first dirty record, if it is known.
        """
        if dirty_ratio > self.dirty_ratio_min:
            return True
        return dirty_since_ms is not None and now_ms - dirty_since_ms > self.lag_ms_max
