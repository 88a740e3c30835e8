"""The lineage of the metadata store: whether it still is the one that this process has known.

A store that was restored from a snapshot has forgotten what happened after it, and a process that
remembers that must not go on: what it has seen, owns and is about to write is of a past that there
never was. The laws: a restoration that was there, settled or not, when the process first looked is
no reason to stop, and any other one is; while one is not settled, nobody is served.
"""

import asyncio
from typing import Final

from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import Unsettled, find_restored
from kafscale.metadata.store.base import MetadataStore

RESTORED_MEANWHILE: Final = (
    "the metadata store was restored from a snapshot while this broker ran;"
    " it stops, to be started again with what there is now"
)

_Name = tuple[int, int]
"""What tells one restoration from another."""


class Lineage:
    """What one process knows of the restorations of its metadata store."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._first: _Name | None = None
        self._has_looked = False
        self._settled = asyncio.Event()

    @property
    def is_settled(self) -> bool:
        """Whether the store agrees with the bucket, as far as was seen last."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Wait until it does, while somebody looks again and again."""
        await self._settled.wait()

    async def check(self) -> None:
        """Raise `FencedError` if the store was restored since the first time."""
        unsettled = await find_restored(self._store)
        name = None if unsettled is None else _name(unsettled)
        if name is None:
            self._settled.set()
        else:
            self._settled.clear()
        if not self._has_looked:
            self._first = name
            self._has_looked = True
        elif name is not None and name != self._first:
            raise FencedError(RESTORED_MEANWHILE)


def _name(unsettled: Unsettled) -> _Name:
    return (unsettled.mark.mod_revision if unsettled.mark else 0, unsettled.restoration_count)
