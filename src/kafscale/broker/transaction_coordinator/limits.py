"""What the metadata store can hold of a transactional id."""

from collections.abc import Collection
from typing import Final

import msgspec

from kafscale.broker.shards.writer import fit_together
from kafscale.errors import InvalidRequestError, TransactionAbortableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.transaction_codec import encode_transaction
from kafscale.metadata.store.base import Put
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import TransactionRecord

ID_BYTES_MAX: Final = 1024
"""The id is part of the keys of the metadata store and of log lines."""

CHECKED_PARTITIONS_MIN: Final = 4_000
"""The record of a transaction with fewer partitions fits into a commit of the store in any case."""

OUTCOME_BYTES_MAX: Final = 200
"""How much longer than now the record may be once the outcome is decided: the name of the state,
another producer id, higher epochs and times."""


def check_id(transactional_id: str) -> None:
    """Raise if no transaction can have this id."""
    if not transactional_id:
        raise InvalidRequestError("the transactional id is empty")
    if (size_bytes := len(transactional_id.encode())) > ID_BYTES_MAX:
        raise InvalidRequestError(
            f"a transactional id of {size_bytes} bytes exceeds the limit of {ID_BYTES_MAX}"
        )


def check_size(record: TransactionRecord, partitions: Collection[TopicPartition]) -> None:
    """Raise if the store does not accept the record with these partitions, in every later state.

    Its transaction would be lost in a crash, and stay open in its partitions.
    """
    if len(record.partitions) + len(partitions) < CHECKED_PARTITIONS_MIN:
        return
    extended = msgspec.structs.replace(record, partitions=record.partitions.union(partitions))
    longest = encode_transaction(extended) + bytes(OUTCOME_BYTES_MAX)
    if not fit_together([Put(keys.transactional_id(record.transactional_id), longest)]):
        raise TransactionAbortableError(
            f"the transaction would have {len(extended.partitions)} partitions, whose names are too"
            " long for a record of the metadata store"
        )
