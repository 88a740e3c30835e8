"""How the coordinator of a group is found, lost and found again."""

import asyncio

import pytest

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError, UnreachableError
from kafscale.client.retry import RETRIES_COUNT_MAX
from kafscale.net.host_port import Address
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import find_coordinator
from kafscale.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse


class Node:
    """One connection, to a broker that answers each request with what comes next of `answers`."""

    def __init__(self, address, answers):
        self.address = address
        self.is_open = True
        self._answers = answers

    async def ask(self, api, _request, **_options):
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            self.is_open = False
            raise answer
        assert isinstance(answer, api.response)
        return answer

    def close(self):
        self.is_open = False


class Cluster:
    """Two brokers, of which the first one tells who coordinates."""

    def __init__(self, found, answers):
        self.connected = []
        self.pauses = []
        self._found = found
        self._answers = answers

    async def any_broker(self):
        return Node(Address("seed", 9092), self._found)

    async def connect(self, address):
        self.connected.append(str(address))
        if isinstance(self._answers[0], UnreachableError) and self._answers[0].args[0] == "away":
            raise self._answers.pop(0)
        return Node(address, self._answers)

    async def pause(self, seconds):
        self.pauses.append(seconds)

    def heartbeat(self):
        """Ask something of the coordinator."""

        async def asked():
            async with Coordinator(
                self, "g", connect=self.connect, pause=self.pause
            ) as coordinator:
                response = await coordinator.ask(
                    HEARTBEAT, HeartbeatRequest(), lambda each: each.error_code
                )
                return ErrorCode.of(response.error_code), coordinator.node_id

        return asyncio.run(asked())


def at(node_id, code=ErrorCode.NONE):
    found = find_coordinator.Coordinator("g", node_id, f"node-{node_id}", 9092, code, None)
    return FindCoordinatorResponse(coordinators=[found])


def answer(code=ErrorCode.NONE):
    return HeartbeatResponse(error_code=code)


def test_the_coordinator_is_asked_where_it_was_found():
    cluster = Cluster([at(2)], [answer()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 2)
    assert (cluster.connected, cluster.pauses) == (["node-2:9092"], [])


def test_an_old_broker_tells_of_one_group_only():
    one = FindCoordinatorResponse(node_id=1, host="old", port=9092)
    cluster = Cluster([one], [answer()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 1)
    assert cluster.connected == ["old:9092"]


def test_a_coordinator_that_has_moved_is_found_again():
    answers = [answer(ErrorCode.NOT_COORDINATOR), UnreachableError("gone"), answer()]
    cluster = Cluster([at(1), at(2), at(3)], answers)
    assert cluster.heartbeat() == (ErrorCode.NONE, 3)
    assert cluster.connected == ["node-1:9092", "node-2:9092", "node-3:9092"]
    assert cluster.pauses == [0.1, 0.2]


def test_a_cluster_that_is_not_ready_yet_is_waited_for():
    waits = at(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    cluster = Cluster([waits, waits, at(1)], [answer()])
    assert cluster.heartbeat() == (ErrorCode.NONE, 1)


def test_errors_that_do_not_pass_are_left_to_who_asks():
    cluster = Cluster([at(1)], [answer(ErrorCode.UNKNOWN_MEMBER_ID)])
    assert cluster.heartbeat() == (ErrorCode.UNKNOWN_MEMBER_ID, 1)
    with pytest.raises(AnsweredError, match="INVALID_GROUP_ID"):
        Cluster([at(-1, ErrorCode.INVALID_GROUP_ID)], []).heartbeat()


def test_a_coordinator_that_was_never_reached_is_given_up_at_once():
    cluster = Cluster([at(1)], [UnreachableError("away")])
    with pytest.raises(UnreachableError, match="broker 1 is at node-1:9092, but: away"):
        cluster.heartbeat()
    assert cluster.pauses == []


def test_one_that_does_not_come_back_is_given_up_in_the_end():
    tries = RETRIES_COUNT_MAX + 1
    moved = [answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * tries
    with pytest.raises(AnsweredError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        Cluster([at(1)] * tries, moved).heartbeat()
