"""Transactions whose producer has handed them over: the driver of a job ends those of its tasks."""

from typing import NamedTuple

from kafscale.client.client import Client
from kafscale.client.transactions.coordinator import ProducerIdentity, TransactionCoordinator


class OpenTransaction(NamedTuple):
    """An open transaction with all of its records, as another process needs it to end it."""

    transactional_id: str
    producer: ProducerIdentity
    version_2: bool


async def end(client: Client, transaction: OpenTransaction, *, committed: bool) -> None:
    """Commit or abort the transaction.

    It may be repeated until the next transaction of the transactional id begins, and fails with
    `ProducerFencedError` after another producer has taken over the id.
    """
    async with TransactionCoordinator(client, transaction.transactional_id) as coordinator:
        await coordinator.end(
            transaction.producer, committed=committed, version_2=transaction.version_2
        )
