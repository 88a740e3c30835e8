"""ElectLeaders: every partition is led by whom it should be."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicToElect,
)
from unit.broker.handlers.serving import serve


def results(response):
    return [
        (topic.name, found.index, found.error_code)
        for topic in response.topics
        for found in topic.partitions
    ]


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_no_election_is_needed(version):
    async def body(broker):
        await broker.topic("orders")
        asked = [TopicToElect("orders", [0, 1]), TopicToElect("missing", [0])]
        response = await broker.ask(ELECT_LEADERS, ElectLeadersRequest(topics=asked), version)

        assert response.error_code == ErrorCode.NONE
        assert results(response) == [
            ("orders", 0, ErrorCode.ELECTION_NOT_NEEDED),
            ("orders", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    serve(body)


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_of_all_partitions_none_is_worth_telling(version):
    async def body(broker):
        await broker.topic("orders")
        response = await broker.ask(ELECT_LEADERS, ElectLeadersRequest(topics=None), version)

        assert (response.error_code, results(response)) == (ErrorCode.NONE, [])

    serve(body)


@pytest.mark.parametrize("version", range(1, ELECT_LEADERS.version_max + 1))
def test_an_election_of_another_kind_is_refused(version):
    async def body(broker):
        await broker.topic("orders")
        request = ElectLeadersRequest(2, [TopicToElect("orders", [0])])
        response = await broker.ask(ELECT_LEADERS, request, version)

        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert results(response) == [("orders", 0, ErrorCode.INVALID_REQUEST)]

    serve(body)
