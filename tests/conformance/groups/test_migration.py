"""Groups between the two protocols: classic members meet consumers, in both directions."""

import pytest
from msgspec.structs import replace

from conformance.groups.classic import (
    OTHER_WISH,
    RANGE,
    describe,
    first_member,
    heartbeat,
    join,
    leave,
    promised_id,
    sync,
    wait_until_empty,
    wish,
)
from conformance.groups.codes import Code
from conformance.groups.consumer import assigned, beat, consumer, describe_consumers, enter
from conformance.groups.offsets import commit, fetch
from conformance.groups.servers import START_S_MAX
from kafscale.groups.consumer_protocol import encode_assignment

pytestmark = pytest.mark.timeout(START_S_MAX)

ALL = {"three": [0, 1, 2]}


def about(member):
    """Here a refusal always says whom it is about; those of consumer groups do not in Kafka."""
    return lambda answer: replace(answer, member_id=member)


def failing_on_protocols(answer):
    if answer.error_code != Code.UNKNOWN_SERVER_ERROR:
        return answer
    return replace(answer, error_code=Code.INCONSISTENT_GROUP_PROTOCOL)


def classic_reader(talk, **said) -> str:
    """A classic member that reads all of a topic."""
    member = first_member(talk, **said).member_id
    share = encode_assignment({"three": (0, 1, 2)})
    assert sync(talk, member=member, assigned={member: share}).error_code == Code.NONE
    return member


def test_a_classic_member_joins_an_empty_consumer_group(talk):
    consumer(talk)
    commit(talk, member="a", generation=1)
    beat(talk, epoch=-1)
    describe_consumers(talk)
    assert first_member(talk).error_code == Code.NONE
    describe(talk)
    describe_consumers(talk)
    fetch(talk)


def test_a_consumer_joins_an_empty_classic_group(talk):
    member = classic_reader(talk)
    commit(talk, member=member, generation=1)
    leave(talk, (member, None))
    wait_until_empty(talk)
    assert enter(talk).error_code == Code.NONE
    describe(talk)
    describe_consumers(talk)
    fetch(talk)


def test_a_consumer_joins_a_group_that_has_only_offsets(talk):
    commit(talk)
    enter(talk)
    describe_consumers(talk)
    fetch(talk)


@pytest.mark.parametrize("version", [2, 9])
def test_classic_requests_to_a_consumer_group(talk, version):
    consumer(talk)
    refused = Code.UNKNOWN_MEMBER_ID
    assert heartbeat(talk, member="a") == refused
    assert heartbeat(talk, member="nobody") == refused
    assert sync(talk, member="a").error_code == refused
    assert sync(talk, member="nobody").error_code == refused
    join(talk, version, member="nobody")
    join(talk, version, protocols={})
    join(talk, version, protocol_type="connect")
    # On a wish that cannot be read Kafka fails with a bug of its own, where it does not ask first.
    join(talk, version, protocols={"range": b""}, ours=failing_on_protocols)
    join(talk, version, session_ms=5)
    leave(talk, ("nobody", None), ("", "nobody"))
    describe_consumers(talk)
    leave(talk, ("a", None))
    describe_consumers(talk)


def test_a_classic_member_joins_consumers(talk):
    consumer(talk)
    member = promised_id(talk)
    answer = join(talk, member=member)
    assert (answer.error_code, answer.leader, answer.members) == (0, "", [])
    describe_consumers(talk)
    heartbeat(talk, member=member, generation=answer.generation_id)
    sync(talk, member=member, generation=answer.generation_id)
    sync(talk, member=member, generation=1)
    sync(talk, member=member, generation=answer.generation_id, protocol="other")
    kept = assigned(beat(talk, epoch=1))
    heartbeat(talk, member=member, generation=answer.generation_id)
    beat(talk, epoch=1, owned=kept)
    code = heartbeat(talk, member=member, generation=answer.generation_id)
    assert code == Code.REBALANCE_IN_PROGRESS
    sync(talk, member=member, generation=answer.generation_id)
    answer = join(talk, member=member)
    sync(talk, member=member, generation=answer.generation_id)
    describe_consumers(talk)
    assert heartbeat(talk, member=member, generation=answer.generation_id) == Code.NONE
    commit(talk, member=member, generation=answer.generation_id)
    leave(talk, (member, None))
    describe_consumers(talk)


def test_a_consumer_joins_classic_members(talk):
    member = classic_reader(talk)
    answer = enter(talk)
    assert (answer.error_code, answer.member_epoch, assigned(answer)) == (0, 2, {})
    describe_consumers(talk)
    describe(talk)
    assert heartbeat(talk, member=member) == Code.REBALANCE_IN_PROGRESS
    commit(talk, member=member, generation=1)
    owned = wish("three")
    answer = join(talk, member=member, protocols={"range": owned})
    describe_consumers(talk)
    sync(talk, member=member, generation=answer.generation_id)
    beat(talk, epoch=2, owned={})
    describe_consumers(talk)
    assert heartbeat(talk, member=member, generation=answer.generation_id) == Code.NONE
    leave(talk, (member, None))
    describe_consumers(talk)


def test_the_last_consumer_leaves_classic_members(talk):
    member = classic_reader(talk)
    enter(talk)
    generation = join(talk, member=member).generation_id
    sync(talk, member=member, generation=generation)
    assert beat(talk, epoch=-1).error_code == Code.NONE
    describe_consumers(talk)
    describe(talk)
    heartbeat(talk, member=member, generation=generation)
    answer = join(talk, member=member)
    describe(talk)
    sync(talk, member=member, generation=answer.generation_id)
    describe(talk)


@pytest.mark.parametrize(
    "said",
    [
        {"protocol_type": "connect", "protocols": {"x": b""}},
        {"protocols": {"range": b""}},
        {"protocols": {"range": b"\0\0"}},
    ],
    ids=str,
)
def test_classic_groups_that_a_consumer_cannot_join(talk, said):
    first_member(talk, **said)
    enter(talk)
    describe(talk)


def test_a_consumer_joins_while_classic_members_rebalance(talk):
    member = first_member(talk).member_id
    enter(talk, names=["one"])
    describe_consumers(talk)
    sync(talk, member=member)
    heartbeat(talk, member=member)
    generation = join(talk, member=member).generation_id
    sync(talk, member=member, generation=generation)
    describe_consumers(talk)


def test_a_static_member_changes_its_protocol(talk):
    member = classic_reader(talk, instance="i")
    answer = enter(talk, group_instance_id="i")
    assert answer.error_code == Code.NONE
    describe_consumers(talk)
    assert heartbeat(talk, member=member, instance="i") == Code.FENCED_INSTANCE_ID
    answer = join(talk, instance="i", protocols=RANGE)
    describe_consumers(talk)
    describe(talk)


def test_classic_members_with_other_wishes_among_consumers(talk):
    consumer(talk)
    member = promised_id(talk, protocols=OTHER_WISH)
    generation = join(talk, member=member, protocols=OTHER_WISH).generation_id
    sync(talk, member=member, generation=generation)
    describe_consumers(talk)
    join(talk, member=member, protocols={"other": wish("one")}, ours=about(member))
    join(talk, protocols={"third": wish("one")})
    describe_consumers(talk)
