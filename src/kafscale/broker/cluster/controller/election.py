"""The election of the controller.

Invariants: the controller is the broker that put its id under the controller key while the key was
absent, with the lease of its current session; the key vanishes with the lease. A broker is
controller only while the cluster cache shows that very entry, and every write of a controller
compares it.
"""

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Entry, MetadataStore, Put, absent


class Election:
    """One broker's part in the elections."""

    def __init__(self, store: MetadataStore, cache: ClusterCache) -> None:
        self._store = store
        self._cache = cache
        self.broker: BrokerInfo | None = None
        """The registration of the current session; without a session, this broker does not
        campaign.
        """

    @property
    def entry(self) -> Entry | None:
        """The entry that makes this broker controller; None if it is not."""
        entry = self._cache.controller
        if self.broker is None or entry is None or entry.lease != self.broker.lease:
            return None
        return entry

    @property
    def should_campaign(self) -> bool:
        """Whether there is no controller, and this broker is a candidate."""
        if self.broker is None or self._cache.controller is not None or not self._cache.connected:
            return False
        registered = self._cache.brokers.get(self.broker.id)
        if registered is None or registered.epoch != self.broker.epoch:
            return False
        # A draining broker would soon have to be replaced.
        return not registered.is_draining or all(
            broker.is_draining for broker in self._cache.brokers.values()
        )

    async def campaign(self) -> None:
        """Try to become controller; the cluster cache will show the winner."""
        assert self.broker is not None
        await self._store.commit(
            [absent(keys.CONTROLLER)],
            [Put(keys.CONTROLLER, str(self.broker.id).encode(), self.broker.lease)],
        )
