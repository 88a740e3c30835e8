"""The StatefulSet of the brokers, where the specification gives numbers and names."""

from itertools import pairwise

import pytest

from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import env
from kafscale.operator.manifests.brokers import stateful_set as brokers_stateful_set
from unit.operator.manifests.clusters import CASES, PLATFORM, case, pod_template


def made(name):
    return brokers_stateful_set.stateful_set(
        case(name)[0], PLATFORM, case(name)[1], secrets_checksum="0123"
    )


@pytest.mark.parametrize("name", CASES)
def test_how_many_brokers_there_are_is_not_said_here(name):
    assert "replicas" not in made(name)["spec"]


def test_pods_start_together_and_are_replaced_by_nobody_else():
    spec = made("production")["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["serviceName"] == "production-broker-headless"


def test_pods_are_told_by_their_labels():
    stateful_set = made("production")
    assert stateful_set["metadata"]["name"] == "production-broker"
    selected = stateful_set["spec"]["selector"]["matchLabels"]
    assert selected == {"app": "kafscale-broker", "cluster": "production"}
    assert selected.items() <= stateful_set["spec"]["template"]["metadata"]["labels"].items()


def test_probes_are_those_of_the_specification():
    [container] = pod_template(*case("production"))["spec"]["containers"]
    assert container["name"] == "broker"
    readiness, liveness = container["readinessProbe"], container["livenessProbe"]
    assert readiness == {"tcpSocket": {"port": 9092}, "initialDelaySeconds": 5, "periodSeconds": 10}
    assert liveness["httpGet"] == {"path": "/health", "port": 9093}
    assert (liveness["initialDelaySeconds"], liveness["periodSeconds"]) == (15, 20)
    startup = container["startupProbe"]
    assert startup["httpGet"] == liveness["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 300


def test_resources_are_those_that_were_asked_for():
    [container] = pod_template(*case("production"))["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi"},
        "limits": {"cpu": "4", "memory": "8Gi"},
    }


def test_the_image_is_the_one_of_the_operator_unless_it_is_said():
    images = [
        pod_template(*case(name))["spec"]["containers"][0]["image"]
        for name in ("production", "everything")
    ]
    assert images == ["kafscale-broker:1.2.3", "example/broker:9"]


def test_every_mount_has_its_volume_and_no_two_meet():
    pod = pod_template(*case("everything"))["spec"]
    [container] = pod["containers"]
    mounts = container["volumeMounts"]
    assert {each["name"] for each in mounts} == {each["name"] for each in pod["volumes"]}
    directories = sorted(f"{each['mountPath']}/" for each in mounts)
    for one, next_one in pairwise(directories):
        assert not next_one.startswith(one), "nothing can be mounted below a ConfigMap or a Secret"


def test_secrets_that_are_mounted_or_read_are_the_ones_that_were_named():
    cluster, etcd = case("everything")
    pod = pod_template(cluster, etcd)["spec"]
    mounted = {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    assert mounted == {"etcd-tls", "listener-tls"}
    read = [each["secretRef"]["name"] for each in pod["containers"][0]["envFrom"]]
    assert read == env.secrets(cluster, etcd) == ["keys", "etcd-user", "users"]


def test_annotations_of_users_do_not_hide_changes():
    cluster, etcd = case("everything")
    cluster.spec.brokers.pod_annotations.update({names.SECRETS_CHECKSUM: "mine"})
    annotations = pod_template(cluster, etcd)["metadata"]["annotations"]
    assert annotations["team"] == "data"
    assert annotations[names.SECRETS_CHECKSUM] == "0123"


def test_brokers_keep_apart_where_they_can():
    pod = pod_template(*case("production"))["spec"]
    spread = {each["topologyKey"]: each for each in pod["topologySpreadConstraints"]}
    assert set(spread) == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    assert {each["whenUnsatisfiable"] for each in spread.values()} == {"ScheduleAnyway"}
    assert (
        "requiredDuringSchedulingIgnoredDuringExecution" not in pod["affinity"]["podAntiAffinity"]
    )
