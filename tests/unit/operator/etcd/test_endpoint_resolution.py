"""Which etcd it is: the first that is named."""

from msgspec.structs import replace

from kafscale.operator.etcd.endpoint_resolution import kube_etcd_endpoints, resolve
from kafscale.operator.manifests.names import EtcdAccess, Platform
from unit.operator.manifests.clusters import cluster

PLATFORM = Platform(cluster_domain="example.org")


def of(etcd, **found):
    wanted = cluster({"brokers": {}, "s3": {"bucket": "records"}, "etcd": etcd}, "shop")
    return resolve(wanted, PLATFORM, **found)


EVERYWHERE = {
    "settings_endpoints": ["settings:2379"],
    "kube_etcd_endpoints": ["https://10.0.0.1:2379"],
}


def test_the_resource_has_the_first_word():
    wanted = {"endpoints": ["a:2379"], "useKubeEtcd": True, "tlsSecretRef": "t"}
    assert of({**wanted, "credentialsSecretRef": "c"}, **EVERYWHERE) == EtcdAccess(
        endpoints=("a:2379",),
        tls_secret="t",  # noqa: S106 - its name.
        credentials_secret="c",  # noqa: S106 - its name.
    )


def test_then_comes_the_etcd_of_kubernetes_if_it_is_asked_for():
    found = of({"useKubeEtcd": True, "tlsSecretRef": "t"}, **EVERYWHERE)
    assert found == EtcdAccess(
        endpoints=("https://10.0.0.1:2379",),
        tls_secret="t",  # noqa: S106 - its name.
    )


def test_where_that_is_not_to_be_seen_no_other_takes_its_place():
    assert of({"useKubeEtcd": True}, settings_endpoints=["settings:2379"]) is None


def test_then_come_the_settings_of_the_operator():
    assert of({}, **EVERYWHERE) == EtcdAccess(endpoints=("settings:2379",))


def test_at_last_the_operator_runs_one():
    found = of({})
    assert found is not None
    assert found.is_managed
    assert found.tls_secret == "shop-etcd-client-tls"  # noqa: S105 - its name.
    assert found.endpoints == tuple(
        f"https://shop-etcd-{index}.shop-etcd-headless.kafscale.svc.example.org:2379"
        for index in range(3)
    )
    only = of({"managed": {"replicas": 1}})
    assert only is not None
    assert len(only.endpoints) == 1


def test_the_etcd_of_kubernetes_is_where_its_pods_are():
    pods = [{"status": {"podIP": "10.0.0.2"}}, {"status": {"podIP": "fd00::1"}}, {"status": {}}, {}]
    assert kube_etcd_endpoints(pods) == ["https://10.0.0.2:2379", "https://[fd00::1]:2379"]


def test_an_etcd_that_the_operator_runs_already_stays():
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    wanted = replace(cluster(spec, "shop"), status={"etcd": {"managed": True}})
    found = resolve(wanted, PLATFORM, **EVERYWHERE)
    assert found is not None
    assert found.is_managed
    named = cluster({**spec, "etcd": {"endpoints": ["a:2379"]}}, "shop")
    moved = resolve(replace(named, status=wanted.status), PLATFORM)
    assert moved == EtcdAccess(endpoints=("a:2379",))
