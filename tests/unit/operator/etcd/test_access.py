"""Tests of which etcd a cluster uses."""

import pytest
from msgspec.structs import replace

from kafscale.operator.etcd.access import current_user, kube_etcd_endpoints, leftovers, resolve
from kafscale.operator.etcd.observe import Objects
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import read_cluster
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform(cluster_domain="example.org")

SPEC = {"brokers": {}, "s3": {"bucket": "records"}}


def resolve_with(etcd, **access):
    desired = cluster({"brokers": {}, "s3": {"bucket": "records"}, "etcd": etcd}, "shop")
    return resolve(desired, PLATFORM, **access)


ALL_SOURCES = {
    "settings_endpoints": ["settings:2379"],
    "kube_etcd_endpoints": ["https://10.0.0.1:2379"],
}


def test_endpoints_in_the_resource_come_first():
    desired = {"endpoints": ["a:2379"], "useKubeEtcd": True, "tlsSecretRef": "t"}
    assert resolve_with({**desired, "credentialsSecretRef": "c"}, **ALL_SOURCES) == EtcdAccess(
        endpoints=("a:2379",),
        tls_secret="t",  # noqa: S106 - its name.
        credentials_secret="c",  # noqa: S106 - its name.
    )


def test_kube_etcd_comes_second():
    access = resolve_with({"useKubeEtcd": True, "tlsSecretRef": "t"}, **ALL_SOURCES)
    assert access == EtcdAccess(
        endpoints=("https://10.0.0.1:2379",),
        tls_secret="t",  # noqa: S106 - its name.
    )


def test_invisible_kube_etcd_is_not_replaced():
    assert resolve_with({"useKubeEtcd": True}, settings_endpoints=["settings:2379"]) is None


def test_operator_settings_come_third():
    assert resolve_with({}, **ALL_SOURCES) == EtcdAccess(endpoints=("settings:2379",))


def test_managed_etcd_comes_last():
    access = resolve_with({})
    assert access is not None
    assert access.is_managed
    assert access.tls_secret == "shop-etcd-client-tls"  # noqa: S105 - its name.
    assert access.endpoints == tuple(
        f"https://shop-etcd-{index}.shop-etcd-headless.kafscale.svc.example.org:2379"
        for index in range(3)
    )
    only = resolve_with({"managed": {"replicas": 1}})
    assert only is not None
    assert len(only.endpoints) == 1


def test_kube_etcd_endpoints_are_the_addresses_of_its_pods():
    pods = [{"status": {"podIP": "10.0.0.2"}}, {"status": {"podIP": "fd00::1"}}, {"status": {}}, {}]
    assert kube_etcd_endpoints(pods) == ["https://10.0.0.2:2379", "https://[fd00::1]:2379"]


def test_managed_etcd_stays_once_it_exists():
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    desired = replace(cluster(spec, "shop"), status={"etcd": {"managed": True}})
    access = resolve(desired, PLATFORM, **ALL_SOURCES)
    assert access is not None
    assert access.is_managed
    named = cluster({**spec, "etcd": {"endpoints": ["a:2379"]}}, "shop")
    moved = resolve(replace(named, status=desired.status), PLATFORM)
    assert moved == EtcdAccess(endpoints=("a:2379",))


def body(name, created_at="2026-01-01T00:00:00Z", *, spec=SPEC):
    metadata = {"name": name, "namespace": "shops", "uid": f"uid-of-{name}"}
    return {"metadata": metadata | {"creationTimestamp": created_at}, "spec": spec}


def user_of(
    ours,
    *others,
    endpoints=("a:2379", "b:2379"),
    other_endpoints=("b:2379", "c:2379"),
    is_managed=False,
):
    """The user of one of our endpoints, if all other clusters use `other_endpoints`."""
    access = EtcdAccess(endpoints=other_endpoints, is_managed=is_managed)
    return current_user(read_cluster(ours), endpoints, [ours, *others], lambda _: access)


LATER = "2026-01-02T00:00:00Z"


def test_oldest_cluster_uses_the_etcd():
    first, second = body("z-first"), body("a-second", LATER)
    assert user_of(second, first) == "shops/z-first"
    assert user_of(first, second) == ""
    assert user_of(first) == ""


def test_names_break_ties_of_age():
    assert user_of(body("a"), body("b")) == ""
    assert user_of(body("b"), body("a")) == "shops/a"


def test_clusters_with_another_etcd_do_not_conflict():
    assert user_of(body("b"), body("a"), other_endpoints=("c:2379",)) == ""
    assert user_of(body("b"), body("a"), is_managed=True) == ""


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://a-etcd-0.a-etcd-headless.shops.svc.example.org:2379",
        "https://A-etcd.shops.svc:2379",
        "a-etcd.shops",
        "a-etcd.shops.svc.example.org.",
        "https://10.0.0.7:2379",
        "[fd00:0::7]:2379",
        "10.96.0.9:2379",
    ],
)
def test_managed_etcd_is_only_for_its_cluster(endpoint):
    metadata = {"namespace": "shops", "labels": {"app": "kafscale-etcd", "cluster": "a"}}
    pod = {"status": {"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]}}
    service = {"spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}}
    objects = [{"metadata": metadata, **each} for each in (pod, service)]
    access = EtcdAccess(endpoints=("https://a-etcd-0.a-etcd-headless.shops:2379",), is_managed=True)
    for other in (body("a"), body("a", LATER)):
        user = current_user(
            read_cluster(body("b")), [endpoint], [body("b"), other], lambda _: access, objects
        )
        assert user == "shops/a"
    own = current_user(
        read_cluster(body("a")), ["10.0.0.7:2379"], [body("a")], lambda _: access, objects
    )
    assert own == ""


def test_clusters_with_an_invalid_spec_are_ignored():
    assert user_of(body("b"), body("a", spec={"brokers": 7})) == ""


OURS, FORMER = "uid-of-ours", "uid-of-the-former"
SET_UID = "uid-of-the-set"


def manifest(kind, name, owner="", uid="u"):
    references = [{"uid": owner, "controller": True}] if owner else []
    return {"kind": kind, "metadata": {"name": name, "uid": uid, "ownerReferences": references}}


def objects(**observed):
    everything = {
        "bootstrap": manifest("ConfigMap", "e-bootstrap", OURS),
        "stateful_set": manifest("StatefulSet", "e", OURS, SET_UID),
        "pods": {"e-0": manifest("", "e-0", SET_UID)},
        "claims": {"data-e-0": manifest("PersistentVolumeClaim", "data-e-0")},
        "secrets": {"e-tls": manifest("Secret", "e-tls", OURS)},
    }
    return Objects(**(everything | observed))


def test_own_and_orphaned_objects_are_no_leftovers():
    assert leftovers(objects(), OURS) == []
    orphans = objects(
        bootstrap=manifest("ConfigMap", "e-bootstrap"),
        stateful_set=manifest("StatefulSet", "e"),
        pods={"e-0": manifest("", "e-0")},
        secrets={"e-tls": manifest("Secret", "e-tls")},
    )
    assert leftovers(orphans, OURS) == []
    assert leftovers(objects(bootstrap=None, stateful_set=None, pods={}, secrets={}), OURS) == []


@pytest.mark.parametrize(
    ("observed", "former_objects"),
    [
        ({"bootstrap": manifest("ConfigMap", "e-bootstrap", FORMER)}, "ConfigMap e-bootstrap"),
        ({"stateful_set": manifest("StatefulSet", "e", FORMER, SET_UID)}, "StatefulSet e"),
        ({"secrets": {"e-tls": manifest("Secret", "e-tls", FORMER)}}, "Secret e-tls"),
        ({"pods": {"e-0": manifest("", "e-0", "uid-of-the-former-set")}}, "Pod e-0"),
        ({"stateful_set": None}, "Pod e-0"),
    ],
)
def test_objects_of_a_former_cluster_are_leftovers(observed, former_objects):
    assert leftovers(objects(**observed), OURS) == [former_objects]
