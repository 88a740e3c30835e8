"""Tests of a managed etcd's manifests: golden files, pod security, and the effect of each field."""

import pytest
from msgspec.structs import replace

from kafscale.operator.kube.api import kind_of
from kafscale.operator.manifests.etcd import bootstrap_config, services, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from kafscale.operator.manifests.etcd.restore import Restore
from unit.operator.manifests.clusters import PLATFORM, TRY_OUT, cluster
from unit.operator.manifests.pod_security import violations

DEFAULT = {"brokers": {}, "s3": {"bucket": "records", "credentialsSecretRef": "keys"}}
TINY = {
    "brokers": {},
    "s3": {"bucket": "records", "credentialSource": "workload-identity", "region": "eu-west-1"},
    "etcd": {
        "managed": {
            "replicas": 1,
            "image": "example/etcd:9",
            "storage": "1Gi",
            "storageClassName": "fast",
            "quota": "512Mi",
            "compactionRetention": "1h",
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "2", "memory": "3Gi"},
            },
        },
        "snapshots": {"bucket": "backups", "endpoint": "https://s3.example.com", "prefix": "there"},
    },
    "networkPolicy": {"enabled": True, "monitoringNamespaceLabels": {}},
}
RESTORE = Restore("there/a.b/20260131T120000Z-48151.db", "e-0=https://e-0:2380")


def etcd_manifests(spec, *, replicas=3, restore=None, bootstrap=None):
    resource = cluster(spec, "shop")
    config_map = [
        bootstrap_config.config_map(resource, bootstrap or BootstrapConfig(BootstrapMode.FORMED)),
        services.headless(resource),
        services.client(resource),
        services.pod_disruption_budget(resource),
        services.policy(resource, PLATFORM),
        stateful_set.stateful_set(
            resource, PLATFORM, replicas=replicas, trust_checksum="t", restore=restore
        ),
    ]
    return [each for each in config_map if each is not None]


def template(spec, *, trust_checksum="t", restore=None, platform=PLATFORM):
    return stateful_set.template(
        cluster(spec, "shop"), platform, trust_checksum=trust_checksum, restore=restore
    )


def test_etcd_manifests_match_the_golden_file(golden):
    members = stateful_set.initial_cluster(cluster(DEFAULT, "shop"), PLATFORM, range(3))
    golden(
        "etcd", etcd_manifests(DEFAULT, bootstrap=BootstrapConfig(BootstrapMode.FORMING, members))
    )


def test_restored_etcd_manifests_match_the_golden_file(golden):
    bootstrap = BootstrapConfig(BootstrapMode.FORMING, RESTORE.members, RESTORE.snapshot)
    golden("etcd_restored", etcd_manifests(TINY, replicas=1, restore=RESTORE, bootstrap=bootstrap))


@pytest.mark.parametrize("spec", [DEFAULT, TINY])
@pytest.mark.parametrize("restore", [None, RESTORE])
def test_pods_pass_the_restricted_standard(spec, restore):
    assert violations(template(spec, restore=restore)) == []


def test_manifests_are_owned_by_the_cluster_and_unique():
    manifests = etcd_manifests(DEFAULT)
    for manifest in manifests:
        assert kind_of(manifest)
        [owner] = manifest["metadata"]["ownerReferences"]
        assert owner["uid"] == "d2c1"
    assert len({(each["kind"], each["metadata"]["name"]) for each in manifests}) == len(manifests)


def test_network_policy_can_be_disabled():
    assert services.policy(cluster(TRY_OUT), PLATFORM) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("image", "example/etcd:9"),
        ("quota", "1Gi"),
        ("compactionRetention", "10m"),
        (
            "resources",
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "3Gi"}},
        ),
    ],
)
def test_fields_of_members_change_the_checksum(field, value):
    other = template({**DEFAULT, "etcd": {"managed": {field: value}}})
    assert stateful_set.checksum(other) != stateful_set.checksum(template(DEFAULT))


@pytest.mark.parametrize(("field", "value"), [("storage", "20Gi"), ("storageClassName", "fast")])
def test_volume_fields_do_not_change_the_checksum(field, value):
    other = {**DEFAULT, "etcd": {"managed": {field: value}}}
    [claim] = etcd_manifests(other)[-1]["spec"]["volumeClaimTemplates"]
    assert value in str(claim["spec"])
    assert stateful_set.checksum(template(other)) == stateful_set.checksum(template(DEFAULT))


def test_checksum_changes_with_the_cas_and_after_a_restore():
    now = stateful_set.checksum(template(DEFAULT))
    assert stateful_set.checksum(template(DEFAULT, trust_checksum="other")) != now
    assert stateful_set.checksum(template(DEFAULT, restore=RESTORE)) != now
    assert stateful_set.checksum({"metadata": {}}) == ""


def test_image_defaults_to_the_platforms():
    [container] = template(DEFAULT)["spec"]["containers"]
    assert container["image"] == PLATFORM.etcd_image
    [other] = template(TINY)["spec"]["containers"]
    assert other["image"] == "example/etcd:9"


def test_restore_container_names_the_snapshot_by_key():
    [container] = template(TINY, restore=RESTORE)["spec"]["initContainers"]
    assert f"--snapshot={RESTORE.snapshot}" in container["command"]
    assert "--if-empty" in container["command"]
    assert container["image"] == PLATFORM.operator_image
    assert container["envFrom"] == []
    [with_keys] = template(DEFAULT, restore=RESTORE)["spec"]["initContainers"]
    assert with_keys["envFrom"] == [{"secretRef": {"name": "keys"}}]


@pytest.mark.parametrize(
    "bootstrap",
    [
        BootstrapConfig(BootstrapMode.FORMING, "a=https://a:2380", "key"),
        BootstrapConfig(BootstrapMode.FORMED, "", "key"),
        BootstrapConfig(BootstrapMode.JOINING, "a=https://a:2380"),
    ],
)
def test_bootstrap_config_round_trips(bootstrap):
    resource = cluster(DEFAULT, "shop")
    assert bootstrap_config.read(bootstrap_config.config_map(resource, bootstrap)) == bootstrap


def test_invalid_bootstrap_config_is_none():
    for config_map in (None, {}, {"data": {}}, {"data": {"mode": "ajar"}}):
        assert bootstrap_config.read(config_map) is None


def test_formed_config_contains_no_member():
    resource = cluster(DEFAULT, "shop")
    data = bootstrap_config.config_map(
        resource, BootstrapConfig(BootstrapMode.FORMED, "shop-etcd-0=x")
    )["data"]
    assert data["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    assert "shop-etcd" not in data["ETCD_INITIAL_CLUSTER"]


def test_cluster_domain_is_in_all_addresses():
    other = template(DEFAULT, platform=replace(PLATFORM, cluster_domain="example.org"))
    assert "cluster.local" not in str(other)
    assert "example.org" in str(other)
