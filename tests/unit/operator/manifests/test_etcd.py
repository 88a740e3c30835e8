"""The manifests of a managed etcd: golden files, pod security, and what each field changes."""

import pytest
from msgspec.structs import replace

from kafscale.operator.kube.kinds import kind_of
from kafscale.operator.manifests.etcd import bootstrap_config, pods, services, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
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


def made(spec, *, replicas=3, restore=None, admission=None):
    wanted = cluster(spec, "shop")
    found = [
        bootstrap_config.config_map(wanted, admission or Admission(Door.CLOSED)),
        services.headless(wanted),
        services.client(wanted),
        services.budget(wanted),
        services.policy(wanted, PLATFORM),
        stateful_set.stateful_set(
            wanted, PLATFORM, replicas=replicas, trust_checksum="t", restore=restore
        ),
    ]
    return [each for each in found if each is not None]


def template(spec, *, trust="t", restore=None, platform=PLATFORM):
    return pods.template(cluster(spec, "shop"), platform, trust_checksum=trust, restore=restore)


def test_an_etcd_is_made_of_these_manifests(golden):
    members = stateful_set.initial_cluster(cluster(DEFAULT, "shop"), PLATFORM, range(3))
    golden("etcd", made(DEFAULT, admission=Admission(Door.FORMING, members)))


def test_an_etcd_that_begins_with_a_snapshot_is_made_of_these(golden):
    admission = Admission(Door.FORMING, RESTORE.members, RESTORE.snapshot)
    golden("etcd_restored", made(TINY, replicas=1, restore=RESTORE, admission=admission))


@pytest.mark.parametrize("spec", [DEFAULT, TINY])
@pytest.mark.parametrize("restore", [None, RESTORE])
def test_pods_pass_the_restricted_standard(spec, restore):
    assert violations(template(spec, restore=restore)) == []


def test_every_manifest_goes_with_its_cluster_and_is_an_object_of_its_own():
    manifests = made(DEFAULT)
    for manifest in manifests:
        assert kind_of(manifest)
        [owner] = manifest["metadata"]["ownerReferences"]
        assert owner["uid"] == "d2c1"
    assert len({(each["kind"], each["metadata"]["name"]) for each in manifests}) == len(manifests)


def test_without_network_policies_there_are_none():
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
def test_what_a_member_depends_on_changes_the_checksum(field, value):
    other = template({**DEFAULT, "etcd": {"managed": {field: value}}})
    assert pods.checksum(other) != pods.checksum(template(DEFAULT))


@pytest.mark.parametrize(("field", "value"), [("storage", "20Gi"), ("storageClassName", "fast")])
def test_volumes_are_as_the_spec_says_and_no_reason_to_restart(field, value):
    other = {**DEFAULT, "etcd": {"managed": {field: value}}}
    [claim] = made(other)[-1]["spec"]["volumeClaimTemplates"]
    assert value in str(claim["spec"])
    assert pods.checksum(template(other)) == pods.checksum(template(DEFAULT))


def test_members_are_restarted_for_other_authorities_and_when_none_may_restore_any_more():
    now = pods.checksum(template(DEFAULT))
    assert pods.checksum(template(DEFAULT, trust="other")) != now
    assert pods.checksum(template(DEFAULT, restore=RESTORE)) != now
    assert pods.checksum({"metadata": {}}) == ""


def test_the_image_is_that_of_the_platform_unless_another_is_named():
    [container] = template(DEFAULT)["spec"]["containers"]
    assert container["image"] == PLATFORM.etcd_image
    [other] = template(TINY)["spec"]["containers"]
    assert other["image"] == "example/etcd:9"


def test_the_container_that_restores_never_names_the_newest_snapshot():
    [container] = template(TINY, restore=RESTORE)["spec"]["initContainers"]
    assert f"--snapshot={RESTORE.snapshot}" in container["command"]
    assert "--if-empty" in container["command"]
    assert container["image"] == PLATFORM.operator_image
    assert container["envFrom"] == []
    [keyed] = template(DEFAULT, restore=RESTORE)["spec"]["initContainers"]
    assert keyed["envFrom"] == [{"secretRef": {"name": "keys"}}]


@pytest.mark.parametrize(
    "admission",
    [
        Admission(Door.FORMING, "a=https://a:2380", "key"),
        Admission(Door.CLOSED, "", "key"),
        Admission(Door.OPEN, "a=https://a:2380"),
    ],
)
def test_who_may_begin_is_read_as_it_was_written(admission):
    wanted = cluster(DEFAULT, "shop")
    assert bootstrap_config.read(bootstrap_config.config_map(wanted, admission)) == admission


def test_who_may_begin_is_not_known_from_anything_else():
    for found in (None, {}, {"data": {}}, {"data": {"door": "ajar"}}):
        assert bootstrap_config.read(found) is None


def test_behind_a_closed_door_no_member_finds_its_name():
    wanted = cluster(DEFAULT, "shop")
    data = bootstrap_config.config_map(wanted, Admission(Door.CLOSED, "shop-etcd-0=x"))["data"]
    assert data["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    assert "shop-etcd" not in data["ETCD_INITIAL_CLUSTER"]


def test_another_domain_is_in_all_addresses():
    other = template(DEFAULT, platform=replace(PLATFORM, cluster_domain="example.org"))
    assert "cluster.local" not in str(other)
    assert "example.org" in str(other)
