"""Finds the batches of aborted transactions, so that they are neither decompressed nor decoded.

A batch belongs to an aborted transaction if it is transactional and its producer has one that
begins at the last offset of the batch or before, and has its marker after that. Consumers compare
the last offset, too: compaction may let a batch begin earlier than its first record, in place of
batches that it has removed. Pure.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from kafscale.storage.log.state.transactions import TransactionSpans

_DATA_MASK: Final = CONTROL_BIT | TRANSACTIONAL_BIT

_Offsets = NDArray[np.int64]


class AbortedBatches:
    """The aborted transactions that touch some offsets of a partition."""

    __slots__ = ("_by_producer",)

    def __init__(self, spans: TransactionSpans | None = None) -> None:
        self._by_producer: dict[int, tuple[_Offsets, _Offsets]] = {}
        if spans is None or not len(spans):
            return
        producers = np.array(spans.producer_ids, np.int64)
        firsts = np.array(spans.first_offsets, np.int64)
        lasts = np.array(spans.last_offsets, np.int64)
        order = np.argsort(producers, kind="stable")  # Within a producer by last offset.
        ids, starts = np.unique(producers[order], return_index=True)
        for producer_id, numbers in zip(ids.tolist(), np.split(order, starts[1:]), strict=True):
            self._by_producer[producer_id] = firsts[numbers], lasts[numbers]

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def contains(self, batch: BatchView) -> bool:
        """Whether the records of a batch were aborted."""
        if batch.attributes & _DATA_MASK != TRANSACTIONAL_BIT:
            return False
        found = self._by_producer.get(batch.producer_id)
        return found is not None and bool(_are_within(*found, np.array([batch.last_offset]))[0])

    def mask(
        self, attributes: NDArray[np.int16], producer_ids: _Offsets, last_offsets: _Offsets
    ) -> NDArray[np.bool_]:
        """Return the same for many batches, given by fields of their headers."""
        is_aborted = np.zeros(attributes.size, np.bool_)
        if not self._by_producer:
            return is_aborted
        candidates = np.flatnonzero(attributes & _DATA_MASK == TRANSACTIONAL_BIT)
        for producer_id in np.unique(producer_ids[candidates]).tolist():
            if (found := self._by_producer.get(producer_id)) is not None:
                own = candidates[producer_ids[candidates] == producer_id]
                is_aborted[own] = _are_within(*found, last_offsets[own])
        return is_aborted


NONE_ABORTED: Final = AbortedBatches()


def _are_within(firsts: _Offsets, lasts: _Offsets, offsets: _Offsets) -> NDArray[np.bool_]:
    """Return which offsets are within an interval; intervals are disjoint and ascend."""
    numbers = np.searchsorted(lasts, offsets)
    is_before_end = numbers < lasts.size
    numbers[~is_before_end] = 0
    within: NDArray[np.bool_] = is_before_end & (firsts[numbers] <= offsets)
    return within
