"""The records of `__consumer_offsets`, and what clients may not do with this topic."""

import time
from typing import Any, NamedTuple

import pytest

from conformance.groups.classic import leave, stable_member, wait_until_empty
from conformance.groups.offsets import commit
from conformance.groups.servers import START_S_MAX
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services.wire import Wire, batch_of

pytestmark = pytest.mark.timeout(START_S_MAX)

WAIT_S_MAX = 10


class Bytes:
    """Reads the fields of a key or value."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, size: int) -> int:
        self._position += size
        return int.from_bytes(self._data[self._position - size : self._position], signed=True)

    def text(self, size: int = 2) -> bytes | None:
        return None if (length := self.number(size)) < 0 else self.take(length)

    def compact_text(self) -> bytes:
        return self.take(self.number(1) - 1)

    def take(self, length: int) -> bytes:
        self._position += length
        return self._data[self._position - length : self._position]


class Group(NamedTuple):
    protocol_type: bytes | None
    generation: int
    protocol: bytes | None
    has_leader: bool
    members: list[Any]


def group_of(value: bytes) -> Group:
    """A group, without what differs between any two groups: ids and times."""
    fields = Bytes(value)
    assert fields.number(2) == 3
    protocol_type, generation = fields.text(), fields.number(4)
    protocol, leader, _ = fields.text(), fields.text(), fields.number(8)
    members = [
        [
            len(fields.text() or b"") > 0,
            *(fields.text() for _ in range(3)),  # instance id, client id, host
            *(fields.number(4) for _ in range(2)),  # timeouts
            *(fields.text(4) for _ in range(2)),  # subscription and assignment
        ]
        for _ in range(fields.number(4))
    ]
    return Group(protocol_type, generation, protocol, bool(leader), members)


def offset_of(value: bytes) -> tuple[int, int, bytes | None]:
    """Offset, leader epoch and metadata. Kafka 4.1 writes version 4, whose texts are compact."""
    fields = Bytes(value)
    version = fields.number(2)
    offset, leader_epoch = fields.number(8), fields.number(4)
    return offset, leader_epoch, fields.compact_text() if version == 4 else fields.text()


def read(server, group: str, partition: int) -> dict[bytes, list[Any]]:
    """The values of each key of a group, decoded; None for tombstones."""
    found: dict[bytes, list[Any]] = {}
    with Wire(server.port) as wire:
        for record in wire.read(SHARDS_TOPIC, partition=partition):
            name = len(group).to_bytes(2) + group.encode()
            if record.key is None or record.key[2 : 2 + len(name)] != name:
                continue
            decode = group_of if record.key.startswith(b"\0\2") else offset_of
            values = found.setdefault(record.key, [])
            values.append(None if record.value is None else decode(record.value))
    return found


def newest(values: dict[bytes, list[Any]]) -> dict[bytes, Any]:
    return {key: each[-1] for key, each in values.items()}


def compare(servers, client, expected_count: int) -> dict[bytes, Any]:
    """The newest records of both, which are the same."""
    kafka, ours = servers
    deadline = time.monotonic() + WAIT_S_MAX
    while True:
        kafkas = newest(read(kafka, client.group, 0))
        own = newest(read(ours, client.group, shard_of(client.group)))
        if kafkas == own and len(own) == expected_count:
            return own
        assert time.monotonic() < deadline, (kafkas, own)
        time.sleep(0.1)


def test_records_of_groups_and_offsets_are_those_of_kafka(client, servers):
    group = client.group
    with Wire(servers[1].port) as wire:  # So that its log exists, and has tombstones later.
        commit(client, group=f"{group}-other")
        wire.offset(SHARDS_TOPIC, -1)
    commit(client, partitions={"three": [0, 2]}, metadata="some text")
    offsets = compare(servers, client, 2)
    assert set(offsets.values()) == {(7, -1, b"some text")}
    member = stable_member(client, instance="an-instance")
    stable = compare(servers, client, 3)[b"\0\2" + len(group).to_bytes(2) + group.encode()]
    assert len(stable.members) == 1
    assert stable.has_leader
    leave(client, (member, "an-instance"))
    wait_until_empty(client)
    compare(servers, client, 3)
    client.call(DELETE_GROUPS, 2, DeleteGroupsRequest([group]))
    assert set(compare(servers, client, 3).values()) == {None}


def test_topic_is_internal_and_refuses_records_and_their_deletion(client, servers):
    commit(client)
    trim = DeleteRecordsRequest([TopicToTrim(SHARDS_TOPIC, [PartitionToTrim(0, 0)])])
    create = CreateTopicsRequest([TopicToCreate(SHARDS_TOPIC, 1, 1)])
    describe = MetadataRequest(topics=[TopicToDescribe(name=SHARDS_TOPIC)])
    for server in servers:
        with Wire(server.port) as wire:
            (topic,) = wire.call(METADATA, 12, describe).topics
            assert (topic.error_code, topic.is_internal) == (0, True)
            refused = wire.produce(SHARDS_TOPIC, batch_of([b"value"]))
            assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            trimmed = wire.call(DELETE_RECORDS, 2, trim).topics[0].partitions[0]
            assert trimmed.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            created = wire.call(CREATE_TOPICS, 7, create).topics[0]
            assert created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
