"""How the coordinator of a group is coordinators, lost and coordinators again."""

import asyncio

import pytest

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import RETRIES_COUNT_MAX, BrokerResponseError, UnreachableError
from kafscale.net.address import Address
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import find_coordinator
from kafscale.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse


class Node:
    """A connection to a broker that returns `responses` in order."""

    def __init__(self, address, responses):
        self.address = address
        self.is_open = True
        self._responses = responses

    async def ask(self, api, _request, **_options):
        response = self._responses.pop(0)
        if isinstance(response, Exception):
            self.is_open = False
            raise response
        assert isinstance(response, api.response)
        return response

    def close(self):
        self.is_open = False


class Cluster:
    """A seed broker that responds to FindCoordinator, and coordinators."""

    def __init__(self, coordinators, responses):
        self.connected = []
        self.pauses = []
        self._coordinators = coordinators
        self._responses = responses

    async def any_broker(self):
        return Node(Address("seed", 9092), self._coordinators)

    async def connect(self, address):
        self.connected.append(str(address))
        if (
            isinstance(self._responses[0], UnreachableError)
            and self._responses[0].args[0] == "away"
        ):
            raise self._responses.pop(0)
        return Node(address, self._responses)

    async def pause(self, seconds):
        self.pauses.append(seconds)

    def heartbeat(self):
        """Send a heartbeat to the coordinator."""

        async def ask():
            async with Coordinator(
                self, "g", connect=self.connect, pause=self.pause
            ) as coordinator:
                response = await coordinator.ask(
                    HEARTBEAT, HeartbeatRequest(), lambda each: each.error_code
                )
                return ErrorCode.of(response.error_code), coordinator.node_id

        return asyncio.run(ask())


def at(node_id, code=ErrorCode.NONE):
    coordinators = find_coordinator.Coordinator("g", node_id, f"node-{node_id}", 9092, code, None)
    return FindCoordinatorResponse(coordinators=[coordinators])


def response(code=ErrorCode.NONE):
    return HeartbeatResponse(error_code=code)


def test_request_is_sent_to_the_coordinator():
    cluster = Cluster([at(2)], [response()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 2)
    assert (cluster.connected, cluster.pauses) == (["node-2:9092"], [])


def test_response_before_v4_is_supported():
    one = FindCoordinatorResponse(node_id=1, host="old", port=9092)
    cluster = Cluster([one], [response()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 1)
    assert cluster.connected == ["old:9092"]


def test_moved_coordinator_is_coordinators_again():
    responses = [response(ErrorCode.NOT_COORDINATOR), UnreachableError("gone"), response()]
    cluster = Cluster([at(1), at(2), at(3)], responses)
    assert cluster.heartbeat() == (ErrorCode.NONE, 3)
    assert cluster.connected == ["node-1:9092", "node-2:9092", "node-3:9092"]
    assert cluster.pauses == [0.1, 0.2]


def test_unavailable_coordinator_is_retried():
    waits = at(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    cluster = Cluster([waits, waits, at(1)], [response()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 1)


def test_other_errors_are_returned_to_the_caller():
    cluster = Cluster([at(1)], [response(ErrorCode.UNKNOWN_MEMBER_ID)])
    assert cluster.heartbeat() == (ErrorCode.UNKNOWN_MEMBER_ID, 1)
    with pytest.raises(BrokerResponseError, match="INVALID_GROUP_ID"):
        Cluster([at(-1, ErrorCode.INVALID_GROUP_ID)], []).heartbeat()


def test_unreachable_coordinator_fails_at_once():
    cluster = Cluster([at(1)], [UnreachableError("away")])
    with pytest.raises(
        UnreachableError, match="broker 1 advertises the address node-1:9092, but: away"
    ):
        cluster.heartbeat()
    assert cluster.pauses == []


def test_retries_are_limited():
    tries = RETRIES_COUNT_MAX + 1
    moved = [response(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * tries
    with pytest.raises(BrokerResponseError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        Cluster([at(1)] * tries, moved).heartbeat()
