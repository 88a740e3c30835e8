"""Tests of the brokers' StatefulSet against the specification."""

from itertools import pairwise

import pytest

from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.brokers import stateful_set as brokers_stateful_set
from unit.operator.manifests.clusters import CASES, PLATFORM, case, pod_template


def built(name):
    return brokers_stateful_set.stateful_set(
        case(name)[0], PLATFORM, case(name)[1], secrets_checksum="0123"
    )


@pytest.mark.parametrize("name", CASES)
def test_replicas_are_not_set(name):
    assert "replicas" not in built(name)["spec"]


def test_pods_start_in_parallel_and_are_replaced_on_delete():
    spec = built("production")["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["serviceName"] == "production-broker-headless"


def test_selector_matches_the_pods():
    stateful_set = built("production")
    assert stateful_set["metadata"]["name"] == "production-broker"
    selected = stateful_set["spec"]["selector"]["matchLabels"]
    assert selected == {"app": "kafscale-broker", "cluster": "production"}
    assert selected.items() <= stateful_set["spec"]["template"]["metadata"]["labels"].items()


def test_probes_match_the_specification():
    [container] = pod_template(*case("production"))["spec"]["containers"]
    assert container["name"] == "broker"
    readiness, liveness = container["readinessProbe"], container["livenessProbe"]
    assert readiness == {"tcpSocket": {"port": 9092}, "initialDelaySeconds": 5, "periodSeconds": 10}
    assert liveness["httpGet"] == {"path": "/health", "port": 9093}
    assert (liveness["initialDelaySeconds"], liveness["periodSeconds"]) == (15, 20)
    startup = container["startupProbe"]
    assert startup["httpGet"] == liveness["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 300


def test_resources_are_those_of_the_spec():
    [container] = pod_template(*case("production"))["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi"},
        "limits": {"cpu": "4", "memory": "8Gi"},
    }


def test_image_defaults_to_the_platforms():
    images = [
        pod_template(*case(name))["spec"]["containers"][0]["image"]
        for name in ("production", "everything")
    ]
    assert images == ["kafscale-broker:1.2.3", "example/broker:9"]


def test_mounts_have_volumes_and_do_not_overlap():
    pod = pod_template(*case("everything"))["spec"]
    [container] = pod["containers"]
    mounts = container["volumeMounts"]
    assert {each["name"] for each in mounts} == {each["name"] for each in pod["volumes"]}
    directories = sorted(f"{each['mountPath']}/" for each in mounts)
    for directory, next_directory in pairwise(directories):
        assert not next_directory.startswith(directory), (
            "nothing can be mounted below a ConfigMap or a Secret"
        )


def test_secrets_are_those_of_the_spec():
    cluster, etcd = case("everything")
    pod = pod_template(cluster, etcd)["spec"]
    mounted = {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    assert mounted == {"everything-control-tls", "etcd-tls", "listener-tls"}
    read = [each["secretRef"]["name"] for each in pod["containers"][0]["envFrom"]]
    assert read == config_map.env_secrets(cluster, etcd) == ["keys", "etcd-user", "users"]


def test_user_annotations_do_not_override_checksums():
    cluster, etcd = case("everything")
    cluster.spec.brokers.pod_annotations.update({names.SECRETS_CHECKSUM: "mine"})
    annotations = pod_template(cluster, etcd)["metadata"]["annotations"]
    assert annotations["team"] == "data"
    assert annotations[names.SECRETS_CHECKSUM] == "0123"


def test_brokers_are_spread_by_preference():
    pod = pod_template(*case("production"))["spec"]
    spread = {each["topologyKey"]: each for each in pod["topologySpreadConstraints"]}
    assert set(spread) == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    assert {each["whenUnsatisfiable"] for each in spread.values()} == {"ScheduleAnyway"}
    assert (
        "requiredDuringSchedulingIgnoredDuringExecution" not in pod["affinity"]["podAntiAffinity"]
    )
