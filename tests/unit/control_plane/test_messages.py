"""The published schema: names, numbers and types that clients rely on."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from kafscale.control_plane.messages import DESCRIPTOR, METHODS

# Written down once more, by hand, so that nothing published changes unnoticed.
PUBLISHED = {
    "BrokerStatusRequest": "",
    "BrokerStatusResponse": "broker_id=1 string, version=2 string, ready=3 bool,"
    " partitions=4 PartitionStatus*",
    "PartitionStatus": "topic=1 string, partition=2 int32, leader=3 bool, state=4 string,"
    " log_start_offset=5 int64, log_end_offset=6 int64, high_watermark=7 int64",
    "PartitionRef": "topic=1 string, partition=2 int32",
    "DrainPartitionsRequest": "partitions=1 PartitionRef*, reason=2 string,"
    " deadline_seconds=3 int32",
    "DrainPartitionsResponse": "drained=1 PartitionRef*, pending=2 PartitionRef*",
    "TriggerFlushRequest": "partitions=1 PartitionRef*, all_assigned=2 bool",
    "TriggerFlushResponse": "flushed=1 PartitionRef*",
    "MetricsSample": "broker_id=1 string, timestamp_ms=2 int64, gauges=3 GaugesEntry*,"
    " counters=4 CountersEntry*",
    "Ack": "message=1 string",
    "AssignmentWatchRequest": "broker_id=1 string",
    "PartitionAssignmentEvent": "partition=1 PartitionRef, broker_id=2 string, status=3 string,"
    " epoch=4 int32",
}
ROOT = Path(__file__).parents[3]
PACKAGE = Path("kafscale/control_plane/_generated")
OWN_FIELD_MIN = 100
TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_DOUBLE: "double",
}


def received(field):
    kind = TYPES.get(field.type) or field.message_type.name
    return f"{field.name}={field.number} {kind}{'*' if field.is_repeated else ''}"


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_fields_are_unchanged(name):
    fields = DESCRIPTOR.message_types_by_name[name].fields
    published = [received(field) for field in fields if field.number < OWN_FIELD_MIN]
    assert ", ".join(published) == PUBLISHED[name]


@pytest.mark.parametrize("kind", ["gauges", "counters"])
def test_metrics_are_numbers_by_name(kind):
    entry = DESCRIPTOR.message_types_by_name["MetricsSample"].fields_by_name[kind].message_type
    assert entry.GetOptions().map_entry
    assert [received(field) for field in entry.fields] == ["key=1 string", "value=2 double"]


def test_method_paths():
    shapes = {
        method.path: (method.client_streaming, method.server_streaming)
        for method in METHODS.values()
    }
    control = "/kafscale.control.BrokerControl"
    assert shapes == {
        f"{control}/GetStatus": (False, False),
        f"{control}/DrainPartitions": (False, False),
        f"{control}/TriggerFlush": (False, False),
        f"{control}/StreamMetrics": (True, False),
        f"{control}/SealTail": (False, False),
        f"{control}/SwapSegments": (False, False),
        f"{control}/Rebalance": (False, False),
        f"{control}/WriteTransactionMarkers": (False, False),
        f"{control}/AddPartitionsToTransaction": (False, False),
        "/kafscale.control.AssignmentStream/WatchAssignments": (False, True),
    }


def test_generated_modules_match_the_schema(tmp_path):
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={PACKAGE}=proto/control",
        f"--python_out={tmp_path}",
        f"--pyi_out={tmp_path}",
        "proto/control/broker.proto",
    ]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own command.
    for name in ("broker_pb2.py", "broker_pb2.pyi"):
        assert (tmp_path / PACKAGE / name).read_text() == (
            ROOT / "src" / PACKAGE / name
        ).read_text()
