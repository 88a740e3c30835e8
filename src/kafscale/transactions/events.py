"""Events: requests of producers and of partition leaders, written markers, and the passage of time.

A `reply_token` identifies the request; it comes back in the `Reply`. A `fresh_producer_id` is one
that was never used. It has to be set if `Transaction.needs_producer_id`; otherwise it is not taken.
"""

import msgspec

from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import NO_EPOCH, NO_PRODUCER_ID, TransactionVersion


class InitProducer(msgspec.Struct, frozen=True, kw_only=True):
    """InitProducerId: take over the transactional id, and fence its producers until now."""

    reply_token: int
    timeout_ms: int
    """Valid: the caller has compared it with the longest allowed one."""
    producer_id: int = NO_PRODUCER_ID
    """With its epoch, of a producer that continues after an error (KIP-360)."""
    epoch: int = NO_EPOCH
    fresh_producer_id: int = NO_PRODUCER_ID


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """AddPartitionsToTxn, and its other forms: the transaction writes to these partitions."""

    reply_token: int
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    version: TransactionVersion


class VerifyPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """AddPartitionsToTxn, verify only: a leader asks whether the transaction has its partitions."""

    reply_token: int
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """EndTxn: commit or abort."""

    reply_token: int
    producer_id: int
    epoch: int
    is_commit: bool
    version: TransactionVersion
    fresh_producer_id: int = NO_PRODUCER_ID


class MarkersWritten(msgspec.Struct, frozen=True, kw_only=True):
    """These partitions have the marker, or were deleted; the producer is as in `WriteMarkers`."""

    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]


class Tick(msgspec.Struct, frozen=True):
    """Time has passed: abort the transaction if its deadline is due."""


Request = InitProducer | AddPartitions | VerifyPartitions | EndTransaction
Event = Request | MarkersWritten | Tick
