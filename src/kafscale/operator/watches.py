"""Watches on objects that belong to clusters, so that a change is reconciled at once.

Invariant: a watch only notifies. Changes that it misses while it reconnects are found by the next
resync.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import CLUSTERS, PODS, SECRETS, STATEFUL_SETS, Kind
from kafscale.operator.manifests import names
from kafscale.operator.work_queue import ResourceKey, WorkQueue

log = get_logger(__name__)

RETRY_SECONDS: Final = 2.0
APP_SELECTOR: Final = f"app in ({names.BROKER_APP},{names.ETCD_APP})"


class WatchApi(Protocol):
    """The part of the API server that watches need."""

    def watch(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[Manifest]: ...


async def watch(kube: WatchApi, queue: WorkQueue, namespaces: tuple[str, ...]) -> None:
    """Notify the queue of clusters whose pods, StatefulSets or Secrets change; never returns."""
    async with asyncio.TaskGroup() as tasks:
        for namespace in namespaces or ("",):
            for kind in (PODS, STATEFUL_SETS):
                tasks.create_task(_watch(kube, queue, kind, namespace, APP_SELECTOR))
            tasks.create_task(_watch(kube, queue, SECRETS, namespace, names.WATCHED))


async def _watch(
    kube: WatchApi, queue: WorkQueue, kind: Kind, namespace: str, selector: str
) -> None:
    while True:
        try:
            async for manifest in kube.watch(kind, namespace, selector):
                _notify(queue, kind, manifest)
        except KubeError as error:
            log.warning("watch interrupted", kind=kind.kind, reason=str(error))
            await asyncio.sleep(RETRY_SECONDS)


def _notify(queue: WorkQueue, kind: Kind, manifest: Manifest) -> None:
    metadata = manifest["metadata"]
    cluster = (metadata.get("labels") or {}).get("cluster", "")
    if kind == SECRETS or not cluster:
        queue.notify_all(CLUSTERS.kind, metadata["namespace"])
    else:
        queue.notify(ResourceKey(CLUSTERS.kind, metadata["namespace"], cluster))
