"""APIs that are declared but not served: the error, and no place in ApiVersions."""

import pytest

from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.requests.unserved import UNSERVED
from kafscale.protocol.apis import APIS
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.describe_transactions import DESCRIBE_TRANSACTIONS
from kafscale.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from services.for_each import for_each
from unit.broker.in_memory_broker import run_with_broker
from unit.broker.requests.test_routes import codes, sample

NAMES_NOTHING = [(ADD_PARTITIONS_TO_TXN, 3), (TXN_OFFSET_COMMIT, 0), (DESCRIBE_TRANSACTIONS, 0)]


def test_every_declared_api_is_served_or_refused():
    assert {api.key for api in APIS} == {
        API_VERSIONS.key,
        *(each.api.key for each in (*ROUTES, *UNSERVED)),
    }


@for_each(UNSERVED, lambda each: each.api.name)
def test_request_gets_unsupported_version(each):
    async def body(broker):
        for version in each.api.versions:
            response = await broker.ask(each.api, sample(each.api.request), version)
            assert ErrorCode.UNSUPPORTED_VERSION in codes(response), f"version {version}"

    run_with_broker(body)


@pytest.mark.parametrize(("api", "version"), NAMES_NOTHING, ids=lambda each: str(each)[:30])
def test_request_without_a_place_for_the_error_closes_the_connection(api, version):
    async def body(broker):
        await broker.ask(api, api.request(), version, is_closed=True)

    run_with_broker(body)


def test_api_versions_does_not_list_them():
    async def body(broker):
        response = await broker.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 4)
        assert {api.key for api in response.apis}.isdisjoint(each.api.key for each in UNSERVED)

    run_with_broker(body)
