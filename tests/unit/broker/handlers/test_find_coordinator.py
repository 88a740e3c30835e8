"""FindCoordinator: this broker for groups and transactional ids, and errors for the rest."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from unit.broker.in_memory_broker import CLIENT, NODE_ID, run_with_broker


async def find(broker, version, key_type=0, key="us"):
    """The only result, from the field of the version."""
    request = FindCoordinatorRequest(key=key, key_type=key_type, keys=[key])
    response = await broker.ask(FIND_COORDINATOR, request, version)
    if version < 4:
        return response
    [result] = response.coordinators
    assert result.key == key
    return result


@pytest.mark.parametrize("version", FIND_COORDINATOR.versions)
@pytest.mark.parametrize("key", ["us", ""])
def test_coordinator_of_a_group_is_this_broker(version, key):
    _check_found(version, key, 0)


@pytest.mark.parametrize("version", range(1, FIND_COORDINATOR.version_max + 1))
def test_coordinator_of_a_transactional_id_is_this_broker(version):
    _check_found(version, "transfers", 1)


def _check_found(version, key, key_type):
    async def body(broker):
        result = await find(broker, version, key_type, key)

        assert result.error_code == ErrorCode.NONE
        assert (result.node_id, result.host, result.port) == (
            NODE_ID,
            CLIENT.local_host,
            CLIENT.local_port,
        )

    run_with_broker(body)


@pytest.mark.parametrize("version", range(4, FIND_COORDINATOR.version_max + 1))
def test_several_groups_in_one_request(version):
    async def body(broker):
        request = FindCoordinatorRequest(keys=["us", "them", "us"])
        response = await broker.ask(FIND_COORDINATOR, request, version)

        coordinators = [(each.key, each.error_code, each.node_id) for each in response.coordinators]
        assert coordinators == [("us", 0, NODE_ID), ("them", 0, NODE_ID), ("us", 0, NODE_ID)]

    run_with_broker(body)


@pytest.mark.parametrize("version", range(1, FIND_COORDINATOR.version_max + 1))
@pytest.mark.parametrize(
    ("key_type", "reason"),
    [(2, "Share groups are not supported"), (3, "Unknown coordinator type: 3")],
)
def test_unsupported_coordinator_types_are_refused(version, key_type, reason):
    async def body(broker):
        result = await find(broker, version, key_type)

        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message.startswith(reason)
        assert (result.node_id, result.port) == (-1, -1)

    run_with_broker(body)
