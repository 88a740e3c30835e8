"""Tests of which etcd a cluster uses."""

from msgspec.structs import replace

from kafscale.operator.etcd.endpoint_resolution import kube_etcd_endpoints, resolve
from kafscale.operator.manifests.names import EtcdAccess, Platform
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform(cluster_domain="example.org")


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
