"""Applies the objects of a managed etcd in the order in which pods need them.

Invariants: the volume claim templates of an existing StatefulSet stay, because Kubernetes does not
allow to change them. Instead, claims are resized with the spec, never shrunk; whether that works
depends on the storage class. A NetworkPolicy that is no longer desired is deleted.
"""

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd.observe import Objects
from kafscale.operator.kube.api import NETWORK_POLICIES, VOLUME_CLAIMS, Kube
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import service_account
from kafscale.operator.manifests.etcd import bootstrap_config, services
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig
from kafscale.operator.manifests.etcd.restore import restore_for
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.text.units import parse_size

log = get_logger(__name__)


async def apply(
    kube: Kube,
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    *,
    bootstrap: BootstrapConfig,
    replicas: int,
    trust_checksum: str,
) -> None:
    """Apply everything except certificates."""
    restore = restore_for(bootstrap)
    if restore:
        await kube.apply(service_account.service_account(cluster))
    stateful_set = etcd_stateful_set.stateful_set(
        cluster, platform, replicas=replicas, trust_checksum=trust_checksum, restore=restore
    )
    if objects.stateful_set:
        claims = objects.stateful_set["spec"]["volumeClaimTemplates"]
        stateful_set["spec"]["volumeClaimTemplates"] = claims
    policy = services.policy(cluster, platform)
    for manifest in (
        bootstrap_config.config_map(cluster, bootstrap),
        services.headless(cluster),
        services.client(cluster),
        services.pod_disruption_budget(cluster),
        *([policy] if policy else []),
        stateful_set,
    ):
        await kube.apply(manifest)
    if not policy:
        await kube.delete(NETWORK_POLICIES, cluster.namespace, names.etcd(cluster))


async def grow_volumes(kube: Kube, cluster: Cluster, objects: Objects) -> None:
    """Request larger volumes if the spec does."""
    desired = cluster.spec.etcd.managed.storage
    for name, claim in objects.claims.items():
        requested = claim["spec"]["resources"]["requests"]["storage"]
        if parse_size(requested) >= parse_size(desired):
            continue
        patch = {"spec": {"resources": {"requests": {"storage": desired}}}}
        try:
            await kube.merge_patch(VOLUME_CLAIMS, cluster.namespace, name, patch)
        except KubeError as error:
            log.warning("volume not resized", claim=name, desired=desired, reason=str(error))
