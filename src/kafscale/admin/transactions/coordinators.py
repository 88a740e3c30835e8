"""What the coordinators of a cluster know of producers, with nothing left out.

A transaction that no coordinator knows hangs, and its records may be discarded. So an answer counts
only if every transactional id had a coordinator that was asked: Kafka's coordinators share the ids
by the partitions of `__transaction_state`, Kafscale's by as many shards, and a partition has no
coordinator for a while after its broker was killed. One key of each partition finds the
coordinators, and shows that they have loaded it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection
from typing import Final

from kafscale.admin.transactions.transactions import (
    OPEN_STATES,
    TransactionDetail,
    TransactionFilter,
    ask_brokers,
    describe_listed,
    list_by,
)
from kafscale.client.client import Client
from kafscale.client.coordinator import CoordinatorKind
from kafscale.client.errors import BrokerResponseError, Pause, check, retry
from kafscale.metadata.schema.model import SHARD_COUNT
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.text.units import MINUTE_MS

TRANSACTION_TOPIC: Final = "__transaction_state"
"""Kafka has it; its number of partitions is a setting."""

TIMEOUT_CONFIG: Final = "transaction.max.timeout.ms"
TIMEOUT_MS_MAX_DEFAULT: Final = 15 * MINUTE_MS
"""Kafka's default of that config."""

_BROKER_RESOURCE: Final = 4
_FIRST_KEY: Final = ord("0")


async def transactions_of(
    client: Client, producer_ids: Collection[int], *, pause: Pause = asyncio.sleep
) -> dict[int, TransactionDetail]:
    """The transactions of these producers; waits while a coordinator is missing, loads or moves."""

    async def once() -> dict[int, TransactionDetail]:
        return await _transactions_of(client, producer_ids)

    return await retry(once, pause=pause)


def will_end(transaction: TransactionDetail | None, topic: str, partition: int) -> bool:
    """Whether the coordinator will end the transaction in this partition."""
    return (
        transaction is not None
        and transaction.state in OPEN_STATES
        and any(each.topic == topic and partition in each.partitions for each in transaction.topics)
    )


async def timeout_ms_max(client: Client) -> int:
    """The longest timeout of transactions that the cluster permits."""
    return await ask_brokers(client, lambda brokers: _timeout_ms_max(client, brokers[0]))


async def _transactions_of(
    client: Client, producer_ids: Collection[int]
) -> dict[int, TransactionDetail]:
    keys = keys_of_all(await _partition_count(client))
    await client.metadata([])
    brokers = client.broker_ids
    before = await _coordinators(client, keys)
    listed = await list_by(client, brokers, TransactionFilter(producer_ids=sorted(producer_ids)))
    described = await describe_listed(client, listed)
    after = await _coordinators(client, keys)
    # An id that moves from one broker to another during the search may be listed by none of them.
    if before != after or not set(after.values()) <= set(brokers):
        raise BrokerResponseError(
            "a coordinator of transactions has moved", ErrorCode.NOT_COORDINATOR
        )
    return {each.producer_id: each for each in described}


async def _partition_count(client: Client) -> int:
    (topic,) = (await client.metadata([TRANSACTION_TOPIC])).topics
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return SHARD_COUNT
    check(f"topic {TRANSACTION_TOPIC}", topic.error_code)
    return len(topic.partitions)


def keys_of_all(partition_count: int) -> list[str]:
    r"""A transactional id of each partition; such an id need not exist.

    The hash of one character in Java is its code, and the remainder of that is the partition.

    >>> "".join(keys_of_all(50))
    '23456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc'
    """
    first = -(-_FIRST_KEY // partition_count) * partition_count
    return [chr(first + index) for index in range(partition_count)]


async def _coordinators(client: Client, keys: Collection[str]) -> dict[str, int]:
    """The id of the broker that coordinates each of these keys, and has loaded it."""
    connection = await client.any_broker()
    # Brokers that know DescribeTransactions know the versions that have keys, too.
    request = FindCoordinatorRequest(key_type=CoordinatorKind.TRANSACTION, keys=list(keys))
    response = await connection.ask(FIND_COORDINATOR, request)
    by_broker: dict[int, list[str]] = defaultdict(list)
    for found in response.coordinators:
        check(f"transactional id {found.key}", found.error_code, found.error_message)
        by_broker[found.node_id].append(found.key)
    for node_id, own in by_broker.items():
        await _check_serves(client, node_id, own)
    return {key: node_id for node_id, own in by_broker.items() for key in own}


async def _check_serves(client: Client, node_id: int, keys: Collection[str]) -> None:
    """Raise an error unless a broker is the coordinator of these keys by its own account."""
    connection = await client.broker(node_id)
    request = DescribeTransactionsRequest(transactional_ids=list(keys))
    response = await connection.ask(DESCRIBE_TRANSACTIONS, request)
    for each in response.transactions:
        if each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            check(f"transactional id {each.transactional_id}", each.error_code)


async def _timeout_ms_max(client: Client, node_id: int) -> int:
    connection = await client.broker(node_id)
    resource = ResourceToDescribe(_BROKER_RESOURCE, str(node_id), [TIMEOUT_CONFIG])
    response = await connection.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource]))
    (described,) = response.resources
    check(
        f"broker {node_id}",
        described.error_code,
        described.error_message,
        hint="give the time with --max-transaction-timeout instead",
    )
    values = {each.name: each.value for each in described.configs}
    return int(values.get(TIMEOUT_CONFIG) or TIMEOUT_MS_MAX_DEFAULT)
