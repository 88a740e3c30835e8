"""Effects: what a transaction asks its caller to do after an event. It has no other output.

Invariants: the caller executes effects in order. `Save` writes the record as it is after the event,
of several pending saves only the newest. A reply that `is_durable` is sent, and markers are
written, only after every save before them that is not lazy is in the store, in this form or a later
one. So no client learns of a change, and no partition gets a marker, that a crash could undo. The
response of a rejected request is a `KafscaleError`.
"""

from collections.abc import Mapping

import msgspec

from kafscale.errors import KafscaleError
from kafscale.text.topic_partition import TopicPartition

# --- responses ----------------------------------------------------------------------------------


class ProducerInitialized(msgspec.Struct, frozen=True, kw_only=True):
    producer_id: int
    epoch: int


class PartitionsAdded(msgspec.Struct, frozen=True):
    """All partitions of the request are in the transaction."""


class PartitionsVerified(msgspec.Struct, frozen=True):
    """Of each partition of the request, whether it may be written."""

    errors: Mapping[TopicPartition, KafscaleError | None]


class TransactionEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome is decided; the producer continues with this id and epoch (v5 and later)."""

    producer_id: int
    epoch: int


Response = ProducerInitialized | PartitionsAdded | PartitionsVerified | TransactionEnded

# --- effects ------------------------------------------------------------------------------------


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Send the response of the request with this token; the client may be gone."""

    reply_token: int
    response: Response | KafscaleError
    is_durable: bool = False


class Save(msgspec.Struct, frozen=True, gc=False):
    """Write the record; a lazy save may be delayed, as what it saves would happen again."""

    is_lazy: bool = False


class WriteMarkers(msgspec.Struct, frozen=True, kw_only=True):
    """Write a marker to each partition, until `MarkersWritten` has said of each that it has it."""

    producer_id: int
    epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]


Effect = Reply | Save | WriteMarkers
