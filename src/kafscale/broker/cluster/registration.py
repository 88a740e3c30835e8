"""The registration of a broker in the metadata store, kept alive by a lease.

Invariants:

1. A broker session starts with a new broker epoch, which also names its WAL stream. It ends when
   the lease is lost, or when a later process of the broker registers.
2. The broker decides by its own monotonic clock whether its lease is valid: a renewal is valid for
   the TTL, counted from when the request was sent, minus a safety margin for clock drift. So the
   broker stops serving before another broker can take over, and resumes when the store confirms
   that none has.
3. A registration is never replaced while its process may live: only by the same process, or by
   one that listens where that process listened. Any other process waits until the lease ends.
4. If the store was restored from a snapshot since, the session is over, whatever the store says.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster.restore_marker import PendingRestore, find_pending_restore
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker, encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import NO_LEASE, Compare, MetadataStore, Put
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

RENEWALS_PER_TTL: Final = 4
"""How often the lease is renewed within its TTL."""

SAFETY_MARGIN: Final = 0.2
"""The part of the TTL that is not used: for clock drift, and for an etcd leader that has lost
its followers and renews leases until it notices.
"""

RETRY_SECONDS: Final = 0.2

HEARTBEAT_SECONDS: Final = 30
"""How often the time of the last heartbeat is written: 100 brokers cost etcd three small writes a
second. The lease is what ends a session; the time is for readers of the schema."""

TTLS_TO_WAIT: Final = 1.5
"""How many TTLs a starting broker waits for the end of the lease of another process."""

Clock = Callable[[], int]


RESTORED_WHILE_RUNNING: Final = (
    "the metadata store was restored from a snapshot while this broker ran;"
    " it stops, and must be restarted to read the restored metadata"
)

_RestoreId = tuple[int, int]
"""Identifies one restore: the revision of its marker, and the number of restores."""


class RestoreGuard:
    """Detects that the metadata store was restored from a snapshot while this process ran.

    A process that has seen what was written after the snapshot must not continue: what it knows,
    owns and is about to write belongs to a history that no longer exists. A restore that was there
    at the first check, complete or not, is no reason to stop; any later restore is. No client is
    served while a restore is pending.
    """

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


class Registration:
    """The registration of this broker."""

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerInfo,
        *,
        ttl_ms: int,
        clock: Clock,
        monotonic: Clock,
    ) -> None:
        """`broker` is what to register, without epoch and lease."""
        self._store = store
        self._template = broker
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._monotonic = monotonic
        self._valid_until_ms = 0
        self._saving = asyncio.Lock()
        self.broker: BrokerInfo | None = None
        """The registered broker of this session; None between two sessions."""
        self.restore_guard = RestoreGuard(store)

    def set_control_address(self, address: Address) -> None:
        """Set where the control plane of this broker is reached, before its first session."""
        assert self.broker is None, "not registered yet"
        self._template = replace(
            self._template, control_host=address.host, control_port=address.port
        )

    @property
    def broker_id(self) -> int:
        return self._template.id

    @property
    def lease_is_valid(self) -> bool:
        """True while no other broker can own what this broker owns."""
        return self._monotonic() < self._valid_until_ms

    async def wait_until_free(self) -> None:
        """Wait until no other process is registered under this broker id.

        Raises `FencedError` if another process keeps its lease: it is alive.
        """
        deadline_ms = self._monotonic() + self._ttl_ms * TTLS_TO_WAIT
        is_logged = False
        while (other := await self._other_process()) is not None:
            if self._monotonic() > deadline_ms:
                raise _taken(other)
            if not is_logged:
                logger.warning(
                    "waiting for the end of another process's lease",
                    broker_id=other.id,
                    address=f"{other.host}:{other.port}",
                )
                is_logged = True
            await asyncio.sleep(RETRY_SECONDS)

    async def _other_process(self) -> BrokerInfo | None:
        """What is registered under this broker id, unless this process may replace it."""
        entry = await self._store.get(keys.broker(self.broker_id))
        if entry is None:
            return None
        registered = decode_broker(entry)
        return None if self._may_replace(registered) else registered

    def _may_replace(self, registered: BrokerInfo) -> bool:
        """Whether the registered process has certainly ended, or is this one.

        Without a lease it is not from a broker, but from whatever copied the keys of another store.
        """
        return registered.location == self._template.location or registered.lease == NO_LEASE

    async def register(self, epoch: int) -> BrokerInfo:
        """Start a session; an earlier process of this broker is replaced, and notices.

        Raises `FencedError` if another process is registered under this broker id.
        """
        sent_ms = self._monotonic()
        lease = await self._store.grant(self._ttl_ms)
        broker = replace(self._template, epoch=epoch, lease=lease, is_draining=False)
        key = keys.broker(broker.id)
        while True:
            existing = await self._store.get(key)
            if existing is not None:
                registered = decode_broker(existing)
                if registered.epoch >= epoch:
                    raise FencedError(f"broker {broker.id} is registered with a later epoch")
                if not self._may_replace(registered):
                    raise _taken(registered)
            result = await self._store.commit(
                [Compare(key=key, mod_revision=existing.mod_revision if existing else 0)],
                [Put(key, encode_broker(broker, self._clock()), lease)],
            )
            if result.succeeded:
                break
        if existing is not None:
            logger.warning("registration replaced", broker_id=broker.id, epoch=epoch)
        self._extend_validity(sent_ms)
        self.broker = replace(broker, mod_revision=result.revision)
        return self.broker

    async def keep_alive_until_lost(self) -> None:
        """Renew the lease and publish heartbeats periodically; returns when the lease is lost."""
        assert self.broker is not None
        lease = self.broker.lease
        published_ms = self._monotonic()
        while True:
            await asyncio.sleep(self._ttl_ms / RENEWALS_PER_TTL / 1000)
            try:
                is_alive = await self._renew_lease(lease)
                if is_alive and self._monotonic() - published_ms >= HEARTBEAT_SECONDS * 1000:
                    await self._publish_heartbeat()
                    published_ms = self._monotonic()
            except FencedError as error:
                logger.warning(
                    "broker session ended", broker_id=self._template.id, reason=str(error)
                )
                return
            if not is_alive:
                logger.warning("lease lost", broker_id=self._template.id, epoch=self.broker.epoch)
                return

    async def _renew_lease(self, lease: int) -> bool:
        """Renew the lease, with retries until the store responds; return whether it is alive."""
        is_logged = False
        while True:
            sent_ms = self._monotonic()
            try:
                async with asyncio.timeout(self._ttl_ms / RENEWALS_PER_TTL / 1000):
                    is_alive = await self._store.keep_alive(lease)
                    await self.restore_guard.check()
            except (OperatingError, TimeoutError) as error:
                if not is_logged:
                    logger.warning("lease not renewed yet", reason=str(error) or "timed out")
                    is_logged = True
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if is_alive:
                self._extend_validity(sent_ms)
            return is_alive

    async def announce_drain(self) -> None:
        """Publish that this broker is about to leave."""
        await self._save(is_draining=True)

    async def _publish_heartbeat(self) -> None:
        """Write the time of the last heartbeat; a failure is left to the next one."""
        try:
            async with asyncio.timeout(self._ttl_ms / RENEWALS_PER_TTL / 1000):
                await self._save()
        except (OperatingError, TimeoutError) as error:
            logger.warning("heartbeat not published", reason=str(error) or "timed out")

    async def _save(self, **changes: bool) -> None:
        """Write the registration of this session; `FencedError` if it is gone."""
        async with self._saving:
            before = self.broker
            if before is None:
                raise FencedError("this broker is no longer registered")
            key = keys.broker(before.id)
            broker, revision = replace(before, **changes), before.mod_revision
            while True:
                result = await self._store.commit(
                    [Compare(key=key, mod_revision=revision)],
                    [Put(key, encode_broker(broker, self._clock()), broker.lease)],
                )
                if result.succeeded:
                    if self.broker is before:  # Otherwise the session has ended meanwhile.
                        self.broker = replace(broker, mod_revision=result.revision)
                    return
                # An earlier write may have taken effect although its response was lost.
                entry = await self._store.get(key)
                if entry is None or decode_broker(entry).epoch != broker.epoch:
                    raise FencedError("this broker is no longer registered")
                revision = entry.mod_revision

    async def check_not_superseded(self) -> None:
        """Raise `FencedError` if another process has registered under this broker id.

        Also raises if the metadata store was restored: this process has seen revisions that no
        longer exist.
        """
        await self.restore_guard.check()
        entry = await self._store.get(keys.broker(self._template.id))
        our_epoch = self.broker.epoch if self.broker else -1
        if entry is not None and decode_broker(entry).epoch > our_epoch:
            raise FencedError(
                f"another process is registered as broker {self._template.id}; this one stops:"
                " give each broker a unique id"
            )

    async def deregister(self) -> None:
        """End the session and revoke the lease, so that other brokers can take over at once."""
        broker, self.broker = self.broker, None
        self._valid_until_ms = 0
        if broker is not None:
            try:
                async with asyncio.timeout(self._ttl_ms / RENEWALS_PER_TTL / 1000):
                    await self._store.revoke(broker.lease)
            except (OperatingError, TimeoutError) as error:
                # The lease expires after its TTL.
                logger.warning("lease not revoked", reason=str(error) or "timed out")

    def _extend_validity(self, sent_ms: int) -> None:
        self._valid_until_ms = sent_ms + int(self._ttl_ms * (1 - SAFETY_MARGIN))


def _taken(other: BrokerInfo) -> FencedError:
    return FencedError(
        f"broker id {other.id} is in use: another broker with this id runs at"
        f" {other.host}:{other.port}; give each broker an id of its own with KAFSCALE_BROKER_ID,"
        " or stop the other one"
    )
