"""The shards of groups that come to this broker and go from it, with all their groups.

The laws: a shard is served once everything that the store knows of it is restored. One that is
released is answered for no more at once, but what was asked for before is written; on return the
store knows everything that anybody was told. One that is dropped, or found to be somebody else's,
is let go of on the spot: nothing more is written, and whoever waits is sent elsewhere.

Whose a shard is, is decided elsewhere; the claim says it, and every write proves it.
"""

import asyncio
from collections.abc import Collection, Mapping

from kafscale.broker.group_coordinator import loader
from kafscale.broker.group_coordinator.group_registry import GroupDirectory
from kafscale.broker.group_coordinator.shard_session import Phase, Tenure
from kafscale.broker.group_coordinator.tenures import Tenures
from kafscale.broker.group_coordinator.writer import GroupWriter
from kafscale.errors import NotCoordinatorError
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


class Shards:
    """Begins tenures, fills them with groups, and ends them."""

    def __init__(
        self,
        store: MetadataStore,
        catalog: Catalog,
        tenures: Tenures,
        directory: GroupDirectory,
        writer: GroupWriter,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._tenures = tenures
        self._directory = directory
        self._writer = writer

    async def open(self, guards: Mapping[int, OwnershipGuard]) -> None:
        """Serve these shards, from what the store knows of them."""
        begun = {shard: self._begin(shard, guard) for shard, guard in guards.items()}
        try:
            found = await loader.read(self._store, begun.keys(), self._catalog.topics)
            # From here on nobody else has a turn: what was ended meanwhile is known.
            ours = {shard: each for shard, each in begun.items() if each.phase is Phase.LOADING}
            loader.restore(found, self._directory, ours.keys(), self._catalog.topics)
        except BaseException:
            self._end(begun.values(), NotCoordinatorError("the group could not be loaded"))
            raise
        for tenure in ours.values():
            tenure.phase = Phase.SERVING
        self._writer.try_again()
        group_count = sum(len(found.groups[shard]) for shard in ours)
        log.info("group shards opened", count=len(ours), group_count=group_count)

    async def release(self, shards: Collection[int]) -> None:
        """Stop serving these shards, and have everything written that is pending."""
        leaving = [tenure for tenure in map(self._tenures.get, shards) if tenure is not None]
        error = NotCoordinatorError("another broker answers for the group from now on")
        for tenure in leaving:
            tenure.phase = Phase.LEAVING
        self._let_go(leaving, error)
        try:
            await asyncio.gather(*(tenure.settled() for tenure in leaving))
        finally:
            self._end(leaving, error)

    def drop(self, shards: Collection[int]) -> None:
        """Let go of these shards at once."""
        dropped = [tenure for tenure in map(self._tenures.get, shards) if tenure is not None]
        self._end(dropped, NotCoordinatorError("another broker answers for the group"))
        self._writer.try_again()

    def lose(self, tenure: Tenure) -> None:
        """Let go of a shard whose claim does not hold any more."""
        if not tenure.is_over:
            log.warning("group shard lost", shard=tenure.shard)
            self._end([tenure], NotCoordinatorError("another broker answers for the group"))

    def update(self, shard: int, assignment: Assignment) -> None:
        """Take note of a newer assignment of a shard."""
        tenure = self._tenures.get(shard)
        if tenure is None or assignment.mod_revision <= tenure.guard.assignment.mod_revision:
            return
        if _owner(assignment) == _owner(tenure.guard.assignment):
            tenure.guard.assignment = assignment
        else:
            self.lose(tenure)

    # --- inside ---------------------------------------------------------------------------------

    def _begin(self, shard: int, guard: OwnershipGuard) -> Tenure:
        before = self._tenures.get(shard)
        if before is not None:
            # It has been somebody else's in between, and came back before that was noticed.
            self.lose(before)
        tenure = Tenure(shard, guard, self._writer.rouse)
        self._tenures.add(tenure)
        return tenure

    def _end(self, tenures: Collection[Tenure], error: NotCoordinatorError) -> None:
        ending = [tenure for tenure in tenures if not tenure.is_over]
        for tenure in ending:
            self._tenures.remove(tenure)
            tenure.end(error)
        self._let_go(ending, error)

    def _let_go(self, tenures: Collection[Tenure], error: NotCoordinatorError) -> None:
        gone = set(tenures)
        for hosted in self._directory:
            if hosted.tenure in gone:
                hosted.send_away(error)
                self._directory.forget(hosted)


def _owner(assignment: Assignment) -> tuple[int, int, int]:
    return assignment.broker_id, assignment.broker_epoch, assignment.leader_epoch
