"""Blocks of segments, and which of their batches are verified.

A batch is verified when its CRC-32C is right and its base offset, which the CRC does not cover, is
where the batch before it ended. Each block remembers one stretch of verified batches, all of them
within the block, so that its batches are verified once while it is cached. A batch that spans
blocks is verified whenever it is read, because one of its blocks may have been loaded again.

Everything here is CPU-bound and runs in threads. A stretch is replaced as a whole, so readers in
several threads never see a mixture of two.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView, batch, split
from kafscale.records.checksum import crc32c

BLOCK_BYTES: Final = 4 * 1024 * 1024
"""Large enough to amortise a request, small enough for a cold read to start soon."""

_PREFIX: Final = Struct(">qiibIhi")
"""The fields of a batch header from the base offset to the last offset delta."""
_LENGTH_MIN: Final = batch.HEADER_BYTES - batch.LENGTH_OVERHEAD_BYTES


class BatchPlace(NamedTuple):
    """A position between two batches of a segment, and the offset of the batch after it."""

    position: int
    offset: int


class Block:
    """An aligned block of an object; the last one may be shorter."""

    __slots__ = ("data", "start", "verified")

    def __init__(self, start: int, data: memoryview) -> None:
        self.start = start
        """The position of the block in the object."""
        self.data = data
        self.verified: tuple[BatchPlace, BatchPlace] | None = None
        """From where to where the batches are verified."""

    def __len__(self) -> int:
        return len(self.data)

    def verified_end(self, position: int) -> BatchPlace | None:
        """The end of the verified stretch that contains a position; None if none does."""
        stretch = self.verified
        if stretch is None or not stretch[0].position <= position < stretch[1].position:
            return None
        return stretch[1]

    def verify(self, place: BatchPlace) -> BatchPlace:
        """Verify the batches from a place on; return the end of those that are whole and right."""
        stretch = self.verified
        position, offset = place
        start = self.start
        data = self.data
        while stretch is None or (position, offset) != stretch[0]:
            at = position - start
            if at + batch.HEADER_BYTES > len(data):
                break
            base_offset, length, _, magic, checksum, _, delta = _PREFIX.unpack_from(data, at)
            end = at + batch.LENGTH_OVERHEAD_BYTES + length
            if (
                magic != batch.MAGIC
                or length < _LENGTH_MIN
                or end > len(data)
                or base_offset != offset
                or delta < 0
                or crc32c(data[at + batch.ATTRIBUTES_POSITION : end]) != checksum
            ):
                break
            position = start + end
            offset = base_offset + delta + 1
        else:
            position, offset = stretch[1]
        reached = BatchPlace(position, offset)
        if position > place.position:
            self.verified = (place, reached)
        return reached


def pieces(blocks: Sequence[Block], start: int, stop: int) -> list[memoryview]:
    """The bytes between two positions, as one slice per block; shorter if a block is."""
    return [
        block.data[max(start - block.start, 0) : stop - block.start]
        for block in blocks
        if block.start < stop and start < block.start + len(block)
    ]


def first_offset(slices: Sequence[memoryview]) -> int:
    """The base offset of the batch that slices begin with; they may end anywhere."""
    return int.from_bytes(b"".join(part[:8] for part in slices[:2])[:8], "big")


def is_verified(blocks: Sequence[Block], position: int, stop: int) -> bool:
    """Whether all batches between two places are known to be right."""
    while position < stop:
        end = _block_at(blocks, position).verified_end(position)
        if end is None:
            return False
        position = end.position
    return True


def verify(blocks: Sequence[Block], place: BatchPlace, stop: int) -> BatchPlace:
    """Verify the batches from a place to a position.

    Returns the position, or the place of the first batch that is damaged or not whole.
    """
    while place.position < stop:
        block = _block_at(blocks, place.position)
        reached = block.verified_end(place.position) or block.verify(place)
        if reached.position == place.position:
            following = _verify_spanning(blocks, place)
            if following is None:
                return place
            reached = following
        place = reached
    return place


def _block_at(blocks: Sequence[Block], position: int) -> Block:
    return blocks[position // BLOCK_BYTES - blocks[0].start // BLOCK_BYTES]


def _verify_spanning(blocks: Sequence[Block], place: BatchPlace) -> BatchPlace | None:
    """Verify a batch that spans blocks; return where the next one begins, or None."""
    position, offset = place
    prefix = b"".join(pieces(blocks, position, position + _PREFIX.size))
    if len(prefix) < _PREFIX.size:
        return None
    base_offset, length, _, magic, checksum, _, delta = _PREFIX.unpack(prefix)
    end = position + batch.LENGTH_OVERHEAD_BYTES + length
    if magic != batch.MAGIC or length < _LENGTH_MIN or base_offset != offset or delta < 0:
        return None
    computed = size_bytes = 0
    for piece in pieces(blocks, position + batch.ATTRIBUTES_POSITION, end):
        computed = crc32c(piece, computed)
        size_bytes += len(piece)
    is_whole = size_bytes == end - position - batch.ATTRIBUTES_POSITION
    return BatchPlace(end, offset + delta + 1) if is_whole and computed == checksum else None


def verified_batches(
    key: str, blocks: Sequence[Block], place: BatchPlace, stop: int
) -> list[BatchView]:
    """The whole and undamaged batches from a place to a position; runs in a thread."""
    end = verify(blocks, place, stop).position
    if end == place.position:
        raise damaged_batch(key, place)
    parts = pieces(blocks, place.position, end)
    return split(parts[0] if len(parts) == 1 else b"".join(parts))


def damaged_batch(key: str, place: BatchPlace) -> DamagedObjectError:
    return DamagedObjectError(
        key, f"the batch of offset {place.offset}, at position {place.position}, is damaged"
    )
