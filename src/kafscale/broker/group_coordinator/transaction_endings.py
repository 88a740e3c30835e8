"""`TransactionEndings`: ends a transaction in all groups of a shard, some of them at a time.

A transaction may have offsets of thousands of groups, and one event loop serves all clients. Its
first groups are ended at once; if there are more, a task ends the others.

Invariant: a transaction that was begun to be ended is ended in all of its groups, whether a request
still waits for it or not, unless the session of its shard ends: then its next owner does that.
"""

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafscale.broker.group_coordinator.group_offsets import GroupOffsets
    from kafscale.broker.shards.shard_session import ShardSession

OFFSETS_AT_ONCE: Final = 500
"""How many offsets are ended before the event loop runs other tasks: a few milliseconds."""

GROUP_OFFSETS: Final = 2
"""What a group takes besides its offsets, counted in offsets."""


class TransactionEndings:
    """The transactions whose groups are being ended."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[ShardSession, int], asyncio.Task[None]] = {}
        """By session and producer id; an event loop holds its tasks weakly."""

    def find(self, session: "ShardSession", producer_id: int) -> "asyncio.Task[None] | None":
        """What ends a transaction of the producer now: its next one has to wait."""
        task = self._tasks.get((session, producer_id))
        return None if task is None or task.done() else task

    def start(
        self,
        session: "ShardSession",
        producer_id: int,
        groups: "Iterable[GroupOffsets]",
        *,
        is_commit: bool,
    ) -> "asyncio.Task[None] | None":
        """End a transaction in these groups; returns the task if that is not all done."""
        left = iter(groups)
        if not _end_some(left, producer_id, is_commit=is_commit):
            return None
        task = asyncio.ensure_future(_end_all(session, producer_id, left, is_commit=is_commit))
        self._tasks[session, producer_id] = task
        task.add_done_callback(partial(self._forget, (session, producer_id)))
        return task

    def _forget(self, key: "tuple[ShardSession, int]", task: "asyncio.Task[None]") -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]


async def _end_all(
    session: "ShardSession", producer_id: int, groups: "Iterator[GroupOffsets]", *, is_commit: bool
) -> None:
    is_left = True
    while is_left and not session.has_ended:
        await asyncio.sleep(0)
        is_left = _end_some(groups, producer_id, is_commit=is_commit)


def _end_some(groups: "Iterator[GroupOffsets]", producer_id: int, *, is_commit: bool) -> bool:
    """End the transaction in some groups; false if none is left."""
    count = 0
    for group_offsets in groups:
        count += GROUP_OFFSETS + group_offsets.pending_count(producer_id)
        group_offsets.end_transaction(producer_id, is_commit=is_commit)
        if count >= OFFSETS_AT_ONCE:
            return True
    return False
