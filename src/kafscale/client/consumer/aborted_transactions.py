"""Which fetched batches are of aborted transactions.

A broker serves a `read_committed` consumer everything below the last stable offset, aborted
transactions too, and names those; the consumer leaves their records out.
"""

from collections import deque
from collections.abc import Iterable

from kafscale.protocol.messages.fetch import AbortedTransaction
from kafscale.records import BatchView
from kafscale.records.control import ControlType, read_end_marker


class AbortedTransactions:
    """The aborted transactions of one partition in a Fetch response."""

    def __init__(self, transactions: Iterable[AbortedTransaction] | None) -> None:
        self._waiting = deque(sorted(transactions or (), key=lambda each: each.first_offset))
        self._producer_ids: set[int] = set()
        """The producers whose transaction at the last batch is an aborted one."""

    def contains(self, batch: BatchView) -> bool:
        """Whether the batch is of an aborted transaction; batches are passed in offset order."""
        last_offset = batch.last_offset
        while self._waiting and self._waiting[0].first_offset <= last_offset:
            self._producer_ids.add(self._waiting.popleft().producer_id)
        if not self._producer_ids or batch.producer_id not in self._producer_ids:
            return False
        marker = read_end_marker(batch)
        if marker is not None and marker.control_type is ControlType.ABORT:
            self._producer_ids.remove(batch.producer_id)
        return batch.is_transactional
