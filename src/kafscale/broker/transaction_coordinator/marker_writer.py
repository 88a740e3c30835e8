"""`MarkerWriter`: writes markers to the partitions and shards that this broker owns.

Invariants: success means that the marker is durable: in the WAL, or for committed offsets in the
metadata store. Every partition succeeds or fails on its own. A marker that is sent again while it
is not durable yet is not appended again: an outage would fill logs with markers. One that arrives
late, after it was sent again, does not end the producer's next transaction, if its epoch differs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.errors import InvalidProducerEpochError, KafscaleError, NotOwnerError, OverloadedError
from kafscale.metadata.schema.model import SHARDS_TOPIC
from kafscale.observability.logging import get_logger
from kafscale.records.control import ControlType
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import EPOCH_MAX

logger = get_logger(__name__)

WRITE_SECONDS_MAX: Final = 10.0
"""How long a marker may take to become durable; the coordinator sends it again after that."""

PARTITIONS_AT_ONCE: Final = 500
"""How many markers are appended before the event loop runs other tasks: some 40 ms."""

Result = KafscaleError | None
"""Why a partition has no marker; None if it has."""

_Appended = tuple[PartitionLog, int, int, int, bool]
"""A log, and the marker in it."""


class MarkerWriter:
    """Writes markers here."""

    def __init__(
        self,
        logs: LogDirectory,
        groups: Coordinator,
        *,
        clock: Callable[[], int],
        lease_is_valid: Callable[[], bool],
    ) -> None:
        self._logs = logs
        self._groups = groups
        self._clock = clock
        self._lease_is_valid = lease_is_valid
        self._undurable: dict[_Appended, asyncio.Future[None]] = {}
        """The markers that were appended and are not durable yet."""

    async def write(self, marker: Marker) -> Sequence[Result]:
        """Write a marker; returns the result of each partition, in order."""
        results: list[Result] = [None] * len(marker.partitions)
        writes: list[tuple[int, asyncio.Future[None]]] = []
        for number, topic_partition in enumerate(marker.partitions):
            if number % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                await asyncio.sleep(0)
            try:
                write = self._start(marker, topic_partition)
            except KafscaleError as error:
                results[number] = error
                continue
            if write is not None:
                writes.append((number, asyncio.ensure_future(write)))
        if writes:
            # Markers in one object of the WAL share a future.
            await asyncio.wait({future for _, future in writes}, timeout=WRITE_SECONDS_MAX)
        for number, future in writes:
            if future.done():
                results[number] = _result(future)
            else:
                # The write continues; the same marker may be written once more.
                future.add_done_callback(_result)
                results[number] = OverloadedError("the marker is not durable yet")
        return results

    def _start(self, marker: Marker, topic_partition: TopicPartition) -> Awaitable[None] | None:
        """Start to write; None if the marker is durable already."""
        if marker.producer_id < 0:
            raise KafscaleError("a marker is of a producer, whose id is not negative")
        topic, number = topic_partition
        if topic == SHARDS_TOPIC:
            transactions = self._groups.registry.open_transactions
            _check_open(marker, transactions.epoch_of(number, marker.producer_id))
            return self._groups.write_markers(
                number,
                marker.producer_id,
                marker.producer_epoch,
                is_commit=marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
            )
        log = self._logs.get(topic, number)
        if log is None or not self._lease_is_valid():
            raise NotOwnerError(f"{topic}/{number} is not served by this broker")
        opened = log.transactions.open.get(marker.producer_id)
        _check_open(marker, None if opened is None else opened.epoch)
        return self._append(marker, log)

    def _append(self, marker: Marker, log: PartitionLog) -> asyncio.Future[None] | None:
        appended = (log, *marker[:4])
        if (durable := self._undurable.get(appended)) is not None:
            return durable
        durable = log.append_end_marker(
            marker.producer_id,
            marker.producer_epoch,
            ControlType.COMMIT if marker.is_commit else ControlType.ABORT,
            marker.coordinator_epoch,
            self._clock(),
        ).durable
        if durable is not None:
            self._undurable[appended] = durable
            durable.add_done_callback(lambda _: self._undurable.pop(appended, None))
        return durable


def _check_open(marker: Marker, open_epoch: int | None) -> None:
    """Raise if the open transaction is a later one: the request was delayed, and repeated.

    The last epoch has no later one: a transaction that has it, although no client gets it, must not
    stay open.
    """
    is_bumped = marker.bumps_epoch and marker.producer_epoch < EPOCH_MAX
    if is_bumped and open_epoch is not None and open_epoch >= marker.producer_epoch:
        raise InvalidProducerEpochError(
            f"producer {marker.producer_id} has begun its next transaction"
        )


def _result(future: "asyncio.Future[None]") -> Result:
    if future.cancelled():
        return OverloadedError("the write was cancelled")
    error = future.exception()
    if error is None or isinstance(error, KafscaleError):
        return error
    logger.error("marker not written", exc_info=error)
    return KafscaleError(str(error))
