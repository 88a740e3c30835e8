"""Checks the settings of a cluster's brokers before a broker starts with them.

Invariants: the loader of `kafscale.config` decides which settings are valid. Beyond that, settings
are rejected that would contradict the Services, probes and buckets that the operator manages, or
would put a secret into a ConfigMap.
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
"""How long a broker may take to start before the kubelet restarts it."""

_SECRET: Final = {setting.path: setting.variables[0] for setting in SETTINGS if setting.secret}
_OWN: Final = "cannot be set: it differs per broker, and comes from its pod"
_PORT: Final = "cannot be set: Services and probes rely on the default"
_BUCKET: Final = "cannot be set: the operator and the brokers share a bucket; set it in spec.s3"
_TASK: Final = "cannot be set: the operator does this; set it in spec.s3"
_CONTROL: Final = "cannot be set: the operator issues certificates for the control plane"
_ETCD: Final = "cannot be set: the operator and the brokers share an etcd; set it in spec.etcd"
_RESERVED: Final = {
    "broker.id": _OWN,
    "broker.rack": _OWN,
    "broker.advertisedHost": _OWN,
    "broker.host": _PORT,
    "broker.port": _PORT,
    "broker.metricsHost": _PORT,
    "broker.metricsPort": _PORT,
    "broker.controlHost": _CONTROL,
    "broker.controlPort": _CONTROL,
    "control.allowedSubjects": _CONTROL,
    "control.operatorAddress": _CONTROL,
    "control.tls.enabled": _CONTROL,
    "control.tls.caFile": _CONTROL,
    "control.tls.certFile": _CONTROL,
    "control.tls.keyFile": _CONTROL,
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
    """An in-memory file with the methods that the loader uses."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name

    def read_text(self, encoding: str) -> str:
        assert encoding == "utf-8"
        return self.text


def problems(cluster: Cluster, name: str, text: str) -> list[str]:
    """The problems of a file with this name and text, and of the spec it was built from."""
    all_problems = [*_field_problems(cluster), *_settings_problems(cluster)]
    try:
        config = load({}, cast("Path", _Document(name, text)))
    except ConfigError as error:
        return [*all_problems, *str(error).splitlines()]
    return [*all_problems, *_effective_problems(cluster, config)]


def _field_problems(cluster: Cluster) -> Iterator[str]:
    s3 = cluster.spec.s3
    if s3.secret and s3.credential_source != "env":
        yield (
            f"spec.s3.credentialsSecretRef is set, but spec.s3.credentialSource is "
            f"{s3.credential_source}, which needs no keys; remove one of them"
        )


def _settings_problems(cluster: Cluster) -> Iterator[str]:
    for path in paths(cluster.spec.config.settings):
        field_path = f"spec.config.settings.{path}"
        if path in _SECRET:
            yield (
                f"{field_path}: is a secret, which must not be in a ConfigMap; put {_SECRET[path]}"
                " into a Secret, and list that in spec.brokers.envSecrets"
            )
        elif path in _RESERVED:
            yield f"{field_path}: {_RESERVED[path]}"


def _effective_problems(cluster: Cluster, config: Config) -> Iterator[str]:
    grace = cluster.spec.brokers.termination_grace_period_seconds
    if config.broker.drain_timeout_sec >= grace:
        yield (
            f"broker.drainTimeoutSec is {config.broker.drain_timeout_sec}, but must be less than "
            f"spec.brokers.terminationGracePeriodSeconds, {grace}, after which a broker is killed"
        )
    if config.broker.startup_timeout_sec >= STARTUP_SECONDS_MAX:
        yield (
            f"broker.startupTimeoutSec is {config.broker.startup_timeout_sec}, but must be less "
            f"than {STARTUP_SECONDS_MAX}: the kubelet restarts a broker that takes longer"
        )
    served = listeners.listeners(cluster)
    if served and names.KAFKA_PORT not in served.values():
        yield (
            f"broker.listeners has no port {names.KAFKA_PORT}, which the readiness probe uses; "
            "give it to one of the listeners"
        )
