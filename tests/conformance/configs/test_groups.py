"""Configs of groups: values, bounds and errors in Kafka's words."""

import time

import pytest

from conformance.configs.player import APPEND, DELETE, GROUP, SET
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)

pytestmark = pytest.mark.timeout(120)

RETRIABLE = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
"""What Kafka answers until it has created its offsets topic."""
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
MILLISECONDS = ["4999", "5000", "15000", "15001", "44999", "45000", "60000", "60001", "-1", "0"]
MILLISECONDS += ["x", "", "1.5", "99999999999", " 45000 "]
VALUES = {
    SESSION: MILLISECONDS,
    HEARTBEAT: MILLISECONDS,
    "share.session.timeout.ms": MILLISECONDS,
    "share.heartbeat.interval.ms": MILLISECONDS,
    "share.record.lock.duration.ms": ["999", "14999", *MILLISECONDS],
    "share.auto.offset.reset": [
        "earliest",
        "latest",
        "LATEST",
        "",
        "by_duration:PT1H",
        "by_duration:P1DT2H3M4.5S",
        "by_duration:P",
        "by_duration:x",
        "by_duration:-PT1H",
    ],
    "share.isolation.level": ["read_committed", "read_uncommitted", "READ_COMMITTED", ""],
    "streams.session.timeout.ms": MILLISECONDS,
    "streams.heartbeat.interval.ms": MILLISECONDS,
    "streams.num.standby.replicas": ["-1", "0", "1", "2", "3", "x"],
}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_is_accepted_or_refused_as_in_kafka(same, name):
    values = VALUES[name]
    same(lambda player: {value: player.alter(GROUP, name, (name, SET, value)) for value in values})


def test_configs_are_described_with_their_sources(same):
    def conversation(player):
        player.alter(GROUP, "described", (SESSION, SET, "50000"))
        player.value(GROUP, "described", SESSION)
        return {
            config.name: (
                config.value,
                config.source,
                config.read_only,
                config.type,
                [(each.name, each.value, each.source) for each in config.synonyms],
            )
            for group in ("described", "other")
            for config in player.describe(GROUP, group).values()
        }

    same(conversation)


REFUSED = [
    [(SESSION, APPEND, "50000")],
    [("nonsense", SET, "1")],
    [("nonsense", DELETE, None)],
    [(SESSION, SET, None)],
    [(SESSION, SET, "50000"), (SESSION, SET, "50000")],
    [(SESSION, SET, "50000"), (HEARTBEAT, SET, "1")],
    [],
]


@pytest.mark.parametrize("operations", REFUSED, ids=str)
def test_invalid_changes_change_nothing(same, operations):
    def conversation(player):
        player.alter(GROUP, "kept", (SESSION, SET, "55000"))
        results = [player.alter(GROUP, name, *operations) for name in ("kept", "")]
        return results, player.value(GROUP, "kept", SESSION)

    same(conversation)


def test_groups_that_do_not_exist_are_configured_and_listed(same):
    def conversation(player):
        changes = [
            player.replace(GROUP, "listed", (SESSION, "51000"), (HEARTBEAT, "6000")),
            player.replace(GROUP, "listed", (SESSION, "52000")),
            player.alter(GROUP, "tried", (SESSION, SET, "52000"), validate_only=True),
        ]
        values = [
            player.value(GROUP, group, name)
            for group in ("listed", "tried")
            for name in (SESSION, HEARTBEAT)
        ]
        request = ListConfigResourcesRequest([GROUP])
        listed = player.call(LIST_CONFIG_RESOURCES, 1, request).resources
        names = {each.resource_name for each in listed}
        return changes, values, names & {"listed", "tried"}

    same(conversation)


def test_resources_are_checked(same):
    same(lambda player: player.described(GROUP, ""))
    for types in ([0], [99], [16]):
        request = ListConfigResourcesRequest(types)
        same(lambda player, request=request: player.call(LIST_CONFIG_RESOURCES, 1, request))


def test_members_get_the_heartbeat_interval_of_their_group(same):
    """It changes with the next heartbeat; other groups keep theirs."""

    def conversation(player):
        intervals = []
        members = {}

        def heartbeat(group: str, epoch: int) -> int:
            request = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=members.get(group, ""),
                member_epoch=epoch,
                rebalance_timeout_ms=30_000 if epoch == 0 else -1,
                subscribed_topic_names=["missing"] if epoch == 0 else None,
                owned_partitions=[] if epoch == 0 else None,
            )
            deadline = time.monotonic() + 30
            while True:
                response = player.call(CONSUMER_GROUP_HEARTBEAT, 0, request)
                if response.error_code not in RETRIABLE or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            assert response.error_code == 0, response
            members[group] = response.member_id
            intervals.append(response.heartbeat_interval_ms)
            return response.member_epoch

        player.call(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="heard"))
        epochs = {group: heartbeat(group, 0) for group in ("heard", "unheard")}
        player.alter(GROUP, "heard", (HEARTBEAT, SET, "7000"))
        player.value(GROUP, "heard", HEARTBEAT)
        for group, epoch in epochs.items():
            heartbeat(group, epoch)
        return intervals

    assert same(conversation) == [5000, 5000, 7000, 5000]
