"""Transactional ids round-trip, and damaged records are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.protobuf import TIME_MS_MAX
from kafscale.metadata.schema.transaction_codec import (
    STORED_STATES,
    decode_transaction,
    encode_transaction,
)
from kafscale.metadata.store.base import Entry
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_TIME,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)

PRODUCER_IDS = st.integers(-1, 2**63 - 1)
EPOCHS = st.integers(-1, EPOCH_MAX)
TIMES = st.integers(0, TIME_MS_MAX)
TRANSACTIONS = st.builds(
    TransactionRecord,
    transactional_id=st.text(max_size=8),
    producer_id=PRODUCER_IDS,
    previous_producer_id=PRODUCER_IDS,
    next_producer_id=PRODUCER_IDS,
    epoch=EPOCHS,
    last_epoch=EPOCHS,
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from(sorted(STORED_STATES)),
    partitions=st.frozensets(st.tuples(st.text(max_size=3), st.integers(0, 2**31 - 1))),
    started_ms=TIMES | st.just(NO_TIME),
    updated_ms=TIMES,
    version=st.sampled_from(TransactionVersion),
)


def entry(value: bytes, transactional_id: str = "billing") -> Entry:
    return Entry(keys.transactional_id(transactional_id), value, 1, 1)


@given(TRANSACTIONS)
def test_transactions_round_trip(transaction):
    value = encode_transaction(transaction)
    assert decode_transaction(entry(value, transaction.transactional_id)) == transaction


def test_states_are_those_that_outlive_an_event():
    transient = {TransactionState.PREPARE_EPOCH_FENCE, TransactionState.DEAD}
    assert set(TransactionState) - transient == STORED_STATES


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"transactional_id": "other"}, "another transactional id: 'other'"),
        ({"state": "Dead"}, "unknown state 'Dead'"),
        ({"state": ""}, "unknown state ''"),
        ({"transaction_version": 3}, "unknown transaction version 3"),
        ({"producer_epoch": 32768}, "not an epoch: 32768"),
        ({"last_producer_epoch": -2}, "not an epoch: -2"),
        ({"updated_at": "yesterday"}, "not a time: 'yesterday'"),
        ({"started_at": "2023-11-14T22:13:20"}, "not a time"),
    ],
)
def test_damaged_records_are_refused(damage, reason):
    fields = {"transactional_id": "billing", "state": "Empty"}
    value = messages.TransactionalId(**fields | damage).SerializeToString()
    with pytest.raises(DamagedObjectError, match=reason):
        decode_transaction(entry(value))


def test_bytes_that_are_no_record_are_refused():
    with pytest.raises(DamagedObjectError, match="not a TransactionalId message"):
        decode_transaction(entry(b"\xff"))
