"""List and describe transactions as their coordinators know them, and abort them.

A transaction is aborted like Kafka's `fenceProducers` does it: as a new producer of its
transactional id. Its present producer is fenced, and may not go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from kafscale.client.client import Client
from kafscale.client.coordinator import COORDINATOR_MOVED_ERRORS, Coordinator, CoordinatorKind
from kafscale.client.errors import BrokerResponseError, check, retry
from kafscale.client.transactions.coordinator import TransactionCoordinator
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribedTransaction,
    DescribeTransactionsRequest,
)
from kafscale.protocol.messages.list_transactions import (
    LIST_TRANSACTIONS,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

Result = TypeVar("Result")

HINT: Final = "list the transactional ids with: kafscale transaction list"
OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""The states of transactions that have begun and not ended."""

_DURATION_VERSION: Final = 1
_PATTERN_VERSION: Final = 2
_NO_DURATION: Final = -1


class TransactionInfo(msgspec.Struct, frozen=True, rename="camel"):
    transactional_id: str
    coordinator: int
    """The id of the broker that coordinates it."""
    producer_id: int
    state: str


class TopicPartitions(msgspec.Struct, frozen=True):
    topic: str
    partitions: list[int]


class TransactionDetail(TransactionInfo, frozen=True, kw_only=True, rename="camel"):
    """A transactional id, and its open or last transaction."""

    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    """None if no transaction is open."""
    topics: list[TopicPartitions]
    """The partitions of the open transaction."""


class TransactionFilter(msgspec.Struct, frozen=True):
    """Which transactions to list; by default all."""

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    open_longer_than_ms: int | None = None
    pattern: str | None = None
    """A regular expression that transactional ids match, in the syntax of RE2."""


EVERYTHING: Final = TransactionFilter()


async def list_all(client: Client, chosen: TransactionFilter = EVERYTHING) -> list[TransactionInfo]:
    """The transactions of all coordinators, by transactional id."""
    return await ask_brokers(client, lambda brokers: list_by(client, brokers, chosen))


async def ask_brokers(client: Client, task: Callable[[Sequence[int]], Awaitable[Result]]) -> Result:
    """Run a task with the ids of all brokers; retry it with those that there are then."""
    await client.metadata([])

    async def refresh(seconds: float) -> None:
        await asyncio.sleep(seconds)
        await client.metadata([])

    return await retry(lambda: task(client.broker_ids), pause=refresh)


async def list_by(
    client: Client, broker_ids: Iterable[int], chosen: TransactionFilter
) -> list[TransactionInfo]:
    """The transactions that these brokers coordinate, by transactional id."""
    listed: dict[str, TransactionInfo] = {}
    for node_id in broker_ids:
        response = await _listed_by(client, node_id, chosen)
        for each in response.transactions:
            listed[each.transactional_id] = TransactionInfo(
                each.transactional_id, node_id, each.producer_id, each.transaction_state
            )
    return [listed[transactional_id] for transactional_id in sorted(listed)]


async def describe(client: Client, transactional_ids: Iterable[str]) -> list[TransactionDetail]:
    """Describe transactions by their ids; raises an error if one does not exist."""
    return [await _describe(client, each) for each in dict.fromkeys(transactional_ids)]


async def describe_listed(
    client: Client, listed: Sequence[TransactionInfo]
) -> list[TransactionDetail]:
    """Describe listed transactions, with one request per broker.

    Ids that have expired since are left out; those that have moved are found again.
    """
    details = []
    moved = []
    for node_id in sorted({each.coordinator for each in listed}):
        ids = [each.transactional_id for each in listed if each.coordinator == node_id]
        connection = await client.broker(node_id)
        request = DescribeTransactionsRequest(transactional_ids=ids)
        response = await connection.ask(DESCRIBE_TRANSACTIONS, request)
        for each in response.transactions:
            if each.error_code in COORDINATOR_MOVED_ERRORS:
                moved.append(each.transactional_id)
            elif each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(f"transactional id {each.transactional_id}", each.error_code)
                details.append(_detail(node_id, each))
    for transactional_id in moved:
        try:
            details.append(await _describe(client, transactional_id))
        except BrokerResponseError as error:
            if error.error_code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
    return sorted(details, key=lambda each: each.transactional_id)


async def abort(client: Client, transactional_id: str) -> TransactionDetail:
    """Fence the producer of a transactional id, and abort its transaction if one is open.

    Returns the transaction as it was. Raises an error if the transactional id does not exist.
    """
    before = await _describe(client, transactional_id)
    async with TransactionCoordinator(client, transactional_id) as coordinator:
        await coordinator.init(before.timeout_ms)
    return before


async def _listed_by(
    client: Client, node_id: int, chosen: TransactionFilter
) -> ListTransactionsResponse:
    connection = await client.broker(node_id)
    for is_used, version, option in (
        (chosen.open_longer_than_ms is not None, _DURATION_VERSION, "by their duration"),
        (chosen.pattern is not None, _PATTERN_VERSION, "by a pattern"),
    ):
        if is_used and not connection.serves(LIST_TRANSACTIONS, version):
            raise KafscaleError(f"broker {node_id} cannot choose transactions {option}")
    duration_ms = chosen.open_longer_than_ms
    # The coordinator remembers the start of the last transaction, too.
    states = chosen.states or (() if duration_ms is None else OPEN_STATES)
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(chosen.producer_ids),
        duration_filter_ms=_NO_DURATION if duration_ms is None else duration_ms,
        transactional_id_pattern=chosen.pattern,
    )
    response = await connection.ask(LIST_TRANSACTIONS, request)
    check(f"broker {node_id}", response.error_code)
    if response.unknown_state_filters:
        raise InvalidRequestError(
            f"{', '.join(sorted(response.unknown_state_filters))} is not a state of transactions"
        )
    return response


async def _describe(client: Client, transactional_id: str) -> TransactionDetail:
    async with Coordinator(client, transactional_id, CoordinatorKind.TRANSACTION) as coordinator:
        response = await coordinator.ask(
            DESCRIBE_TRANSACTIONS,
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            lambda each: each.transactions[0].error_code,
        )
        (described,) = response.transactions
        try:
            check(coordinator.subject, described.error_code)
        except BrokerResponseError as error:
            if error.error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise error.with_hint(HINT) from None
            raise
        return _detail(coordinator.node_id, described)


def _detail(node_id: int, described: DescribedTransaction) -> TransactionDetail:
    # The coordinator remembers the start of the last transaction, too.
    is_open = described.transaction_state in OPEN_STATES
    return TransactionDetail(
        transactional_id=described.transactional_id,
        coordinator=node_id,
        producer_id=described.producer_id,
        state=described.transaction_state,
        producer_epoch=described.producer_epoch,
        timeout_ms=described.transaction_timeout_ms,
        started_ms=described.transaction_start_time_ms if is_open else None,
        topics=[
            TopicPartitions(each.name, sorted(each.partitions))
            for each in sorted(described.topics, key=lambda each: each.name)
        ],
    )
