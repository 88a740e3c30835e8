"""Tests of the simulated nodes: pods behave as on any other node."""

import asyncio
import socket
import urllib.request
from pathlib import Path

import pytest

from kafscale.metadata.store.etcd.member import open_channel
from kafscale.operator.kube.api import (
    CONFIG_MAPS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)
from services.kubernetes.kubelet.cluster_cache import VOLUMES
from services.waiting import wait_until

JOBS = Kind("batch/v1", "Job", "jobs")
SERVER = "exec python3 -m http.server 8080 --directory /site"
"""Serves files, and is ended by SIGTERM at once."""
NAMED_SERVER = "mkdir /site && hostname > /site/name && exec python3 -m http.server 8080 -d /site"
RUN_FOR_EVER = "trap 'echo asked to end; exit 0' TERM; echo started; while :; do sleep 0.1; done"
IS_THERE = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 5}
ASK_API = """
import json, os, ssl, urllib.error, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount"
tls = ssl.create_default_context(cafile=f"{account}/ca.crt")
namespace = open(f"{account}/namespace").read()
host = "https://" + os.environ["KUBERNETES_SERVICE_HOST"]
for kind in ("configmaps", "secrets"):
    url = f"{host}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/{namespace}/{kind}"
    bearer = {"Authorization": "Bearer " + open(f"{account}/token").read()}
    try:
        request = urllib.request.Request(url, headers=bearer)
        print(kind, urllib.request.urlopen(request, context=tls).status)
    except urllib.error.HTTPError as error:
        print(kind, error.code)
"""


def shell(script, **more):
    return {"name": "main", "image": "test-shell", "command": ["sh", "-c", script], **more}


def pod(name, container, **spec):
    metadata = {"name": name}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def stateful_set(name, container, *, replicas, **spec):
    labels = {"app": name}
    template = {"containers": [container], "terminationGracePeriodSeconds": 5}
    spec = {
        "serviceName": name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": spec,
    }


def service(name, app, **spec):
    spec = {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


def fetch(url):
    """The content of a URL; None without a response."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - of a pod.
            return response.read().decode()
    except OSError:
        return None


def waiting_reason(pod_manifest):
    [container] = pod_manifest["status"].get("containerStatuses", [{"state": {}}])
    return container["state"].get("waiting", {}).get("reason")


def test_pod_has_its_files_and_readiness(kube, kubelet, namespace):
    kube.create(config_map("settings", greeting="hello"), namespace)
    kube.create(secret("keys", key="hidden"), namespace)
    container = shell(
        SERVER,
        startupProbe={"exec": {"command": ["test", "-e", "/site/greeting"]}, "periodSeconds": 1},
        readinessProbe=IS_THERE,
        livenessProbe={"tcpSocket": {"port": 8080}},
        volumeMounts=[
            {"name": "settings", "mountPath": "/site"},
            {"name": "keys", "mountPath": "/etc/keys", "readOnly": True},
        ],
    )
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
    ]
    kube.create(pod("web", container, volumes=volumes), namespace)
    kubelet.wait_ready(namespace, "web")

    address = kube.get(PODS, namespace, "web")["status"]["podIP"]
    assert fetch(f"http://{address}:8080/greeting") == "hello"
    command = "stat -Lc %a /etc/keys/key; cat /etc/keys/key"
    assert kubelet.execute(namespace, "web", "sh", "-c", command) == (0, "400\nhidden")

    kube.patch(CONFIG_MAPS, namespace, "settings", {"data": {"greeting": "hi"}})
    wait_until(lambda: fetch(f"http://{address}:8080/greeting") == "hi", "the updated file")


def test_environment_of_a_container(kube, kubelet, namespace):
    kube.create(secret("keys", key="hidden"), namespace)
    kube.create(service("kafscale-broker", "no-pod"), namespace)
    fields = {
        "NAME": "metadata.name",
        "ADDRESS": "status.podIP",
        "NODE": "spec.nodeName",
        "ROLE": "metadata.labels['role']",
    }
    container = shell(
        "env; echo '$(NAME) $$(NAME)'",
        envFrom=[
            {"prefix": "MY_", "secretRef": {"name": "keys"}},
            {"configMapRef": {"name": "nothing", "optional": True}},
        ],
        env=[
            *({"name": k, "valueFrom": {"fieldRef": {"fieldPath": v}}} for k, v in fields.items()),
            {"name": "FULL", "value": "$(NAME).$(MY_key).$(NONE)"},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        resources={"limits": {"cpu": "1500m"}},
    )
    desired = pod("who", container, restartPolicy="Never")
    desired["metadata"]["labels"] = {"role": "test"}
    kube.create(desired, namespace)
    received = kube.wait_for(PODS, namespace, "who", lambda p: p["status"]["phase"] == "Succeeded")

    lines = kubelet.logs(namespace, "who").splitlines()
    output = dict(line.split("=", 1) for line in lines if "=" in line)
    assert lines[-1] == "who $(NAME)"
    assert output["FULL"] == "who.hidden.$(NONE)"
    assert output["ROLE"] == "test"
    assert output["CPU"] == "2"
    assert output["ADDRESS"] == received["status"]["podIP"]
    assert output["NODE"] == received["spec"]["nodeName"]
    # Unless service links are disabled, they are among the variables.
    assert output["KAFSCALE_BROKER_PORT"].startswith("tcp://10.96.")


def test_pods_have_names_and_services_reach_them(kube, kubelet, namespace):
    kube.create(service("web", "web", clusterIP="None"), namespace)
    kube.create(service("front", "web", type="LoadBalancer"), namespace)
    kube.create(
        stateful_set("web", shell(NAMED_SERVER, readinessProbe=IS_THERE), replicas=2), namespace
    )
    hosts = [f"web-{index}.web.{namespace}.svc.cluster.local" for index in range(2)]
    wait_until(lambda: all(resolve(host) for host in hosts), "DNS names of the pods")
    assert [fetch(f"http://{host}:8080/name") for host in hosts] == ["web-0\n", "web-1\n"]
    ask = "import urllib.request as r; print(r.urlopen('http://{}:8080/name').read().decode())"
    for host in ("web-1.web", hosts[1]):
        requested = kubelet.execute(namespace, "web-0", "python3", "-c", ask.format(host))
        assert requested == (0, "web-1\n\n")

    balanced = f"http://front.{namespace}/name"
    wait_until(
        lambda: {fetch(balanced) for _ in range(4)} == {"web-0\n", "web-1\n"},
        "the Service to reach both pods",
    )
    front = kube.wait_for(SERVICES, namespace, "front", lambda s: s["status"]["loadBalancer"])
    ingress = front["status"]["loadBalancer"]["ingress"]
    assert ingress[0]["ip"] == front["spec"]["clusterIP"]


def test_pods_are_spread_over_nodes(kube, kubelet, namespace):
    kube.create(stateful_set("wide", shell(RUN_FOR_EVER), replicas=3), namespace)
    nodes = set()
    for index in range(3):
        kubelet.wait_ready(namespace, f"wide-{index}")
        nodes.add(kube.get(PODS, namespace, f"wide-{index}")["spec"]["nodeName"])
    assert nodes == {"node-a", "node-b", "node-c"}


def test_deleted_pod_is_terminated_and_recreated(kube, kubelet, namespace):
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hooked >> /proc/1/fd/1"]}}}
    kube.create(stateful_set("again", shell(RUN_FOR_EVER, lifecycle=hook), replicas=1), namespace)
    kubelet.wait_ready(namespace, "again-0")
    former = kube.get(PODS, namespace, "again-0")

    kube.delete(PODS, namespace, "again-0")
    kube.wait_for(
        PODS, namespace, "again-0", lambda p: p["metadata"]["uid"] != former["metadata"]["uid"]
    )
    kubelet.wait_ready(namespace, "again-0")
    wait_until(lambda: kubelet.logs(namespace, "again-0").count("started") == 2, "the new content")
    output = kubelet.logs(namespace, "again-0").split("\n")
    assert output[:4] == ["started", "hooked", "asked to end", "started"]


@pytest.mark.usefixtures("kubelet")
def test_job_succeeds_after_a_failure(kube, namespace):
    """The first attempt leaves a file in a volume, which the restarted container finds."""
    container = shell(
        "test -e /mark/tried && exit 0; touch /mark/tried; exit 3",
        volumeMounts=[{"name": "mark", "mountPath": "/mark"}],
    )
    init = shell("echo first > /mark/order", volumeMounts=container["volumeMounts"]) | {
        "name": "init"
    }
    spec = {
        "restartPolicy": "OnFailure",
        "containers": [container],
        "initContainers": [init],
        "volumes": [{"name": "mark", "emptyDir": {}}],
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}}
    kube.create(job | {"spec": {"template": {"spec": spec}}}, namespace)
    kube.wait_for(JOBS, namespace, "once", lambda j: j["status"].get("succeeded"))

    [done] = kube.list(PODS, namespace)
    [container_status] = done["status"]["containerStatuses"]
    assert done["status"]["phase"] == "Succeeded"
    assert container_status["restartCount"] == 1
    assert container_status["lastState"]["terminated"]["exitCode"] == 3
    assert done["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_claim_keeps_data_until_it_is_deleted(kube, kubelet, namespace):
    count = "echo x >> /data/starts; wc -l < /data/starts; " + RUN_FOR_EVER
    container = shell(count, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    template = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kept = stateful_set("store", container, replicas=1, volumeClaimTemplates=[template])
    kube.create(kept, namespace)
    kubelet.wait_ready(namespace, "store-0")
    kube.delete(PODS, namespace, "store-0")
    wait_until(lambda: "2\n" in kubelet.logs(namespace, "store-0"), "a second start with the data")

    claim = kube.get(VOLUME_CLAIMS, namespace, "data-store-0")
    volume = kube.get(VOLUMES, "", claim["spec"]["volumeName"])
    directory = Path(volume["spec"]["hostPath"]["path"])
    assert (directory / "starts").read_text() == "x\nx\n"
    kube.delete(STATEFUL_SETS, namespace, "store")
    kube.delete(VOLUME_CLAIMS, namespace, "data-store-0")
    kube.wait_until_gone(VOLUMES, "", claim["spec"]["volumeName"])
    assert not directory.exists()


def test_read_only_root_with_writable_volumes(kube, kubelet, namespace):
    attempts = "for f in /x /etc/x /tmp/x /usr/x /scratch/x; do touch $f && echo wrote $f; done"
    security = {
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    container = shell(
        f"{attempts}; mount -t tmpfs none /tmp; :",
        securityContext=security,
        volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}],
    )
    volumes = [{"name": "scratch", "emptyDir": {}}]
    kube.create(pod("strict", container, volumes=volumes, restartPolicy="Never"), namespace)
    kube.wait_for(PODS, namespace, "strict", lambda p: p["status"]["phase"] == "Succeeded")

    output = kubelet.logs(namespace, "strict")
    assert [line for line in output.splitlines() if "wrote" in line] == ["wrote /scratch/x"]
    assert "mount: /tmp: must be superuser" in output or "permission denied" in output


def test_pod_waits_for_missing_objects(kube, kubelet, namespace):
    lacking = shell(RUN_FOR_EVER, envFrom=[{"secretRef": {"name": "late"}}])
    kube.create(pod("early", lacking), namespace)
    kube.create(pod("unknown-image", shell("") | {"image": "no-such-image"}), namespace)
    as_root = shell("", securityContext={"runAsNonRoot": True})
    kube.create(pod("root", as_root), namespace)
    for name, reason in (
        ("early", "CreateContainerConfigError"),
        ("unknown-image", "ErrImagePull"),
        ("root", "CreateContainerConfigError"),
    ):
        kube.wait_for(PODS, namespace, name, lambda p, r=reason: waiting_reason(p) == r)
    kube.create(secret("late", key="value"), namespace)
    kubelet.wait_ready(namespace, "early")


def test_service_account_has_the_permissions_of_its_role(kube, kubelet, namespace):
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    named = {"metadata": {"name": "reader"}}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role = {"kind": "Role", "name": "reader", "apiGroup": group}
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount"} | named, namespace)
    kube.create({"apiVersion": f"{group}/v1", "kind": "Role", "rules": [rule]} | named, namespace)
    binding = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", **named}
    kube.create(binding | {"subjects": [subject], "roleRef": role}, namespace)

    container = shell("") | {"command": ["python3", "-c", ASK_API]}
    asker = pod("asker", container, serviceAccountName="reader", restartPolicy="Never")
    kube.create(asker, namespace)
    kube.wait_for(PODS, namespace, "asker", lambda p: p["status"]["phase"] == "Succeeded")
    assert kubelet.logs(namespace, "asker") == "configmaps 200\nsecrets 403\n"


def test_unhealthy_container_is_restarted(kube, kubelet, namespace):
    probe = {"exec": {"command": ["test", "!", "-e", "/ill"]}}
    timing = {"periodSeconds": 1, "failureThreshold": 1}
    kube.create(pod("frail", shell(RUN_FOR_EVER, livenessProbe=probe | timing)), namespace)
    kubelet.wait_ready(namespace, "frail")
    kubelet.execute(namespace, "frail", "touch", "/ill")

    def is_restarted(received):
        [container] = received["status"]["containerStatuses"]
        return container["restartCount"] == 1 and container["ready"]

    kube.wait_for(PODS, namespace, "frail", is_restarted)
    assert kubelet.logs(namespace, "frail") == "started\nasked to end\nstarted\n"


def test_pod_can_be_killed_paused_and_partitioned(kube, kubelet, namespace):
    probe = IS_THERE | {"failureThreshold": 1, "timeoutSeconds": 1}
    kube.create(pod("poor", shell(NAMED_SERVER, readinessProbe=probe)), namespace)
    kubelet.wait_ready(namespace, "poor")

    def container():
        [result] = kube.get(PODS, namespace, "poor")["status"]["containerStatuses"]
        return result

    kubelet.kill(namespace, "poor")
    kubelet.wait_ready(namespace, "poor")
    assert container()["restartCount"] == 1
    assert container()["lastState"]["terminated"]["exitCode"] == 137
    for inject, cure in ((kubelet.pause, kubelet.resume), (kubelet.partition, kubelet.heal)):
        inject(namespace, "poor")
        wait_until(lambda: not container()["ready"], "the failure to be visible")
        cure(namespace, "poor")
        kubelet.wait_ready(namespace, "poor")


def test_names_follow_a_pod_that_has_moved(kube, kubelet, namespace):
    """Go and gRPC have their own resolvers, and connections that outlive an address."""
    store = shell("") | {
        "image": "etcd",
        "command": [
            "etcd",
            "--data-dir=/data",
            "--listen-client-urls=http://0.0.0.0:2379",
            "--advertise-client-urls=http://store-0.store:2379",
        ],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 1},
    }
    kube.create(service("store", "store", clusterIP="None"), namespace)
    kube.create(stateful_set("store", store, replicas=1), namespace)
    kube.create(pod("client", shell(RUN_FOR_EVER)), namespace)
    kubelet.wait_ready(namespace, "client")
    host = f"store-0.store.{namespace}.svc.cluster.local"

    async def opened():
        return open_channel(f"{host}:2379", 1000, None)

    with asyncio.Runner() as runner:
        channel = runner.run(opened())
        for _ in range(2):
            kubelet.wait_ready(namespace, "store-0")
            wait_until(lambda: resolve(host), "the name to resolve")
            in_go = ("etcdctl", "--endpoints=http://store-0.store:2379", "endpoint", "status")
            code, output = kubelet.execute(namespace, "client", *in_go)
            assert code == 0, output
            runner.run(asyncio.wait_for(channel.channel_ready(), 20))
            kube.delete(PODS, namespace, "store-0")
            wait_until(lambda: not resolve(host), "the name to disappear")
        runner.run(channel.close())


def resolve(host):
    try:
        return socket.gethostbyname(host)
    except OSError:
        return None
