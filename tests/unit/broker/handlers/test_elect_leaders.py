"""ElectLeaders: every partition already has its preferred leader."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicToElect,
)
from unit.broker.in_memory_broker import run_with_broker


def results(response):
    return [
        (topic.name, result.index, result.error_code)
        for topic in response.topics
        for result in topic.partitions
    ]


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_election_is_not_needed(version):
    async def body(broker):
        await broker.topic("orders")
        requested = [TopicToElect("orders", [0, 1]), TopicToElect("missing", [0])]
        response = await broker.ask(ELECT_LEADERS, ElectLeadersRequest(topics=requested), version)

        assert response.error_code == ErrorCode.NONE
        assert results(response) == [
            ("orders", 0, ErrorCode.ELECTION_NOT_NEEDED),
            ("orders", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    run_with_broker(body)


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_request_for_all_partitions_returns_none(version):
    async def body(broker):
        await broker.topic("orders")
        response = await broker.ask(ELECT_LEADERS, ElectLeadersRequest(topics=None), version)

        assert (response.error_code, results(response)) == (ErrorCode.NONE, [])

    run_with_broker(body)


@pytest.mark.parametrize("version", range(1, ELECT_LEADERS.version_max + 1))
def test_unknown_election_type_is_refused(version):
    async def body(broker):
        await broker.topic("orders")
        request = ElectLeadersRequest(2, [TopicToElect("orders", [0])])
        response = await broker.ask(ELECT_LEADERS, request, version)

        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert results(response) == [("orders", 0, ErrorCode.INVALID_REQUEST)]

    run_with_broker(body)
