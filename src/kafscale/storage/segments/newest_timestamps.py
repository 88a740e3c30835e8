"""Loads the newest timestamps of segments, which retention and compaction need.

Each is read from the segment's index once, and kept in memory.
"""

from collections.abc import Sequence
from typing import Final

from kafscale.aio.gather import map_limited
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader

PARALLEL_READS_MAX: Final = 16
"""How many indexes are read at once."""


class NewestTimestamps:
    """Reads newest timestamps from the bucket."""

    def __init__(self, store: ObjectStore, namespace: str, reader: LogReader) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader

    async def load(self, log: PartitionLog, segments: Sequence[Segment]) -> None:
        """Read the newest timestamps of segments, or when they were written if they have none."""

        async def load(segment: Segment) -> None:
            newest_ms = (await self._reader.index(log, segment)).max_timestamp_ms
            if newest_ms is None or newest_ms < 0:
                key = object_keys.segment_key(
                    self._namespace, log.directory, log.partition, segment.base_offset
                )
                newest_ms = (await self._store.head(key)).modified_ms
            log.segments.set_newest_ms(segment, newest_ms)

        await map_limited(load, segments, PARALLEL_READS_MAX)
