"""The objects of a managed etcd, applied in the order in which pods need them.

The laws: the claims of a set that exists stay as they are, because Kubernetes lets nobody change
them; volumes are asked to grow with the spec instead, never to shrink, and whether they do is up to
their class. A policy that is not wanted any more is deleted.
"""

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd.observe import Objects
from kafscale.operator.kube.api import Kube
from kafscale.operator.kube.kinds import NETWORK_POLICIES, VOLUME_CLAIMS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import service_account
from kafscale.operator.manifests.etcd import bootstrap_config, services
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission
from kafscale.operator.manifests.etcd.restore import restore_of
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
    admission: Admission,
    replicas: int,
    trust_checksum: str,
) -> None:
    """Make Kubernetes have everything but the certificates."""
    restore = restore_of(admission)
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
        bootstrap_config.config_map(cluster, admission),
        services.headless(cluster),
        services.client(cluster),
        services.budget(cluster),
        *([policy] if policy else []),
        stateful_set,
    ):
        await kube.apply(manifest)
    if not policy:
        await kube.delete(NETWORK_POLICIES, cluster.namespace, names.etcd(cluster))


async def grow_volumes(kube: Kube, cluster: Cluster, objects: Objects) -> None:
    """Ask for larger volumes where the spec does."""
    wanted = cluster.spec.etcd.managed.storage
    for name, claim in objects.claims.items():
        asked = claim["spec"]["resources"]["requests"]["storage"]
        if parse_size(asked) >= parse_size(wanted):
            continue
        patch = {"spec": {"resources": {"requests": {"storage": wanted}}}}
        try:
            await kube.merge(VOLUME_CLAIMS, cluster.namespace, name, patch)
        except KubeError as error:
            log.warning("volume does not grow", claim=name, wanted=wanted, reason=str(error))
