"""Helpers for tests of broker sessions: crashes, interference, and a fake metadata store."""

from collections.abc import Collection
from typing import Any

from kafscale.errors import FencedError, StoreUnavailableError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.recovery.segment_recovery import PartitionToOpen
from kafscale.storage.wal.dead_stream_cleaner import FindSession, RolledEnds, Session
from unit.storage.engines import BROKER_ID, NAMESPACE, append, open_engine, to_open

OTHER_ID = BROKER_ID + 1
THIRD_ID = BROKER_ID + 2


def key_of(epoch: int, sequence: int, broker_id: int = BROKER_ID) -> str:
    return object_keys.wal_key(NAMESPACE, broker_id, epoch, sequence)


async def is_fence(store, key: str) -> bool:
    return wal_object.decode(key, await store.get(key)).header.is_fence


async def crash_session(store, epochs, *values: bytes, broker_id: int = BROKER_ID) -> None:
    """Append each value in an object of its own, then crash."""
    engine = await open_engine(store, epochs, broker_id)
    for value in values:
        await append(engine, value)
    engine.close()


def sessions(*, live: int) -> FindSession:
    """All sessions have ended, except those of one broker."""
    return lambda broker_id, _: Session.LIVE if broker_id == live else Session.ENDED


class InterferingStore:
    """A store that runs a function just before a given request."""

    def __init__(self, inner, verb: str, key: str, interfere) -> None:
        self._inner = inner
        self._verb = verb
        self._key = key
        self._interfere = interfere

    def __getattr__(self, name: str):
        request = getattr(self._inner, name)
        if name != self._verb:
            return request

        async def interfering(key: str, *rest, **options):
            if key == self._key and self._interfere is not None:
                interfere, self._interfere = self._interfere, None
                await interfere()
            return await request(key, *rest, **options)

        return interfering


class FakeMetadataStore:
    """Stores the partition states and owners of a topic, unless it is down."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.leader_epochs: dict[int, int] = {}
        self.is_down = False

    async def save(self, log: PartitionLog) -> None:
        if self.is_down:
            raise StoreUnavailableError("down")
        if log.leader_epoch < self.leader_epochs.get(log.partition, 0):
            raise FencedError("another broker owns it")
        self.starts[log.partition] = log.start_offset
        self.ends[log.partition] = log.tail.rolled_offset

    def to_open(self, partition: int = 0, **changes: Any) -> PartitionToOpen:
        """Give a partition to a new owner."""
        self.leader_epochs[partition] = self.leader_epochs.get(partition, -1) + 1
        return to_open(
            partition,
            leader_epoch=self.leader_epochs[partition],
            start_offset=self.starts.get(partition, 0),
            end_offset=self.ends.get(partition, 0),
            **changes,
        )

    async def rolled_ends(self, topic_ids: Collection[bytes]) -> RolledEnds:
        return dict.fromkeys(topic_ids, self.ends)
