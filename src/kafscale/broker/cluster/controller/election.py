"""The election: which of the brokers is controller, and whether that is us.

The law: the controller is whoever put its id under the controller's key, while nobody had, under
the lease of its present life; the key goes with the lease. We are controller only while the view
shows that very entry, and what a controller writes compares it.
"""

from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Entry, MetadataStore, Put, absent


class Election:
    """One broker's part in the elections."""

    def __init__(self, store: MetadataStore, view: ClusterView) -> None:
        self._store = store
        self._view = view
        self.life: BrokerInfo | None = None
        """As what we are registered; between two lives we are no candidate."""

    @property
    def entry(self) -> Entry | None:
        """The entry that makes us controller; None if we are not."""
        entry = self._view.controller
        if self.life is None or entry is None or entry.lease != self.life.lease:
            return None
        return entry

    @property
    def is_open(self) -> bool:
        """Whether there is no controller, and it is on us to become it."""
        if self.life is None or self._view.controller is not None or not self._view.connected:
            return False
        registered = self._view.brokers.get(self.life.id)
        if registered is None or registered.epoch != self.life.epoch:
            return False
        # Who is about to leave would only have to be followed by another.
        return not registered.is_draining or all(
            broker.is_draining for broker in self._view.brokers.values()
        )

    async def stand(self) -> None:
        """Try to become controller; the view will show who did."""
        assert self.life is not None
        await self._store.commit(
            [absent(keys.CONTROLLER)],
            [Put(keys.CONTROLLER, str(self.life.id).encode(), self.life.lease)],
        )
