"""Detects that the metadata store was restored from a snapshot while this process ran.

A restored store has lost everything that was written after the snapshot. A process that has seen
that state must not continue: what it knows, owns and is about to write belongs to a history that no
longer exists.

Invariants: a restore that was there at the first check, complete or not, is no reason to stop; any
later restore is. No client is served while a restore is pending.
"""

import asyncio
from typing import Final

from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import PendingRestore, find_pending_restore
from kafscale.metadata.store.base import MetadataStore

RESTORED_WHILE_RUNNING: Final = (
    "the metadata store was restored from a snapshot while this broker ran;"
    " it stops, and must be restarted to read the restored metadata"
)

_RestoreId = tuple[int, int]
"""Identifies one restore: the revision of its marker, and the number of restores."""


class RestoreGuard:
    """What one process knows of the restores of its metadata store."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._initial: _RestoreId | None = None
        self._is_initialized = False
        self._restore_complete = asyncio.Event()

    @property
    def is_restore_complete(self) -> bool:
        """Whether the metadata agreed with the bucket at the last check."""
        return self._restore_complete.is_set()

    async def wait_for_restore(self) -> None:
        """Wait until no restore is pending; `check` must be called periodically meanwhile."""
        await self._restore_complete.wait()

    async def check(self) -> None:
        """Raise `FencedError` if the store was restored since the first call."""
        pending = await find_pending_restore(self._store)
        restore_id = None if pending is None else _restore_id(pending)
        if restore_id is None:
            self._restore_complete.set()
        else:
            self._restore_complete.clear()
        if not self._is_initialized:
            self._initial = restore_id
            self._is_initialized = True
        elif restore_id is not None and restore_id != self._initial:
            raise FencedError(RESTORED_WHILE_RUNNING)


def _restore_id(pending: PendingRestore) -> _RestoreId:
    return (pending.marker.mod_revision if pending.marker else 0, pending.restore_count)
