"""Segments that were found damaged: read them again, count and log them.

What looks like damage may be outdated: a former owner has replaced the segment late, or a cached
block came from a replica that lags or was damaged on the way. So the first time, the cached data of
the segment is dropped, its size is determined again, and it is read once more. A segment that is
still damaged then is not read again for a while, because consumers ask for it all the time.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kafscale.errors import DamagedObjectError, DamagedRecordsError
from kafscale.observability.logging import get_logger
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

PAUSE_SECONDS: Final = 30.0
"""How long a damaged segment is neither read from the store nor logged again."""


class DamagedSegments:
    """The segments that were found damaged recently."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        forget: Callable[..., None],
        counters: StorageCounters,
    ) -> None:
        """`forget` drops the cached data of keys."""
        self._store = store
        self._namespace = namespace
        self._forget = forget
        self._counters = counters
        self._until: dict[str, float] = {}
        """The end of the pause, by the key of the segment."""

    async def refresh(self, log: PartitionLog, key: str) -> bool:
        """Drop what is cached of a segment, given its key or its index's.

        Returns whether it should be read again.
        """
        location = self._location(key)
        if location is None:
            return False
        segment_key = object_keys.segment_key(*location)
        if self._until.get(segment_key, 0) > asyncio.get_running_loop().time():
            return False
        info = await self._store.head(segment_key)
        if log.segments.resize(location[-1], info.size_bytes):
            logger.warning("segment was replaced", key=segment_key, size_bytes=info.size_bytes)
        self._forget(segment_key, object_keys.index_key(*location))
        return True

    def add(self, error: DamagedObjectError) -> DamagedRecordsError:
        """Count a segment that is still damaged; return the error for its readers."""
        self._counters.damaged_reads += 1
        now = asyncio.get_running_loop().time()
        location = self._location(error.key)
        key = error.key if location is None else object_keys.segment_key(*location)
        if self._until.get(key, 0) <= now:
            self._until = {other: until for other, until in self._until.items() if until > now}
            self._until[key] = now + PAUSE_SECONDS
            logger.error("damaged segment", key=error.key, reason=error.reason)
        return DamagedRecordsError(error.key, error.reason)

    def _location(self, key: str) -> tuple[str, str, int, int] | None:
        ref = object_keys.parse_segment(self._namespace, key)
        return (
            None
            if ref is None
            else (self._namespace, ref.directory, ref.partition, ref.base_offset)
        )
