"""FindCoordinator of transactional ids, the advertised versions, and expired transactions."""

import pytest

from conformance.transactions.client import error_codes
from conformance.transactions.observation import describe, producers, read, wait_for
from conformance.transactions.requests import (
    CLASSIC,
    NONE,
    SECOND,
    add_offsets,
    add_partitions,
    commit_offsets,
    end,
    init,
    produce,
    start,
    write,
    write_second,
)
from conformance.transactions.servers import START_S_MAX, TRANSACTION
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from services.wire import Wire

pytestmark = pytest.mark.timeout(START_S_MAX)

TRANSACTIONAL_APIS = {22, 24, 25, 26, 27, 28, 61, 65, 66}
"""Kafka advertises other APIs in fewer versions, as it has dropped the old ones."""
FEATURE = "transaction.version"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("id_", ["id", "", "ä b", "x" * 3000])
def test_find_coordinator_of_one_id(client, version, id_):
    client.call(FIND_COORDINATOR, version, FindCoordinatorRequest(id_, TRANSACTION))


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("ids", [["a"], ["a", "b", ""], [""], [], ["a", "a"]], ids=str)
def test_find_coordinators_of_several_ids(client, version, ids):
    request = FindCoordinatorRequest(key_type=TRANSACTION, keys=ids)
    client.call(FIND_COORDINATOR, version, request)


def test_advertised_versions_of_transactional_apis(client):
    found = []
    for server in client.servers:
        with Wire(server.port) as wire:
            response = wire.call(API_VERSIONS, 3, ApiVersionsRequest("test", "1"))
        found.append([each for each in response.apis if each.key in TRANSACTIONAL_APIS])
    kafkas, ours = found
    assert ours == kafkas


@pytest.mark.parametrize("version", [3, 4])
def test_feature_of_transactions(client, version):
    found = []
    for server in client.servers:
        with Wire(server.port) as wire:
            response = wire.call(API_VERSIONS, version, ApiVersionsRequest("test", "1"))
        # Kafka's feature can be changed to lower levels, ours is fixed.
        found.append([each for each in response.finalized_features if each.name == FEATURE])
    kafkas, ours = found
    assert ours == kafkas


# --- expired transactions -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [CLASSIC, SECOND])
def test_expired_transaction_is_aborted(client, version):
    """With a raised epoch: its producer learns of it by an error."""
    producer = start(client, timeout_ms=500)
    if version == CLASSIC:
        write(client, producer)
    else:
        write_second(client, producer)
    wait_for(client, "CompleteAbort")
    read(client)
    producers(client)
    for api_version in (11, 12):
        produce(client, producer, api_version, sequence=1)
        produce(client, producer, api_version, partition=1)
    for api_version in (2, 3):
        add_partitions(client, producer, api_version)
    for api_version in (3, 4, 5):
        end(client, producer, api_version)
        end(client, producer, api_version, committed=False)
    add_offsets(client, producer)
    commit_offsets(client, producer)
    commit_offsets(client, producer, 5)
    read(client)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_producer_continues_after_an_expired_transaction(client, version):
    """It may get its next epoch with the id and the epoch that it had (KIP-588)."""
    producer = start(client, timeout_ms=500)
    write(client, producer)
    wait_for(client, "CompleteAbort")
    response = init(client, version, producer=producer)
    describe(client)
    assert list(error_codes(response)) == [NONE]
    init(client, version, producer=producer)
    following = start(client)
    write(client, following)
    assert end(client, following).error_code == NONE
    wait_for(client, "CompleteCommit")
    read(client)


def test_transaction_without_records_expires(client):
    producer = start(client, timeout_ms=500)
    assert add_offsets(client, producer) == NONE
    commit_offsets(client, producer)
    wait_for(client, "CompleteAbort")
    end(client, producer)
    start(client)
    describe(client)
