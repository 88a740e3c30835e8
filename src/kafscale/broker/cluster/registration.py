"""A broker's place among the living: its registration, kept by a lease, life after life.

The laws: a life begins with a new epoch, which is also the name of its WAL stream, and ends when
the lease is lost or another process registers under the same id. Whether the lease still holds is
told by our own clock: it was kept alive at most its time ago, counted from when we asked, less a
margin for clocks that differ. So this broker stops serving before the others can have taken over;
and it goes on, if the store says that nobody has. A store that was restored from a snapshot since
may say what it likes: the life is over.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kafscale.broker.cluster.restore_guard import Lineage
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker, encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Compare, MetadataStore, Put
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

BEATS: Final = 4
"""How often a lease is kept alive within its time."""

MARGIN: Final = 0.2
"""Which part of a lease is given up: for clocks that do not run alike, and for a leader of etcd
that has lost its followers and prolongs leases until it finds out."""

RETRY_SECONDS: Final = 0.2

Clock = Callable[[], int]


class Membership:
    """The registration of this broker."""

    def __init__(
        self, store: MetadataStore, broker: BrokerInfo, *, ttl_ms: int, clock: Clock, steady: Clock
    ) -> None:
        """`broker` is what to register, but for its epoch and lease."""
        self._store = store
        self._broker = broker
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._steady = steady
        self._proven_until_ms = 0
        self.registration: BrokerInfo | None = None
        """What is registered in this life; None between two lives."""
        self.lineage = Lineage(store)

    @property
    def is_proven(self) -> bool:
        """Whether nobody else can own what this broker owns."""
        return self._steady() < self._proven_until_ms

    async def join(self, epoch: int) -> BrokerInfo:
        """Begin a life; whoever is registered under this id is replaced, and will notice."""
        asked_ms = self._steady()
        lease = await self._store.grant(self._ttl_ms)
        broker = replace(self._broker, epoch=epoch, lease=lease, is_draining=False)
        key = keys.broker(str(broker.id))
        while True:
            found = await self._store.get(key)
            if found is not None and decode_broker(found).epoch >= epoch:
                raise FencedError(f"a later broker is registered under id {broker.id}")
            done = await self._store.commit(
                [Compare(key=key, mod_revision=found.mod_revision if found else 0)],
                [Put(key, encode_broker(broker, self._clock()), lease)],
            )
            if done.succeeded:
                break
        if found is not None:
            log.warning("registration replaced", broker_id=broker.id, epoch=epoch)
        self._prove(asked_ms)
        self.registration = replace(broker, mod_revision=done.revision)
        return self.registration

    async def keep(self) -> None:
        """Keep the lease alive; returns when it is lost."""
        assert self.registration is not None
        lease = self.registration.lease
        while True:
            await asyncio.sleep(self._ttl_ms / BEATS / 1000)
            try:
                is_alive = await self._beat(lease)
            except FencedError as error:
                log.warning("life over", broker_id=self._broker.id, reason=str(error))
                return
            if not is_alive:
                log.warning("lease lost", broker_id=self._broker.id, epoch=self.registration.epoch)
                return

    async def _beat(self, lease: int) -> bool:
        """Ask until there is an answer: whether the lease is alive."""
        was_told = False
        while True:
            asked_ms = self._steady()
            try:
                async with asyncio.timeout(self._ttl_ms / BEATS / 1000):
                    is_alive = await self._store.keep_alive(lease)
                    await self.lineage.check()
            except (OperatingError, TimeoutError) as error:
                if not was_told:
                    log.warning("lease not renewed yet", reason=str(error) or "no answer")
                    was_told = True
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if is_alive:
                self._prove(asked_ms)
            return is_alive

    async def announce_drain(self) -> None:
        """Tell everybody that this broker is about to leave."""
        assert self.registration is not None
        draining = replace(self.registration, is_draining=True)
        done = await self._store.commit(
            [Compare(key=keys.broker(str(draining.id)), mod_revision=draining.mod_revision)],
            [
                Put(
                    keys.broker(str(draining.id)),
                    encode_broker(draining, self._clock()),
                    draining.lease,
                )
            ],
        )
        if not done.succeeded:
            raise FencedError("this broker is not registered any more")
        self.registration = replace(draining, mod_revision=done.revision)

    async def check_alone(self) -> None:
        """Raise `FencedError` if another process is registered under this id since.

        Also if the store was restored: what this one has seen is not what there was.
        """
        await self.lineage.check()
        entry = await self._store.get(keys.broker(str(self._broker.id)))
        ours = self.registration.epoch if self.registration else -1
        if entry is not None and decode_broker(entry).epoch > ours:
            raise FencedError(
                f"another process runs as broker {self._broker.id}; this one stops:"
                " give each broker an id of its own"
            )

    async def leave(self) -> None:
        """End the life; what this broker had is free for others at once, if the store answers."""
        registration, self.registration = self.registration, None
        self._proven_until_ms = 0
        if registration is not None:
            try:
                async with asyncio.timeout(self._ttl_ms / BEATS / 1000):
                    await self._store.revoke(registration.lease)
            except (OperatingError, TimeoutError) as error:
                # It ends by itself, in its time.
                log.warning("lease not given back", reason=str(error) or "no answer")

    def _prove(self, asked_ms: int) -> None:
        self._proven_until_ms = asked_ms + int(self._ttl_ms * (1 - MARGIN))
