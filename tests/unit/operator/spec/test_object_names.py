"""Names of other objects in specs: they may not lead to another namespace."""

import msgspec
import pytest

from kafscale.operator.spec.cluster import ClusterSpec
from kafscale.operator.spec.topic import TopicSpec

ELSEWHERE = "../../victim/secrets/production-etcd-client-tls"
CLUSTER = {"brokers": {}, "s3": {"bucket": "records"}}


@pytest.mark.parametrize("name", [ELSEWHERE, "a/b", "..", "a%2fb", "a b", "A", "-a", "x" * 254])
@pytest.mark.parametrize(
    "path",
    [
        "s3.credentialsSecretRef",
        "s3.credentialsSecret",
        "etcd.tlsSecretRef",
        "etcd.credentialsSecretRef",
        "etcd.snapshots.credentialsSecretRef",
        "brokers.envSecrets[]",
        "brokers.secrets[].name",
        "brokers.priorityClassName",
    ],
)
def test_names_of_a_cluster(path, name):
    def spec(value):
        *parents, last = path.split(".")
        changed = {part: dict(CLUSTER.get(part, {})) for part in CLUSTER}
        target = changed
        for parent in parents:
            if parent.endswith("[]"):
                value = [{"mountPath": "/secrets", last: value}]
                last = parent.removesuffix("[]")
            else:
                target = target.setdefault(parent, {})
        target[last.removesuffix("[]")] = [value] if last.endswith("[]") else value
        return changed

    msgspec.convert(spec("a-name.of-1"), ClusterSpec)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(spec(name), ClusterSpec)


@pytest.mark.parametrize("name", [ELSEWHERE, "", "A"])
def test_cluster_of_a_topic(name):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"clusterRef": name, "partitions": 1}, TopicSpec)
