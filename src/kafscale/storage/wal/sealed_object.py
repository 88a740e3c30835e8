"""A WAL object that accepts no more batches: it is encoded, uploaded and acknowledged.

Encoding is a step of its own, because it takes long for many batches; `writer` decides where it
runs.
"""

import asyncio
from typing import Final

from kafscale.observability import tracing
from kafscale.records.batch import ATTRIBUTES_POSITION, CONTROL_BIT, TRANSACTIONAL_BIT
from kafscale.records.checksum import Buffer
from kafscale.storage.formats import wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.wal.buffer import OpenObject

_ATTRIBUTES_POSITION: Final = ATTRIBUTES_POSITION + 1
"""Of the low byte, which has all attributes that are used."""
_TRANSACTION_BITS: Final = TRANSACTIONAL_BIT | CONTROL_BIT


class SealedObject:
    """An object that is being uploaded."""

    __slots__ = (
        "acknowledged_count",
        "causes",
        "content",
        "future",
        "header",
        "is_durable",
        "key",
        "parts",
        "runs",
        "size_bytes",
    )

    def __init__(
        self,
        key: str,
        header: wal_object.Header,
        content: OpenObject[PartitionLog],
        future: "asyncio.Future[None]",
    ) -> None:
        self.key = key
        self.header = header
        self.content = content
        """Its batches by partition, without their bytes once it is encoded."""
        self.future = future
        self.is_durable = False
        self.runs: list[tuple[PartitionLog, BatchRun]] = []
        self.acknowledged_count = 0
        """How many of the runs are acknowledged; they are in order."""
        self.parts: list[Buffer] = []
        self.size_bytes = 0
        self.causes: list[tracing.Span] = []
        """Traced requests whose records are in the object."""

    def encode(self) -> None:
        """Set runs and parts. Only this object is changed, so it may run in a thread."""
        transactional: set[PartitionLog] = set()
        for batches in self.content.partitions():
            run = BatchRun.from_buffers(
                batches.buffers, batches.last_offset, batches.max_timestamp_ms
            )
            self.runs.append((batches.key, run))
            if any(buffer[_ATTRIBUTES_POSITION] & _TRANSACTION_BITS for buffer in batches.buffers):
                transactional.add(batches.key)
            batches.buffers.clear()  # The run has a copy.
        partitions = [
            wal_object.PartitionData(
                log.topic_id,
                log.topic,
                log.partition,
                run.view,
                run.base_offset,
                run.last_offset,
                run.max_timestamp_ms,
                log in transactional,
            )
            for log, run in self.runs
        ]
        self.parts = (
            wal_object.encode(self.header, partitions)
            if partitions
            else wal_object.encode_empty(self.header)
        )
        self.size_bytes = sum(map(len, self.parts))
