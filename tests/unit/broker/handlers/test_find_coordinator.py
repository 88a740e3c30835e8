"""FindCoordinator: later for groups, never for transactions."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from unit.broker.handlers.serving import serve


async def find(broker, version, key_type=0):
    """The only answer, wherever the version has it."""
    request = FindCoordinatorRequest(key="us", key_type=key_type, keys=["us"])
    response = await broker.ask(FIND_COORDINATOR, request, version)
    if version < 4:
        return response
    [found] = response.coordinators
    assert found.key == "us"
    return found


@pytest.mark.parametrize("version", FIND_COORDINATOR.versions)
def test_a_group_is_told_to_ask_again(version):
    async def body(broker):
        found = await find(broker, version)

        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert ErrorCode.of(found.error_code).retriable
        assert (found.node_id, found.host, found.port) == (-1, "", -1)

    serve(body)


@pytest.mark.parametrize("version", range(1, FIND_COORDINATOR.version_max + 1))
@pytest.mark.parametrize(
    ("key_type", "reason"),
    [
        (1, "Transactions are not supported"),
        (2, "Share groups are not supported"),
        (3, "Unknown coordinator type: 3"),
    ],
)
def test_what_there_is_none_of_is_refused_with_a_reason(version, key_type, reason):
    async def body(broker):
        found = await find(broker, version, key_type)

        assert found.error_code == ErrorCode.INVALID_REQUEST
        assert found.error_message.startswith(reason)
        assert (found.node_id, found.port) == (-1, -1)

    serve(body)
