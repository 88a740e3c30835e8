"""ElectLeaders: partitions return to the first broker that was requested for them."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicToElect,
)
from unit.broker.in_memory_broker import NODE_ID, run_with_broker
from unit.broker.other_brokers import register, wait_for_owner

OTHER = NODE_ID + 1
UNCLEAN = 1


async def elect(broker, topics, version=ELECT_LEADERS.version_max, **options):
    response = await broker.ask(
        ELECT_LEADERS, ElectLeadersRequest(topics=topics, **options), version
    )
    assert response.error_code == ErrorCode.NONE
    return [
        (topic.name, [(result.index, result.error_code) for result in topic.partitions])
        for topic in response.topics
    ]


async def request_replicas(broker, **replicas):
    topic = broker.services.topic_store.topics["orders"]
    requested = {int(name[1:]): tuple(each) for name, each in replicas.items()}
    await broker.services.topic_store.request_replicas("orders", topic.id, requested)


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_election_is_not_needed_where_any_broker_is_preferred(version):
    async def body(broker):
        await broker.topic("orders")
        requested = [TopicToElect("orders", [0, 1]), TopicToElect("missing", [0])]
        assert await elect(broker, requested, version) == [
            (
                "orders",
                [(0, ErrorCode.ELECTION_NOT_NEEDED), (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
            ),
            ("missing", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ]
        assert await elect(broker, None, version) == [("orders", [])]

    run_with_broker(body)


@pytest.mark.parametrize("topics", [None, [TopicToElect("orders", [0])]], ids=["all", "named"])
def test_election_returns_when_the_preferred_leader_owns_the_partition(topics):
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER)
        await request_replicas(broker, p0=[OTHER, NODE_ID])
        assert await elect(broker, topics) == [("orders", [(0, ErrorCode.NONE)])]
        assert broker.services.cluster.leader("orders", 0)[0] == OTHER

    run_with_broker(body)


def test_stand_in_leads_while_the_preferred_leader_is_not_available():
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER, is_draining=True)
        await request_replicas(broker, p0=[OTHER, NODE_ID])
        requested = [TopicToElect("orders", [0])]
        unavailable = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(broker, requested) == [("orders", [(0, unavailable)])]
        assert await elect(broker, None) == [("orders", [(0, unavailable)])]
        not_needed = [("orders", [(0, ErrorCode.ELECTION_NOT_NEEDED)])]
        assert await elect(broker, requested, election_type=UNCLEAN) == not_needed
        await register(broker, OTHER)
        assert await elect(broker, requested) == [("orders", [(0, ErrorCode.NONE)])]
        assert await elect(broker, requested) == not_needed

    run_with_broker(body)


def test_election_that_takes_too_long_times_out():
    async def body(broker):
        await broker.topic("orders")
        await register(broker, OTHER)
        await request_replicas(broker, p0=[OTHER])
        requested = [TopicToElect("orders", [0])]
        assert await elect(broker, requested, timeout_ms=0) == [
            ("orders", [(0, ErrorCode.REQUEST_TIMED_OUT)])
        ]
        await wait_for_owner(broker, "orders", 0, OTHER)

    run_with_broker(body)


@pytest.mark.parametrize("version", range(1, ELECT_LEADERS.version_max + 1))
def test_unknown_election_type_is_refused(version):
    async def body(broker):
        await broker.topic("orders")
        request = ElectLeadersRequest(2, [TopicToElect("orders", [0])])
        response = await broker.ask(ELECT_LEADERS, request, version)
        [result] = response.topics[0].partitions
        assert response.error_code == result.error_code == ErrorCode.INVALID_REQUEST

    run_with_broker(body)
