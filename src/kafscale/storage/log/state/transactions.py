"""What the index of a segment says about transactions, and how it is encoded and searched.

Section `TXNS` of an index, version 1 (see `index_section`), big-endian:

    int32 count of the transactions that are open at the segment's end; each, ascending by first
    offset: producer id (int64), producer epoch (int16), first offset (int64), time of the first
    batch in milliseconds (int64)

    int32 count of the aborted transactions whose marker is in this segment; each, ascending by last
    offset: producer id (int64), first offset (int64), last offset, which is the marker's (int64)

    int32 count of the producers that a marker in the log has named; each, ascending by producer id:
    producer id (int64), epoch of the newest marker (int16), its coordinator epoch (int32), and its
    time in milliseconds (int64)

The section is written only if one of the lists is not empty. An index with the section `PROD` and
without this one has no transactions. An index without `PROD` says nothing about them: it was lost
and rebuilt, or upstream KafScale has written it, and the segment's batches have to be read.

Invariant: a search for aborted transactions takes time in proportion to those that it finds, plus
one step for each `_BLOCK` transactions in the segment.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from operator import attrgetter, ge
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, Self

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer
from kafscale.storage.formats.index_section import (
    TRANSACTIONS_SECTION,
    decode_section,
    encode_section,
)

_VERSION: Final = 1
_COUNT: Final = Struct(">i")
_OPEN: Final = Struct(">qhqq")
_MARKED: Final = Struct(">qhiq")
_ABORTED_BYTES: Final = 24
_BLOCK: Final = 256
"""How many transactions are skipped in one step of a search."""

assert _OPEN.size == 26
assert _MARKED.size == 22
assert array("q").itemsize == 8


class OpenTransaction(NamedTuple):
    """A transaction without a marker so far."""

    producer_id: int
    epoch: int
    """The producer's epoch at the first batch."""
    first_offset: int
    started_ms: int
    """When the first batch was appended."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records readers of committed ones leave out."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""


class MarkedProducer(NamedTuple):
    """The newest marker of a producer."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    time_ms: int


class TransactionSpans:
    """Where ended transactions begin and end, in columns; ascending by last offset."""

    __slots__ = ("_first_offset_min", "first_offsets", "last_offsets", "producer_ids")

    def __init__(self) -> None:
        self.producer_ids = array("q")
        self.first_offsets = array("q")
        self.last_offsets = array("q")
        self._first_offset_min = array("q")
        """The smallest first offset of each block."""

    def __len__(self) -> int:
        return len(self.last_offsets)

    def __getitem__(self, number: int) -> AbortedTransaction:
        return AbortedTransaction(
            self.producer_ids[number], self.first_offsets[number], self.last_offsets[number]
        )

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (self[number] for number in range(len(self)))

    @classmethod
    def of(cls, transactions: Iterable[AbortedTransaction]) -> Self:
        spans = cls()
        for transaction in transactions:
            spans.append(*transaction)
        return spans

    def append(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        """Add a transaction that ended after all others."""
        assert not self.last_offsets or last_offset > self.last_offsets[-1]
        if len(self) % _BLOCK == 0:
            self._first_offset_min.append(first_offset)
        elif first_offset < self._first_offset_min[-1]:
            self._first_offset_min[-1] = first_offset
        self.producer_ids.append(producer_id)
        self.first_offsets.append(first_offset)
        self.last_offsets.append(last_offset)

    def overlapping(self, from_offset: int, to_offset: int) -> Iterator[int]:
        """The numbers of those that begin before `to_offset` and end at `from_offset` or later."""
        number = bisect_left(self.last_offsets, from_offset)
        first_offsets = self.first_offsets
        while number < len(first_offsets):
            end = (number // _BLOCK + 1) * _BLOCK
            if self._first_offset_min[number // _BLOCK] < to_offset:
                for inside in range(number, min(end, len(first_offsets))):
                    if first_offsets[inside] < to_offset:
                        yield inside
            number = end

    def ending(self, from_offset: int, to_offset: int) -> range:
        """The numbers of those whose markers are in a range."""
        first = bisect_left(self.last_offsets, from_offset)
        return range(first, bisect_left(self.last_offsets, to_offset, lo=first))

    def drop_below(self, offset: int) -> int:
        """Drop the transactions that end below an offset; return their number."""
        count = bisect_left(self.last_offsets, offset)
        if count:
            del self.producer_ids[:count], self.first_offsets[:count], self.last_offsets[:count]
            self._set_minima()
        return count

    def copy(self) -> "TransactionSpans":
        copied = TransactionSpans()
        copied.producer_ids = self.producer_ids[:]
        copied.first_offsets = self.first_offsets[:]
        copied.last_offsets = self.last_offsets[:]
        copied._first_offset_min = self._first_offset_min[:]
        return copied

    def _set_minima(self) -> None:
        self._first_offset_min = array(
            "q",
            [
                min(self.first_offsets[start : start + _BLOCK])
                for start in range(0, len(self), _BLOCK)
            ],
        )

    @property
    def size_bytes(self) -> int:
        """The size of the columns in memory, and about that of the encoded list."""
        return _ABORTED_BYTES * len(self)

    def encode(self) -> bytes:
        words = array("q", bytes(_ABORTED_BYTES * len(self)))
        words[0::3] = self.producer_ids
        words[1::3] = self.first_offsets
        words[2::3] = self.last_offsets
        return _to_big_endian(words).tobytes()

    @classmethod
    def decode(cls, key: str, encoded: Buffer) -> Self:
        words = _to_big_endian(array("q", bytes(encoded)))
        spans = cls()
        spans.producer_ids = words[0::3]
        spans.first_offsets = words[1::3]
        spans.last_offsets = words[2::3]
        last_offsets = spans.last_offsets
        if any(map(ge, last_offsets, last_offsets[1:])):
            raise DamagedObjectError(key, "the aborted transactions do not ascend")
        spans._set_minima()
        return spans


class AbortedByMarker:
    """Aborted transactions of several segments, each of them once.

    Segments that overlap, because a merge is not complete, have the same transactions. One of them
    may not know where a transaction began, and name a later offset.
    """

    def __init__(self) -> None:
        self._by_marker: dict[int, AbortedTransaction] = {}

    def add(self, aborted: AbortedTransaction) -> None:
        known = self._by_marker.get(aborted.last_offset)
        if known is None or aborted.first_offset < known.first_offset:
            self._by_marker[aborted.last_offset] = aborted

    def in_order(self) -> list[AbortedTransaction]:
        """Ascending by their markers."""
        return [self._by_marker[last_offset] for last_offset in sorted(self._by_marker)]


class TransactionSection(msgspec.Struct, frozen=True):
    """The content of the section."""

    open: list[OpenTransaction]
    """At the segment's end, ascending by first offset."""
    aborted: TransactionSpans
    """Those whose marker is in the segment."""
    marked: list[MarkedProducer]

    @classmethod
    def empty(cls) -> "TransactionSection":
        return cls([], TransactionSpans(), [])

    @property
    def is_empty(self) -> bool:
        return not (self.open or len(self.aborted) or self.marked)

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open at the segment's end."""
        return self.open[0].first_offset if self.open else None

    @property
    def open_by_producer(self) -> dict[int, OpenTransaction]:
        return {each.producer_id: each for each in self.open}

    def encode(self) -> bytes:
        opened = sorted(self.open, key=attrgetter("first_offset"))
        parts = [
            _COUNT.pack(len(opened)),
            *(_OPEN.pack(*each) for each in opened),
            _COUNT.pack(len(self.aborted)),
            self.aborted.encode(),
            _COUNT.pack(len(self.marked)),
            *(_MARKED.pack(*each) for each in sorted(self.marked)),
        ]
        return encode_section(_VERSION, b"".join(parts))

    @classmethod
    def decode(cls, key: str, section: Buffer) -> "TransactionSection":
        """Decode a section that was read from the object `key`."""
        body = decode_section(key, _VERSION, section)
        try:
            open_, position = _list(body, 0, _OPEN.size)
            aborted, position = _list(body, position, _ABORTED_BYTES)
            marked, position = _list(body, position, _MARKED.size)
        except struct_error as error:
            raise DamagedObjectError(key, "the section of transactions is truncated") from error
        if position != len(body):
            raise DamagedObjectError(
                key, f"{len(body) - position} extra bytes after the section of transactions"
            )
        opened = [OpenTransaction(*each) for each in _OPEN.iter_unpack(open_)]
        if any(one.first_offset >= other.first_offset for one, other in pairwise(opened)):
            raise DamagedObjectError(key, "the open transactions do not ascend")
        return cls(
            opened,
            TransactionSpans.decode(key, aborted),
            [MarkedProducer(*each) for each in _MARKED.iter_unpack(marked)],
        )


def section_of(key: str, sections: Mapping[bytes, Buffer]) -> TransactionSection:
    """What the sections of an index say that has the section `PROD`."""
    section = sections.get(TRANSACTIONS_SECTION)
    return (
        TransactionSection.empty() if section is None else TransactionSection.decode(key, section)
    )


def _list(body: memoryview, position: int, size_bytes: int) -> tuple[memoryview, int]:
    """The entries of a list, each of `size_bytes`, and the position after it."""
    (count,) = _COUNT.unpack_from(body, position)
    start = position + _COUNT.size
    end = start + count * size_bytes
    if not start <= end <= len(body):
        raise struct_error
    return body[start:end], end


def _to_big_endian(words: "array[int]") -> "array[int]":
    """Swap the bytes in place if this machine is little-endian; also the inverse."""
    if sys.byteorder == "little":
        words.byteswap()
    return words
