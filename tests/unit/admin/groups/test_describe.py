"""Descriptions of groups of either protocol."""

import asyncio

import msgspec
import pytest

from kafscale.admin.groups.describe import describe_group, partition_assignments
from kafscale.client.errors import BrokerResponseError
from kafscale.groups.consumer_protocol import Subscription, encode_assignment, encode_subscription
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import consumer_group_describe, describe_groups
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    Assignment,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from kafscale.protocol.messages.describe_groups import DescribeGroupsResponse
from unit.cli.scripted_coordinator import ScriptedCoordinator

NO_CONSUMER_GROUP = ConsumerGroupDescribeResponse(
    groups=[consumer_group_describe.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)]
)


def classic(**fields):
    return DescribeGroupsResponse(groups=[describe_groups.DescribedGroup(**fields)])


def member(metadata, assignment):
    return describe_groups.DescribedMember(
        member_id="m-1",
        client_id="app",
        client_host="/10.0.0.7",
        metadata=metadata,
        assignment=assignment,
    )


def test_classic_group_has_members_with_assignments():
    one = member(
        encode_subscription(Subscription(("orders", "users"))),
        encode_assignment({"orders": [2, 0]}),
    )
    coordinator = ScriptedCoordinator(
        NO_CONSUMER_GROUP,
        classic(
            group_state="Stable", protocol_type="consumer", protocol_name="range", members=[one]
        ),
    )
    group_description = asyncio.run(describe_group(coordinator))
    assert msgspec.to_builtins(group_description) == {
        "group": "billing",
        "type": "classic",
        "state": "Stable",
        "protocolType": "consumer",
        "assignor": "range",
        "epoch": None,
        "members": [
            {
                "memberId": "m-1",
                "instanceId": None,
                "clientId": "app",
                "host": "10.0.0.7",
                "topics": ["orders", "users"],
                "assignment": {"orders": [0, 2]},
            }
        ],
        "coordinator": {"id": 1, "address": "broker:9092"},
    }
    owners = partition_assignments(group_description.members)
    assert owners == dict.fromkeys([("orders", 0), ("orders", 2)], group_description.members[0])


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", b"its own"), ("consumer", b"damaged")]
)
def test_members_with_unknown_metadata_are_listed(protocol_type, metadata):
    coordinator = ScriptedCoordinator(
        NO_CONSUMER_GROUP,
        classic(
            group_state="Stable", protocol_type=protocol_type, members=[member(metadata, metadata)]
        ),
    )
    (one,) = asyncio.run(describe_group(coordinator)).members
    assert (one.member_id, one.topics, one.assignment) == ("m-1", [], {})


def test_consumer_group_is_described():
    assigned = Assignment([TopicPartitions(bytes(16), "orders", [1, 0])])
    one = consumer_group_describe.DescribedMember(
        member_id="m-1",
        member_epoch=4,
        client_host="/10.0.0.7",
        subscribed_topic_names=["orders"],
        assignment=assigned,
    )
    group = consumer_group_describe.DescribedGroup(
        group_state="Reconciling", group_epoch=5, assignor_name="uniform", members=[one]
    )
    coordinator = ScriptedCoordinator(ConsumerGroupDescribeResponse(groups=[group]))
    group_description = asyncio.run(describe_group(coordinator))
    assert (group_description.type, group_description.state, group_description.epoch) == (
        "consumer",
        "Reconciling",
        5,
    )
    (one,) = group_description.members
    assert (one.assignment, one.target, one.epoch) == ({"orders": [0, 1]}, {}, 4)


@pytest.mark.parametrize(
    "response",
    [
        classic(error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_state="Dead"),
        classic(group_state="Dead"),
    ],
    ids=["from v6 on", "before v6"],
)
def test_missing_group_is_an_error_with_a_hint(response):
    with pytest.raises(BrokerResponseError, match=r"GROUP_ID_NOT_FOUND.*kafscale group list"):
        asyncio.run(describe_group(ScriptedCoordinator(NO_CONSUMER_GROUP, response)))


def test_old_brokers_get_only_the_classic_request():
    coordinator = ScriptedCoordinator(classic(group_state="Empty"))
    coordinator.unknown_apis.add(CONSUMER_GROUP_DESCRIBE.name)
    assert asyncio.run(describe_group(coordinator)).type == "classic"
