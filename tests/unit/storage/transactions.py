"""Helpers for tests of transactions: producers, what they have written, and a consumer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from doubles.virtual_time import clock_ms
from kafscale.records import BatchView, iterate, split
from kafscale.records.control import ControlType, read_end_marker
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.transactions import AbortedTransaction
from unit.storage.engines import TOPIC, values_batch

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


@dataclass
class Written:
    """What producers have written to a partition, and which of it is committed."""

    committed: dict[int, bytes] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    undecided: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """By producer id."""

    @property
    def last_stable_offset(self) -> int | None:
        """The first offset that is undecided; None if there is none."""
        return min((min(values) for values in self.undecided.values() if values), default=None)


@dataclass
class Producer:
    """A transactional producer of one partition."""

    producer_id: int
    written: Written
    epoch: int = 0
    sequence: int = 0
    coordinator_epoch: int = 0

    async def send(self, engine: StorageEngine, *values: bytes) -> None:
        log = engine.logs.get(TOPIC, 0)
        batch = values_batch(
            values,
            transactional=True,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        guard = None
        if log.needs_verification(batch.header()):
            guard = log.start_verification(
                self.producer_id, self.epoch, self.sequence, adds_partition=False
            )
        appended = log.append(batch, clock_ms(), guard=guard)
        self.sequence += len(values)
        undecided = self.written.undecided.setdefault(self.producer_id, {})
        undecided |= dict(enumerate(values, appended.base_offset))
        await appended.durable

    async def end(
        self, engine: StorageEngine, control_type: ControlType, *, bumps: bool = False
    ) -> None:
        """Write the marker; with `bumps`, it has the next epoch, as KIP-890 has it."""
        if bumps:
            self.epoch, self.sequence = self.epoch + 1, 0
        log = engine.logs.get(TOPIC, 0)
        appended = log.append_end_marker(
            self.producer_id, self.epoch, control_type, self.coordinator_epoch, clock_ms()
        )
        await appended.durable
        values = self.written.undecided.pop(self.producer_id, {})
        if control_type is COMMIT:
            self.written.committed |= values
        else:
            self.written.aborted |= values.keys()


def committed_records(
    batches: Iterable[BatchView], aborted: Sequence[AbortedTransaction], from_offset: int
) -> dict[int, bytes]:
    """What a consumer of committed records keeps of a response, as Kafka's does."""
    pending = sorted(aborted, key=lambda each: each.first_offset)
    left_out: set[int] = set()
    kept = {}
    for batch in batches:
        while pending and pending[0].first_offset <= batch.last_offset:
            left_out.add(pending.pop(0).producer_id)
        marker = read_end_marker(batch)
        if marker is not None:
            if marker.control_type is ABORT:
                left_out.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in left_out):
            kept |= {each.offset: each.value for each in iterate(batch)}
    return {offset: value for offset, value in kept.items() if offset >= from_offset}


async def read_committed(
    engine: StorageEngine, log: PartitionLog, offset: int, bytes_max: int
) -> tuple[dict[int, bytes], int]:
    """Read once from an offset; return the committed records, and where the next read begins."""
    end_offset = log.last_stable_offset
    slices, next_offset = await engine.reader.read(
        log, offset, bytes_max, first=True, end_offset=end_offset
    )
    assert next_offset <= max(end_offset, offset)
    aborted = await engine.reader.aborted_transactions(log, offset, next_offset)
    markers = [each.last_offset for each in aborted]
    assert markers == sorted(set(markers))
    return committed_records(split(b"".join(slices)), aborted, offset), next_offset


async def all_committed(
    engine: StorageEngine, log: PartitionLog, offset: int, bytes_max: int = 1 << 30
) -> dict[int, bytes]:
    """All committed records from an offset to the last stable one."""
    found: dict[int, bytes] = {}
    end_offset = log.last_stable_offset
    while offset < end_offset:
        read, offset = await read_committed(engine, log, offset, bytes_max)
        found |= read
    return found
