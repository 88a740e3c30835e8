"""N-14: members that left or crashed do not stay in the group."""

from functools import partial

import pytest
from confluent_kafka import Consumer

from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from services.group_state import describe_group_state
from services.waiting import wait_until
from services.wire import Wire

pytestmark = pytest.mark.timeout(120)

MEMBER_ID_REQUIRED = 79
JOINS = 4


def has_assignment(consumer: Consumer) -> bool:
    consumer.poll(0.05)
    return bool(consumer.assignment())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_repeated_joins_leave_one_member(server, topic, group, protocol):
    is_classic = protocol == "classic"
    with Wire(server.port) as wire:
        wire.create(topic, 3)
    for _ in range(JOINS):
        consumer = Consumer(
            {"bootstrap.servers": server.address, "group.id": group, "group.protocol": protocol}
        )
        consumer.subscribe([topic])
        try:
            wait_until(partial(has_assignment, consumer), "an assignment")
            assert len(describe_group_state(server.port, group, is_classic=is_classic).members) == 1
        finally:
            consumer.close()
    left = describe_group_state(server.port, group, is_classic=is_classic)
    assert (left.state, left.members) == ("Empty", frozenset())


def test_pending_member_id_is_not_a_member(server, group):
    """The client crashes between its two JoinGroup requests."""
    request = JoinGroupRequest(
        group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="ghosts",
        protocols=[OfferedProtocol("sheet", b"white")],
    )
    ids = set()
    for _ in range(JOINS):
        with Wire(server.port) as wire:
            response = wire.call(JOIN_GROUP, 4, request)
            assert response.error_code == MEMBER_ID_REQUIRED
            ids.add(response.member_id)
    assert len(ids) == JOINS
    with Wire(server.port, timeout_s=30) as wire:
        request.member_id = max(ids)
        joined = wire.call(JOIN_GROUP, 4, request)
        assert joined.error_code == 0
        assert [member.member_id for member in joined.members] == [max(ids)]
