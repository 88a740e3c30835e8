"""Transactions: list and abort them, find hanging ones; the producers of a topic.

Everything here is requested from brokers when it is shown: the monitor does not poll transactions.
Only the transactions of one page are described.
"""

from typing import Final

import msgspec

from kafscale.admin.transactions import hanging, producers, transactions
from kafscale.admin.transactions.transactions import TransactionFilter
from kafscale.aio.clock import clock
from kafscale.console.api.route import ApiContext, ApiRequest, Route, page_items
from kafscale.console.schema.transactions import (
    AbortHanging,
    AbortTransaction,
    HangingTransaction,
    PartitionProducer,
    Transaction,
    TransactionPage,
    TransactionQuery,
)
from kafscale.errors import InvalidRequestError


async def list_transactions(context: ApiContext, request: ApiRequest) -> TransactionPage:
    query: TransactionQuery = request.query
    search = query.search.lower()
    chosen = TransactionFilter(states=[query.state] if query.state else ())
    async with context.connections.client() as client:
        matching = [
            each
            for each in await transactions.list_all(client, chosen)
            if search in each.transactional_id.lower()
        ]
        shown = page_items(matching, query.page, query.size)
        described = await transactions.describe_listed(client, shown)
    return TransactionPage(
        total=len(matching),
        page=query.page,
        size=query.size,
        items=msgspec.convert(msgspec.to_builtins(described), list[Transaction]),
    )


async def abort(context: ApiContext, request: ApiRequest) -> None:
    name, body = request.path["id"], request.body
    if body.confirm != name:
        raise InvalidRequestError(
            f"to abort the transaction of {name}, repeat its transactional id exactly to confirm"
        )
    async with context.connections.client() as client:
        await transactions.abort(client, name)


async def find_hanging(context: ApiContext, _: ApiRequest) -> list[HangingTransaction]:
    async with context.connections.client() as client:
        return await hanging.find(client, now_ms=clock())


async def abort_hanging(context: ApiContext, request: ApiRequest) -> None:
    body: AbortHanging = request.body
    async with context.connections.client() as client:
        await producers.abort_at(client, body.topic, body.partition, body.start_offset)


async def list_producers(context: ApiContext, request: ApiRequest) -> list[PartitionProducer]:
    async with context.connections.client() as client:
        return await producers.describe(client, request.path["name"])


ROUTES: Final = (
    Route(
        "GET", "/transactions", list_transactions, query=TransactionQuery, response=TransactionPage
    ),
    Route("POST", "/transactions/{id:path}/abort", abort, body=AbortTransaction),
    Route("GET", "/hanging-transactions", find_hanging, response=list[HangingTransaction]),
    Route("POST", "/hanging-transactions/abort", abort_hanging, body=AbortHanging),
    Route("GET", "/topics/{name}/producers", list_producers, response=list[PartitionProducer]),
)
