"""What notifies the work queue: kopf handlers of resources, and watches on their objects.

Invariants: nothing is decided here. The worker re-reads a resource whenever it reconciles, so a
missed event does no harm, and changes that a watch misses while it reconnects are found by the next
resync.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection
from typing import Any, Final, Protocol

import kopf

from kafscale.errors import KubeError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import CLUSTERS, PODS, STATEFUL_SETS, TOPICS, Kind, Kube, Manifest
from kafscale.operator.manifests import names
from kafscale.operator.work_queue import ResourceKey, Worker, WorkQueue

FINALIZER: Final = "kafscale.io/operator"
PREFIX: Final = "kafscale.io"
CANCELLATION_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5.0

logger = get_logger(__name__)

WATCH_RETRY_SECONDS: Final = 2.0
APP_SELECTOR: Final = f"app in ({names.BROKER_APP},{names.ETCD_APP})"


async def listen(
    worker: Worker, queue: WorkQueue, namespaces: Collection[str], stop: asyncio.Event
) -> None:
    """Receive events of custom resources through kopf, until `stop` is set.

    `namespaces` are the watched ones, empty for all. kopf's own shutdown on signals would cancel
    every task of this process.
    """
    tasks = await kopf.spawn_tasks(
        registry=_registry(worker, queue),
        clusterwide=not namespaces,
        namespaces=namespaces,
        standalone=True,
        stop_flag=stop,
    )
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _registry(worker: Worker, queue: WorkQueue) -> kopf.OperatorRegistry:
    """The handlers of the operator, for kopf."""
    handlers = kopf.OperatorRegistry()
    _login(handlers)
    _configure(handlers)
    for kind in (CLUSTERS, TOPICS):
        _register(kind, handlers, worker, queue)
    return handlers


def _login(handlers: kopf.OperatorRegistry) -> None:
    @kopf.on.login(registry=handlers)
    def login(**facts: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**facts) or kopf.login_with_kubeconfig(**facts)


def _configure(handlers: kopf.OperatorRegistry) -> None:
    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        logging.getLogger("kopf").setLevel(logging.WARNING)
        logging.getLogger("kopf.objects").addFilter(_drop_kopf_fields)
        # Otherwise kopf lists and watches namespaces and CRDs, which needs permissions for all of
        # them, only to notice new ones.
        settings.scanning.disabled = True
        settings.posting.enabled = False  # The reconcilers record their own events.
        settings.persistence.finalizer = FINALIZER
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=PREFIX)
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=PREFIX)
        settings.background.instant_exit_timeout = 0.1


def _drop_kopf_fields(record: logging.LogRecord) -> bool:
    """Remove kopf's internal fields from its log records."""
    for name in ("settings", "k8s_skip"):
        vars(record).pop(name, None)
    return True


def _register(
    kind: Kind, handlers: kopf.OperatorRegistry, worker: Worker, queue: WorkQueue
) -> None:
    group, _, version = kind.api_version.partition("/")
    selector = (group, version, kind.plural)

    def key_of(namespace: str | None, name: str | None) -> ResourceKey:
        return ResourceKey(kind.kind, namespace or "", name or "")

    @kopf.on.event(*selector, registry=handlers, id="notify")
    async def notify(namespace: str | None, name: str | None, **_: Any) -> None:
        queue.notify(key_of(namespace, name))

    @kopf.daemon(
        *selector, registry=handlers, id="reconcile", cancellation_timeout=CANCELLATION_SECONDS
    )
    async def reconcile(
        namespace: str | None, name: str | None, stopped: kopf.DaemonStopped, **_: Any
    ) -> None:
        key = key_of(namespace, name)
        with contextlib.suppress(asyncio.CancelledError):  # How kopf stops a daemon.
            while not stopped:
                await queue.wait(key, await worker.reconcile(key))
        queue.forget(key)

    @kopf.on.delete(*selector, registry=handlers, id="finalize")
    async def finalize(namespace: str | None, name: str | None, body: kopf.Body, **_: Any) -> None:
        if not await worker.finalize(key_of(namespace, name), dict(body)):
            raise kopf.TemporaryError("the finalizer is not complete yet", delay=RETRY_SECONDS)


async def check_definitions(kube: Kube) -> None:
    """Raise if the custom resources are not defined; kopf would not notice them later."""
    for kind in (CLUSTERS, TOPICS):
        if not await kube.supports(kind):
            raise OperatingError(
                f"Kubernetes does not know {kind.plural}: install the CRDs with"
                " `kafscale operator crds | kubectl apply --server-side -f -`"
            )


class WatchApi(Protocol):
    """The part of the API server that watches need."""

    def watch(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[Manifest]: ...


async def watch(kube: WatchApi, queue: WorkQueue, namespaces: Collection[str]) -> None:
    """Notify the queue of clusters whose pods or StatefulSets change; never returns.

    Secrets are not watched, because that needs the permission to read all of them.
    """
    async with asyncio.TaskGroup() as tasks:
        for namespace in namespaces or ("",):
            for kind in (PODS, STATEFUL_SETS):
                tasks.create_task(_watch(kube, queue, kind, namespace))


async def _watch(kube: WatchApi, queue: WorkQueue, kind: Kind, namespace: str) -> None:
    while True:
        try:
            async for manifest in kube.watch(kind, namespace, APP_SELECTOR):
                _notify(queue, manifest)
        except KubeError as error:
            logger.warning("watch interrupted", kind=kind.kind, reason=str(error))
            await asyncio.sleep(WATCH_RETRY_SECONDS)


def _notify(queue: WorkQueue, manifest: Manifest) -> None:
    metadata = manifest["metadata"]
    cluster = (metadata.get("labels") or {}).get("cluster", "")
    if cluster:
        queue.notify(ResourceKey(CLUSTERS.kind, metadata["namespace"], cluster))
    else:
        queue.notify_all(CLUSTERS.kind, metadata["namespace"])
