"""What is wrong with the settings of a cluster's brokers, found before a broker finds it.

The laws: the loader of `kafscale.config` decides what a setting may be. Beyond that, a setting is
refused that would part brokers from the Services, probes and buckets that the operator keeps for
them, or that would have a secret lie in a ConfigMap.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import msgspec

from kafscale.config import SETTINGS, Config, load
from kafscale.errors import ConfigError
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import listeners
from kafscale.operator.manifests.settings_tree import paths
from kafscale.operator.spec.cluster import Cluster

STARTUP_SECONDS_MAX: Final = 300
"""How long a broker may take to start before the kubelet starts it anew."""

_SECRET: Final = {setting.path: setting.variables[0] for setting in SETTINGS if setting.secret}
_OWN: Final = "each broker has its own, which comes from its pod"
_PORT: Final = "Services and probes count on the default"
_BUCKET: Final = "the operator and the brokers have to mean the same bucket; say it in spec.s3"
_TASK: Final = "the operator does this; say it in spec.s3"
_ETCD: Final = "the operator and the brokers have to mean the same etcd; say it in spec.etcd"
_RESERVED: Final = {
    "broker.id": _OWN,
    "broker.rack": _OWN,
    "broker.advertisedHost": _OWN,
    "broker.port": _PORT,
    "broker.metricsPort": _PORT,
    "s3.bucket": _BUCKET,
    "s3.region": _BUCKET,
    "s3.endpoint": _BUCKET,
    "s3.namespace": _BUCKET,
    "s3.createBucket": _TASK,
    "s3.manageLifecycle": _TASK,
    "etcd.endpoints": _ETCD,
    "etcd.tls.enabled": _ETCD,
    "etcd.tls.caFile": _ETCD,
    "etcd.tls.certFile": _ETCD,
    "etcd.tls.keyFile": _ETCD,
}


class _Document(msgspec.Struct, frozen=True):
    """A file that is not on a disk: as much of one as the loader asks for."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name

    def read_text(self, encoding: str) -> str:
        assert encoding == "utf-8"
        return self.text


def problems(cluster: Cluster, name: str, text: str) -> list[str]:
    """Sentences about a file with this name and text, and about what it was made from."""
    found = [*_of_fields(cluster), *_of_written(cluster)]
    try:
        config = load({}, cast("Path", _Document(name, text)))
    except ConfigError as error:
        return [*found, *str(error).splitlines()]
    return [*found, *_of_effect(cluster, config)]


def _of_fields(cluster: Cluster) -> Iterator[str]:
    s3 = cluster.spec.s3
    if s3.secret and s3.credential_source != "env":
        yield (
            f"spec.s3.credentialsSecretRef is set, but spec.s3.credentialSource is "
            f"{s3.credential_source}, which brings keys of its own; remove one of them"
        )


def _of_written(cluster: Cluster) -> Iterator[str]:
    for path in paths(cluster.spec.config.settings):
        place = f"spec.config.settings.{path}"
        if path in _SECRET:
            yield (
                f"{place}: is a secret, which a ConfigMap cannot keep; put {_SECRET[path]} into "
                "a Secret, and name that in spec.brokers.envSecrets"
            )
        elif path in _RESERVED:
            yield f"{place}: {_RESERVED[path]}"


def _of_effect(cluster: Cluster, config: Config) -> Iterator[str]:
    grace = cluster.spec.brokers.termination_grace_period_seconds
    if config.broker.drain_timeout_sec >= grace:
        yield (
            f"broker.drainTimeoutSec is {config.broker.drain_timeout_sec}, but a broker is killed "
            f"after spec.brokers.terminationGracePeriodSeconds, which is {grace}; it has to be less"
        )
    if config.broker.startup_timeout_sec >= STARTUP_SECONDS_MAX:
        yield (
            f"broker.startupTimeoutSec is {config.broker.startup_timeout_sec}, but a broker that "
            f"has not started after {STARTUP_SECONDS_MAX} s is started anew; it has to be less"
        )
    served = listeners.listeners(cluster)
    if served and names.KAFKA_PORT not in served.values():
        yield (
            f"broker.listeners has no port {names.KAFKA_PORT}, by which Kubernetes tells whether a "
            "broker is ready; let one of them have it"
        )
