"""Fetching and committing offsets of a group."""

import asyncio

import pytest

from kafscale.client.errors import BrokerResponseError
from kafscale.client.group_offsets import Committed, commit, committed
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitResponse,
)
from kafscale.protocol.messages.offset_fetch import (
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    OffsetFetchResponse,
)
from unit.cli.scripted_coordinator import ScriptedCoordinator

TOPICS = [
    FetchedTopic(
        name="orders",
        partitions=[
            FetchedPartition(index=0, committed_offset=5, leader_epoch=3, metadata="note"),
            FetchedPartition(index=1, committed_offset=-1),
            FetchedPartition(index=2, committed_offset=0, metadata=None),
        ],
    )
]


@pytest.mark.parametrize(
    "response",
    [
        OffsetFetchResponse(groups=[FetchedGroup(group_id="billing", topics=TOPICS)]),
        OffsetFetchResponse(topics=TOPICS),
    ],
    ids=["several groups", "one group"],
)
def test_committed_offsets_are_read_from_all_versions(response):
    coordinator = ScriptedCoordinator(response)
    assert asyncio.run(committed(coordinator, [("orders", 2), ("orders", 0)])) == {
        ("orders", 0): Committed(5, 3, "note"),
        ("orders", 2): Committed(0, -1, ""),
    }
    (request,) = coordinator.requests
    for requested in (request, request.groups[0]):
        assert requested.group_id == "billing"
        assert [(each.name, each.partitions) for each in requested.topics] == [("orders", [0, 2])]


def test_all_offsets_are_fetched_by_default():
    coordinator = ScriptedCoordinator(OffsetFetchResponse(groups=[FetchedGroup()]))
    assert asyncio.run(committed(coordinator)) == {}
    assert coordinator.requests[0].groups[0].topics is None


def test_errors_name_the_group_and_the_partition():
    denied = FetchedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerResponseError, match="group billing: "):
        asyncio.run(committed(ScriptedCoordinator(OffsetFetchResponse(groups=[denied]))))
    unstable = FetchedPartition(index=4, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    response = OffsetFetchResponse(topics=[FetchedTopic(name="orders", partitions=[unstable])])
    with pytest.raises(BrokerResponseError, match="group billing, topic orders, partition 4: "):
        asyncio.run(committed(ScriptedCoordinator(response)))


def test_stable_offsets_are_waited_for():
    unstable = FetchedPartition(
        index=0, committed_offset=-1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
    )
    coordinator = ScriptedCoordinator(
        OffsetFetchResponse(topics=[FetchedTopic(name="orders", partitions=[unstable])]),
        OffsetFetchResponse(topics=TOPICS),
    )
    pauses = []

    async def pause(seconds):
        pauses.append(seconds)

    offsets = asyncio.run(committed(coordinator, stable=True, pause=pause))
    assert offsets["orders", 0].offset == 5
    assert len(pauses) == 1
    assert [each.require_stable for each in coordinator.requests] == [True, True]


def test_commit_without_a_member_has_no_generation():
    ok = CommittedPartition(index=0)
    coordinator = ScriptedCoordinator(
        OffsetCommitResponse(topics=[CommittedTopic(name="orders", partitions=[ok])])
    )
    asyncio.run(commit(coordinator, {("orders", 0): 7}))
    (request,) = coordinator.requests
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
