"""Tests that statuses match the schemas of the CRDs."""

import msgspec
import pytest

from generators.crds.schema import status_schema
from kafscale.operator.spec.status import (
    AppliedStatus,
    ClusterStatus,
    EtcdStatus,
    PartitionStatus,
    SnapshotStatus,
    TopicStatus,
    as_manifest,
    bad,
    ok,
    to_status,
)
from unit.generators.crds.structural import violations_of

NOW = "2026-01-02T03:04:05Z"
CONDITIONS = to_status(
    [ok("Ready", "AllServe"), bad("EtcdSnapshot", "Stale", "Look at it.")], {}, NOW, 3
)

CLUSTER = ClusterStatus(
    phase="Ready",
    observed_generation=3,
    broker_count=3,
    ready_brokers=0,
    topic_count=0,
    bootstrap_servers="production-broker.kafscale.svc:9092",
    etcd=EtcdStatus(
        managed=False, endpoints=["etcd:2379"], members=3, members_ready=2, database_bytes=0
    ),
    snapshot=SnapshotStatus(
        last_time=NOW, last_key="a/b.db", size_bytes=1, age_seconds=0, failures=0
    ),
    conditions=CONDITIONS,
)
TOPIC = TopicStatus(
    phase="Ready",
    observed_generation=1,
    topic_id="AAAAAAAAAAAAAAAAAAAAAQ",
    partitions=[PartitionStatus(id=0, leader="0", log_end_offset=0), PartitionStatus(id=1)],
    applied=AppliedStatus(partitions=2, config={"cleanup.policy": "compact"}),
    conditions=CONDITIONS,
)


@pytest.mark.parametrize("status", [CLUSTER, TOPIC, ClusterStatus(), TopicStatus()])
def test_status_matches_its_schema(status):
    assert violations_of(as_manifest(status), status_schema(type(status))) == []


@pytest.mark.parametrize("status", [CLUSTER, TOPIC])
def test_complete_status_round_trips(status):
    manifest = as_manifest(status)
    assert set(manifest) == set(status_schema(type(status))["properties"])
    assert msgspec.convert(manifest, type(status)) == status


def test_unknown_values_are_left_out_and_zeros_kept():
    assert as_manifest(ClusterStatus(broker_count=0, etcd=EtcdStatus(managed=False))) == {
        "brokerCount": 0,
        "etcd": {"managed": False},
    }
    assert as_manifest(PartitionStatus(id=0)) == {"id": 0}


def test_conditions_are_written_unchanged():
    shared = {"lastTransitionTime": NOW, "observedGeneration": 3}
    stale = {"type": "EtcdSnapshot", "status": "False", "reason": "Stale", "message": "Look at it."}
    ready = {"type": "Ready", "status": "True", "reason": "AllServe", "message": ""}
    assert as_manifest(CLUSTER)["conditions"] == [stale | shared, ready | shared]
