"""Watching what belongs to clusters, so that a change is seen at once and not at the next look.

The law: a watch only rings. What it misses, while it is begun anew, the next look sees.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import CLUSTERS, PODS, SECRETS, STATEFUL_SETS, Kind
from kafscale.operator.manifests import names
from kafscale.operator.work_queue import Bells, Resource

log = get_logger(__name__)

PAUSE_SECONDS: Final = 2.0
OURS: Final = f"app in ({names.BROKER_APP},{names.ETCD_APP})"


class Watchable(Protocol):
    """What is needed of the API server."""

    def watch(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[Manifest]: ...


async def watch(kube: Watchable, bells: Bells, namespaces: tuple[str, ...]) -> None:
    """Ring for the clusters whose pods, StatefulSets or Secrets change, for ever."""
    async with asyncio.TaskGroup() as tasks:
        for namespace in namespaces or ("",):
            for kind in (PODS, STATEFUL_SETS):
                tasks.create_task(_watch(kube, bells, kind, namespace, OURS))
            tasks.create_task(_watch(kube, bells, SECRETS, namespace, names.WATCHED))


async def _watch(kube: Watchable, bells: Bells, kind: Kind, namespace: str, selector: str) -> None:
    while True:
        try:
            async for found in kube.watch(kind, namespace, selector):
                _ring(bells, kind, found)
        except KubeError as error:
            log.warning("watch interrupted", kind=kind.kind, reason=str(error))
            await asyncio.sleep(PAUSE_SECONDS)


def _ring(bells: Bells, kind: Kind, found: Manifest) -> None:
    metadata = found["metadata"]
    cluster = (metadata.get("labels") or {}).get("cluster", "")
    if kind == SECRETS or not cluster:
        bells.ring_all(CLUSTERS.kind, metadata["namespace"])
    else:
        bells.ring(Resource(CLUSTERS.kind, metadata["namespace"], cluster))
