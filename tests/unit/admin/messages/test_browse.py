"""Validation and limits of queries; pages of real topics are in tests/e2e/console."""

import asyncio
from contextlib import ExitStack

import pytest

from kafscale.admin.messages import browse as browsing
from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.query import BrowseQuery, FilterSpec
from kafscale.client.client import Client
from kafscale.client.errors import UnreachableError
from kafscale.errors import InvalidRequestError, OverloadedError
from kafscale.net.address import Address

NOWHERE = Address("127.0.0.1", 9)


async def browse(query):
    async with Client([NOWHERE]) as client:
        return await browsing.browse(client, "orders", query, SchemaCodecs())


@pytest.mark.parametrize(
    "query",
    [
        BrowseQuery(limit=0),
        BrowseQuery(limit=501),
        BrowseQuery(offset=-1),
        BrowseQuery(time_ms=2**63),
        BrowseQuery(cursor={0: -1}),
        BrowseQuery(cursor={-1: 0}),
        BrowseQuery(filter=FilterSpec(json_equals="x")),
    ],
)
def test_invalid_query_is_rejected(query):
    with pytest.raises(InvalidRequestError):
        asyncio.run(browse(query))


def test_concurrent_queries_are_limited_and_failures_release_their_slot():
    for _ in range(browsing.BROWSES_MAX + 1):
        with pytest.raises(UnreachableError):
            asyncio.run(browse(BrowseQuery()))
    with ExitStack() as stack:
        for _ in range(browsing.BROWSES_MAX):
            stack.enter_context(browsing._slots)
        with pytest.raises(OverloadedError, match="try again"):
            asyncio.run(browse(BrowseQuery()))
