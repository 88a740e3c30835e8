"""N-14: whoever has gone leaves nobody behind whom a group would have to wait for."""

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
def test_a_member_that_joins_again_and_again_is_one_member(server, topic, group, protocol):
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


def test_who_was_only_given_an_id_is_no_member(server, group):
    """A client that crashes between the two requests by which one joins."""
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
            answer = wire.call(JOIN_GROUP, 4, request)
            assert answer.error_code == MEMBER_ID_REQUIRED
            ids.add(answer.member_id)
    assert len(ids) == JOINS
    with Wire(server.port, timeout_s=30) as wire:
        request.member_id = max(ids)
        joined = wire.call(JOIN_GROUP, 4, request)
        assert joined.error_code == 0
        assert [member.member_id for member in joined.members] == [max(ids)]
