import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import (
    decode_assignment,
    decode_broker,
    encode_assignment,
    encode_broker,
)
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Entry

IDS = st.integers(0, 2**31 - 1)
TIMES_MS = st.integers(0, 4_000_000_000).map(lambda seconds: seconds * 1000)
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)

BROKERS = st.builds(
    BrokerInfo,
    id=IDS,
    epoch=st.integers(0, 2**60),
    host=TEXT,
    port=st.integers(0, 65535),
    rack=TEXT,
    version=TEXT,
    started_ms=TIMES_MS,
    control_host=TEXT,
    control_port=st.integers(0, 65535),
    is_draining=st.booleans(),
    location=TEXT,
    lease=st.integers(0, 2**60),
    mod_revision=st.integers(1, 2**60),
)
ASSIGNMENTS = st.builds(
    Assignment,
    topic=st.just("orders"),
    partition=st.integers(0, 10_000),
    broker_id=IDS,
    broker_epoch=st.integers(0, 2**60),
    leader_epoch=st.integers(0, 2**31 - 1),
    fully_rolled=st.booleans(),
    reassigning_to=st.none() | IDS,
    end_offset=st.none() | st.integers(0, 2**62),
    lost_owner=st.none() | st.tuples(IDS, st.integers(0, 2**62)),
    assigned_ms=TIMES_MS,
    mod_revision=st.integers(1, 2**60),
)


@given(broker=BROKERS)
def test_broker_round_trips(broker):
    value = encode_broker(broker, now_ms=0)
    key = keys.broker(broker.id)
    assert decode_broker(Entry(key, value, 1, broker.mod_revision, broker.lease)) == broker


@given(assignment=ASSIGNMENTS)
def test_assignment_round_trips(assignment):
    key = keys.assignment(assignment.topic, assignment.partition)
    entry = Entry(key, encode_assignment(assignment), 1, assignment.mod_revision)
    assert decode_assignment(entry) == assignment


def test_broker_under_another_key_is_damaged():
    value = encode_broker(BrokerInfo(id=1, epoch=0, host="a", port=1), now_ms=0)
    with pytest.raises(DamagedObjectError, match="another broker id: 'broker-1'"):
        decode_broker(Entry(keys.broker(2), value, 1, 1))


def test_brokers_are_named_as_published_and_numbers_of_earlier_versions_are_read():
    owned = Assignment(
        topic="orders",
        partition=0,
        broker_id=2,
        broker_epoch=5,
        leader_epoch=0,
        fully_rolled=True,
        reassigning_to=0,
        lost_owner=(12, 4),
    )
    record = messages.PartitionAssignment.FromString(encode_assignment(owned))
    names = (record.broker_id, record.moving_to, record.lost_broker_id)
    assert names == ("broker-2", "broker-0", "broker-12")
    record.broker_id, record.moving_to, record.lost_broker_id = "2", "0", "12"
    key = keys.assignment("orders", 0)
    assert decode_assignment(Entry(key, record.SerializeToString(), 1, 0)) == owned


@pytest.mark.parametrize("value", [b"\xff\xff", b""])
def test_invalid_broker_id_is_damaged(value):
    with pytest.raises(DamagedObjectError):
        decode_assignment(Entry(keys.assignment("orders", 0), value, 1, 1))


def test_owner_is_a_single_registration():
    broker = BrokerInfo(id=3, epoch=5, host="a", port=1)
    owned = Assignment(
        topic="orders", partition=0, broker_id=3, broker_epoch=5, leader_epoch=0, fully_rolled=True
    )
    assert owned.is_owned_by(broker)
    assert not owned.is_owned_by(None)
    assert not owned.is_owned_by(replace(broker, epoch=6))
    assert not owned.is_owned_by(replace(broker, id=4))
