"""Transactions, hanging ones, and the producers of topics."""

from kafscale.admin.transactions import hanging, producers, transactions
from kafscale.console.schema.base import RequestModel, ResponseModel

TopicPartitions = transactions.TopicPartitions
HangingTransaction = hanging.HangingTransaction
PartitionProducer = producers.PartitionProducer


class Transaction(ResponseModel):
    """A transactional id, and its open or last transaction."""

    transactional_id: str
    state: str
    coordinator: int
    """The id of the broker that coordinates it."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    """None if no transaction is open."""
    topics: list[TopicPartitions]
    """The partitions of the open transaction."""


class TransactionQuery(RequestModel):
    search: str = ""
    state: str = ""
    page: int = 1
    size: int = 50


class TransactionPage(ResponseModel):
    total: int
    page: int
    size: int
    items: list[Transaction]


class AbortTransaction(RequestModel):
    confirm: str
    """The transactional id."""


class AbortHanging(RequestModel):
    topic: str
    partition: int
    start_offset: int
