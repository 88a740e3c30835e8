"""Helpers for storage tests: engines with a memory store and virtual time."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

from doubles import virtual_time
from doubles.local_worker import LocalWorker
from kafscale.records import BatchView, Record, TimestampType, build, split
from kafscale.records.checksum import Buffer
from kafscale.storage.engine import EngineSettings, StorageEngine
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.log.state.segment_list import SegmentList
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.read.read_ahead import ReadAheadLimits
from kafscale.storage.recovery.segment_recovery import PartitionToOpen
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.wal.buffer import SealPolicy
from unit.storage.samples import batch

NAMESPACE = "test"
BROKER_ID = 7
TOPIC = "orders"
TOPIC_ID = bytes(15) + b"\x01"

Result = TypeVar("Result")


def simulate(
    scenario: Callable[[], Coroutine[Any, Any, Result]], time_max_s: float = 3600
) -> Result:
    return virtual_time.run(lambda _: scenario(), seed=0, time_max_s=time_max_s)


def log_settings(**changes: Any) -> LogSettings:
    values = {
        "segment_bytes": 1_000_000,
        "segment_ms": 10**9,
        "retention_ms": -1,
        "retention_bytes": -1,
        "message_bytes_max": 1_000_000,
        "timestamp_type": TimestampType.CREATE_TIME,
        "compression": None,
    }
    return LogSettings(**(values | changes))


def engine_settings(**changes: Any) -> EngineSettings:
    values = {
        "seal_policy": SealPolicy(
            flush_bytes=1_000_000,
            flush_messages=10_000,
            flush_interval_ms=500,
            uploads_max=8,
            idle_uploads_max=8,
        ),
        "puts_per_second": None,
        "puts_burst": 1,
        "buffer_bytes_max": 10_000_000,
        "limits": RollLimits(
            tail_bytes_max=10_000_000, wal_bytes_max=10_000_000, segment_age_ms_max=10**9
        ),
        "blocks_bytes_max": 100_000_000,
        "indexes_bytes_max": 10_000_000,
        "read_ahead": ReadAheadLimits(0, 0),
        "index_interval_bytes": 4096,
        "retention_check_interval_ms": 300_000,
        "producer_expiration_ms": 10**9,
    }
    return EngineSettings(**(values | changes))


def to_open(partition: int = 0, **changes: Any) -> PartitionToOpen:
    """A partition whose last owner has crashed."""
    values = {
        "topic": TOPIC,
        "topic_id": TOPIC_ID,
        "directory": TOPIC,
        "partition": partition,
        "settings": log_settings(),
        "leader_epoch": 0,
        "fully_rolled": False,
    }
    return PartitionToOpen(**(values | changes))


def topic(partition_count: int = 1, **changes: Any) -> list[PartitionToOpen]:
    """All partitions of a topic."""
    return [to_open(number, **changes) for number in range(partition_count)]


class Epochs:
    """The broker epoch counter of a metadata store."""

    def __init__(self) -> None:
        self.last = -1

    async def take(self, at_least: int) -> int:
        self.last = max(self.last + 1, at_least)
        return self.last


async def save_nothing(log: PartitionLog) -> None:
    """A metadata store that ignores calls."""


def new_engine(
    store: ObjectStore,
    broker_id: int = BROKER_ID,
    *,
    save_state: Callable[[PartitionLog], Awaitable[None]] = save_nothing,
    is_lease_valid: Callable[[], bool] = lambda: True,
    **changes: Any,
) -> StorageEngine:
    """An engine without a session."""
    return StorageEngine(
        store,
        NAMESPACE,
        broker_id,
        engine_settings(**changes),
        save_state=save_state,
        clock=virtual_time.clock_ms,
        random=Random(0),
        is_lease_valid=is_lease_valid,
        open_worker=LocalWorker,
    )


async def start_engine(
    store: ObjectStore, epochs: Epochs | None = None, broker_id: int = BROKER_ID, **changes: Any
) -> StorageEngine:
    """An engine with a session, which serves no logs."""
    engine = new_engine(store, broker_id, **changes)
    await engine.start_session(await (epochs or Epochs()).take(await engine.newest_epoch() + 1))
    return engine


async def open_engine(
    store: ObjectStore,
    epochs: Epochs | None = None,
    broker_id: int = BROKER_ID,
    *,
    partitions: Sequence[PartitionToOpen] | None = None,
    **changes: Any,
) -> StorageEngine:
    """An engine that serves one topic."""
    engine = await start_engine(store, epochs, broker_id, **changes)
    await engine.open(partitions or topic())
    return engine


def memory_store() -> MemoryObjectStore:
    return MemoryObjectStore(virtual_time.clock_ms, yields=True)


def values_batch(values: Sequence[bytes], **fields: Any) -> BatchView:
    """A batch of these values, as a producer sends it."""
    now_ms = fields.pop("timestamp_ms", 1_750_000_000_000)
    records = [Record(index, now_ms, None, value) for index, value in enumerate(values)]
    return BatchView(build(records, **fields))


async def append(engine: StorageEngine, *values: bytes, partition: int = 0, **fields: Any) -> int:
    """Append one batch, wait until it is durable, and return its base offset."""
    log = engine.logs.get(TOPIC, partition)
    appended = log.append(values_batch(values, **fields), virtual_time.clock_ms())
    if appended.durable is not None:
        await appended.durable
    return appended.base_offset


async def roll(engine: StorageEngine, partition: int = 0) -> None:
    await engine.roll_scheduler.roll(engine.logs.get(TOPIC, partition), RollReason.EXPLICIT)


async def read_offsets(
    engine: StorageEngine, offset: int | None = None, partition: int = 0
) -> list[int]:
    """The base offsets of all batches from an offset, by default the log start."""
    log = engine.logs.get(TOPIC, partition)
    offset = log.start_offset if offset is None else offset
    result, _ = await engine.reader.read(log, offset, 1 << 30, first=True)
    return [found_batch.base_offset for found_batch in split(b"".join(result))]


async def keys(store: ObjectStore, suffix: str = "") -> list[str]:
    listed = [item.key async for chunk in store.list(f"{NAMESPACE}/") for item in chunk]
    return [key for key in listed if key.endswith(suffix)]


def new_log(memory: TailMemory | None = None, **changes: Any) -> PartitionLog:
    """A log without an engine; needs a running event loop."""
    return PartitionLog(
        TOPIC,
        TOPIC_ID,
        0,
        settings=log_settings(**changes),
        segments=SegmentList(),
        memory=memory or TailMemory(),
        leader_epoch=0,
    )


def run_of(base_offset: int, *counts: int) -> BatchRun:
    batches = []
    for count in counts:
        batches.append(batch(base_offset, count))
        base_offset += count
    return BatchRun.from_batches(batches)


class CountingStore(MemoryObjectStore):
    """Counts requests by operation."""

    __slots__ = ("requests",)

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self.requests: Counter[str] = Counter()

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        async for chunk in super().list(prefix):
            self.requests["list"] += 1
            yield chunk

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self.requests["put"] += 1
        await super().put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        self.requests["get"] += 1
        return await super().get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        self.requests["get_range"] += 1
        return await super().get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        self.requests["get_suffix"] += 1
        return await super().get_suffix(key, length)
