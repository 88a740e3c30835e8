"""What readers may see of the transactions of simulated brokers.

Invariant: what one reader has seen of a transaction holds for all of its partitions and offsets,
from then on.
"""

import asyncio

from kafscale.errors import KafscaleError, NotOwnerError, OffsetOutOfRangeError, OperatingError
from kafscale.metadata.schema.model import shard_of
from kafscale.records import iterate, split
from kafscale.storage.log.partition_log import PartitionLog
from simulation.model import InvariantViolationError
from simulation.node_cluster import NodeCluster
from simulation.node_process import NodeProcess
from simulation.outcomes import Outcome, committed_batches


class NodeTransaction:
    """A transaction in all of its partitions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.offset: int | None = None
        """What it commits for its group, if that is acknowledged."""
        self._outcome: Outcome | None = Outcome.ABORTED

    def request_commit(self) -> None:
        """From now on it may be committed."""
        self._outcome = None

    def observe(self, outcome: Outcome) -> None:
        """Record that a client has seen this outcome."""
        self._outcome = self._outcome or outcome
        if self._outcome is not outcome:
            raise InvariantViolationError(f"{self.name} is seen {outcome}, but {self._outcome}")


class NodeTransactions:
    """All transactions of a run, and the checks of what readers get."""

    def __init__(self, cluster: NodeCluster) -> None:
        self.groups: list[str] = []
        """The groups whose offsets are committed in transactions."""
        self._cluster = cluster
        self._by_value: dict[bytes, NodeTransaction] = {}

    def add(self, value: bytes, transaction: NodeTransaction) -> None:
        self._by_value[value] = transaction

    def check_stable(self, log: PartitionLog) -> None:
        """The last stable offset of an owner never moves back."""
        self._cluster.model(log.topic_id, log.partition).transactions.check_stable(log)

    async def read(self, node: NodeProcess, log: PartitionLog, offset: int) -> int:
        """Read committed records once; returns where the next read begins."""
        end_offset = log.last_stable_offset
        reader = node.engine.reader
        try:
            slices, following = await reader.read(
                log, offset, 1000, first=True, end_offset=end_offset
            )
            aborted = await reader.aborted_transactions(log, offset, following)
        except (OffsetOutOfRangeError, OperatingError, NotOwnerError):
            return offset
        if log.closed:
            return offset
        kept = committed_batches(split(b"".join(slices)), aborted)
        for batch, is_kept in kept.items():
            for record in iterate(batch):
                transaction = self._by_value.get(record.value or b"")
                if transaction is not None:
                    transaction.observe(Outcome.COMMITTED if is_kept else Outcome.ABORTED)
                elif not is_kept:
                    raise InvariantViolationError(f"{log!r}: {record} is left out")
        return following

    async def read_new(self, node: NodeProcess, log: PartitionLog) -> None:
        """Read some of the newest committed records."""
        end_offset = log.last_stable_offset
        if end_offset > log.start_offset:
            count = self._cluster.random.choice((1, 3, 10, 100))
            await self.read(node, log, max(log.start_offset, end_offset - count))

    async def read_all(self, node: NodeProcess, log: PartitionLog) -> None:
        """Read everything, of which nothing may be in an open transaction."""
        assert log.last_stable_offset == log.high_watermark, log
        offset = log.start_offset
        while offset < log.last_stable_offset:
            following = await self.read(node, log, offset)
            assert not log.closed, "the owner closed the log while it was read"
            if following == offset:
                await asyncio.sleep(0.1)
            offset = following

    async def open(self) -> list[str]:
        """What is, or may be, still open, in partitions and in groups."""
        served = await self._cluster.served()
        if served is None:
            return ["some partitions are not served"]
        found = []
        for topic, number, _, log in served:
            if log.last_stable_offset != log.high_watermark:
                found.append(f"{topic.name}/{number}: {log.transactions.describe()}")
        for group in self.groups:
            for node in self._cluster.live_nodes():
                try:
                    opened = node.groups.open_transactions(shard_of(group))
                except KafscaleError:
                    continue
                found += [f"{group}: {each}" for each in opened]
                break
            else:
                found.append(f"{group} is not served")
        return found
