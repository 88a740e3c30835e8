"""The generated protobuf modules are current, and extend the published schema."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafscale.metadata._generated import metadata_pb2 as messages

ROOT = Path(__file__).parents[3]
PLACE = Path("kafscale/metadata/_generated")

PUBLISHED = {
    "TopicConfig": {
        "name": ("string", 1),
        "partitions": ("int32", 2),
        "replication_factor": ("int32", 3),
        "retention_ms": ("int64", 4),
        "retention_bytes": ("int64", 5),
        "segment_bytes": ("int64", 6),
        "created_at": ("string", 7),
        "config": ("repeated ConfigEntry", 8),
    },
    "PartitionState": {
        "topic": ("string", 1),
        "partition": ("int32", 2),
        "leader_broker": ("string", 3),
        "leader_epoch": ("int32", 4),
        "log_start_offset": ("int64", 5),
        "log_end_offset": ("int64", 6),
        "high_watermark": ("int64", 7),
        "active_segment": ("string", 8),
        "segments": ("repeated SegmentInfo", 9),
    },
    "SegmentInfo": {
        "base_offset": ("int64", 1),
        "size_bytes": ("int64", 2),
        "created_at": ("string", 3),
    },
    "ConsumerGroup": {
        "group_id": ("string", 1),
        "state": ("string", 2),
        "protocol_type": ("string", 3),
        "protocol": ("string", 4),
        "leader": ("string", 5),
        "generation_id": ("int32", 6),
        "members": ("repeated MembersEntry", 7),
        "rebalance_timeout_ms": ("int32", 8),
    },
    "GroupMember": {
        "client_id": ("string", 1),
        "client_host": ("string", 2),
        "heartbeat_at": ("string", 3),
        "assignments": ("repeated Assignment", 4),
        "subscriptions": ("repeated string", 5),
        "session_timeout_ms": ("int32", 6),
    },
    "Assignment": {"topic": ("string", 1), "partitions": ("repeated int32", 2)},
    "CommittedOffset": {
        "offset": ("int64", 1),
        "metadata": ("string", 2),
        "committed_at": ("string", 3),
        "leader_epoch": ("int32", 4),
    },
    "BrokerRegistration": {
        "broker_id": ("string", 1),
        "host": ("string", 2),
        "port": ("int32", 3),
        "rack": ("string", 4),
        "started_at": ("string", 5),
        "last_heartbeat": ("string", 6),
        "version": ("string", 7),
    },
    "PartitionAssignment": {
        "broker_id": ("string", 1),
        "epoch": ("int32", 2),
        "assigned_at": ("string", 3),
    },
}
OWN_FROM = 100
OWN_MESSAGES = {
    "AccessRule",
    "DynamicConfigs",
    "ListenerEndpoint",
    "PendingOffsets",
    "Quota",
    "ReplicaList",
    "ScramCredential",
    "TransactionalId",
}
"""Kafscale's own, which the published schema does not know."""


def written(field):
    names = {3: "int64", 5: "int32", 9: "string", 12: "bytes"}
    name = field.message_type.name if field.message_type else names[field.type]
    return f"repeated {name}" if field.is_repeated else name


def test_schema_has_the_published_messages():
    assert messages.DESCRIPTOR.package == "kafscale.metadata"
    assert set(messages.DESCRIPTOR.message_types_by_name) == set(PUBLISHED) | OWN_MESSAGES


@pytest.mark.parametrize("name", PUBLISHED)
def test_own_fields_are_numbered_from_100(name):
    fields = messages.DESCRIPTOR.message_types_by_name[name].fields
    published = {
        field.name: (written(field), field.number) for field in fields if field.number < OWN_FROM
    }
    assert published == PUBLISHED[name]


@pytest.mark.parametrize("schema", ["metadata/metadata", "etcd/rpc"])
def test_generated_modules_are_current(tmp_path, schema):
    folder, name = schema.split("/")
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={PLACE}=proto/{folder}",
        f"--python_out={tmp_path}",
        f"--pyi_out={tmp_path}",
        f"proto/{schema}.proto",
    ]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own command.
    for module in (f"{name}_pb2.py", f"{name}_pb2.pyi"):
        written = (tmp_path / PLACE / module).read_text()
        assert written == (ROOT / "src" / PLACE / module).read_text()
