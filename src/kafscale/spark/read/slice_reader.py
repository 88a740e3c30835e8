"""The batches of a slice, wherever they are by now.

The laws: every batch that holds an offset of the slice comes once, in order, whole, and with a
checksum that holds; the first may begin before the slice, and the last may end after it. What is
found is compared with the offset that is due. Where an object has gone, has changed or does not
hold what the plan said, because the log was rolled, merged or compacted meanwhile, the store is
looked at again, and reading goes on from the same offset.

What cannot be found then is lost: deleted by retention, or with its topic. That is an error, unless
the reader was told to go on without. A batch that stays damaged is an error always.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from kafscale.errors import (
    CorruptBatchError,
    DamagedObjectError,
    ObjectNotFoundError,
    OffsetOutOfRangeError,
    RecordsError,
)
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView
from kafscale.records.batch import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, LENGTH_POSITION
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.offset_map import Extent
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.prefetcher import Block, Prefetcher
from kafscale.storage.objects.blocking import BlockingObjectStore

log = get_logger(__name__)

LOOKS_MAX: Final = 5
"""How often in a row the store is looked at again for one offset."""

LOOK_PAUSE_SECONDS: Final = 0.2

_LENGTH: Final = Struct(">i")


class BatchGroup(NamedTuple):
    """Batches that follow each other in one buffer, and the object that they are from."""

    key: str
    batches: list[BatchView]


class SliceReader:
    """Reads slices from a store."""

    def __init__(
        self,
        store: BlockingObjectStore,
        namespace: str,
        *,
        fail_on_data_loss: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._fail_on_data_loss = fail_on_data_loss
        self._sleep = sleep
        self._fetcher = Prefetcher(store, namespace)

    def read(self, part: Slice) -> Iterator[BatchGroup]:
        extents: Sequence[Extent] = part.extents
        next_offset = part.start_offset
        looks = 0
        while next_offset < part.end_offset:
            problem: ObjectNotFoundError | DamagedObjectError | None = None
            try:
                for found in self._follow(extents, next_offset, part.end_offset):
                    yield found
                    next_offset = found.batches[-1].next_offset
                    looks = 0
            except (ObjectNotFoundError, DamagedObjectError) as error:
                problem = error
            if next_offset >= part.end_offset:
                return
            if looks == LOOKS_MAX and problem is not None:
                raise problem
            if looks:
                self._sleep(LOOK_PAUSE_SECONDS)
            is_missing = looks == LOOKS_MAX
            resumed, extents = self._look_again(part, next_offset, is_missing=is_missing)
            looks = looks + 1 if resumed == next_offset else 0
            next_offset = resumed

    def _look_again(
        self, part: Slice, next_offset: int, *, is_missing: bool
    ) -> tuple[int, Sequence[Extent]]:
        """From which offset to go on, and where that is now.

        An offset `is_missing` if the object that should hold it is there, again and again, and has
        it not.
        """
        place = (part.topic, part.partition)
        now = list_bucket(self._store, self._namespace, [part.topic]).partitions.get(place)
        extents = now.extents_between(next_offset, part.end_offset) if now else []
        if extents and extents[0].start_offset == next_offset:
            if not is_missing:
                return next_offset, extents
            extents = extents[1:]
        resumed = extents[0].start_offset if extents else part.end_offset
        self._lose(part, next_offset, resumed)
        return resumed, extents

    def _lose(self, part: Slice, from_offset: int, to_offset: int) -> None:
        text = (
            f"offsets {from_offset} to {to_offset - 1} of {part.topic}/{part.partition} are gone:"
            " retention has passed them, or the topic was deleted"
        )
        if self._fail_on_data_loss:
            raise OffsetOutOfRangeError(f"{text}; set failOnDataLoss to false to go on without")
        log.warning(
            "offsets skipped",
            topic=part.topic,
            partition=part.partition,
            from_offset=from_offset,
            to_offset=to_offset,
        )

    # --- following a plan ---------------------------------------------------------------------

    def _follow(
        self, extents: Sequence[Extent], next_offset: int, end_offset: int
    ) -> Iterator[BatchGroup]:
        """The batches as the plan says; less, where it does not hold."""
        rest = b""
        for block in self._fetcher.blocks(extents):
            key = block.extent.key
            try:
                first, position, rest = _complete(rest, block)
                several, end = _split(block.data, position)
                rest = rest or bytes(block.data[end:])
                if rest and block.is_last:
                    raise DamagedObjectError(key, f"{len(rest)} bytes are left after its batches")
                for batches in (first, several):
                    due = _due(batches, next_offset, end_offset)
                    if due:
                        for batch in due:
                            batch.verify_checksum()
                        yield BatchGroup(key, due)
                        next_offset = due[-1].next_offset
                        if next_offset >= end_offset:
                            return
            except RecordsError as error:
                raise DamagedObjectError(key, str(error)) from error
            if block.is_last and next_offset < block.extent.end_offset:
                return  # The object ends earlier than the plan says.


def _due(batches: Sequence[BatchView], next_offset: int, end_offset: int) -> list[BatchView]:
    """The batches from the one on that holds an offset, as far as each follows the one before."""
    due: list[BatchView] = []
    for batch in batches:
        header = batch.header()
        after = header.base_offset + header.last_offset_delta + 1
        if after <= next_offset:
            if due:
                break
            continue
        is_next = (
            header.base_offset <= next_offset if not due else header.base_offset == next_offset
        )
        if not is_next or header.base_offset >= end_offset:
            break
        due.append(batch)
        next_offset = after
    return due


def _split(data: memoryview, position: int) -> tuple[list[BatchView], int]:
    """The whole batches from a position on, and where what is left begins."""
    batches = []
    while len(data) - position >= LENGTH_OVERHEAD_BYTES:
        (length,) = _LENGTH.unpack_from(data, position + LENGTH_POSITION)
        end = position + LENGTH_OVERHEAD_BYTES + length
        if length < HEADER_BYTES - LENGTH_OVERHEAD_BYTES:
            raise CorruptBatchError(f"a batch says it has {length} bytes")
        if end > len(data):
            break
        batches.append(BatchView(data[position:end]))
        position = end
    return batches, position


def _complete(rest: bytes, block: Block) -> tuple[list[BatchView], int, bytes]:
    """The batch that began in the block before, where the next begins, and what is still short."""
    if not rest:
        return [], 0, b""
    data = block.data
    missing = max(LENGTH_OVERHEAD_BYTES - len(rest), 0)
    head = rest + bytes(data[:missing])
    if len(head) < LENGTH_OVERHEAD_BYTES:
        return [], len(data), head
    (length,) = _LENGTH.unpack_from(head, LENGTH_POSITION)
    taken = LENGTH_OVERHEAD_BYTES + length - len(rest)
    whole = rest + bytes(data[:taken])
    if taken > len(data):
        return [], len(data), whole
    return [BatchView(whole)], taken, b""
