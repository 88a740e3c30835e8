"""kopf handlers: one task per resource, woken by events.

Invariant: nothing is decided here. The worker re-reads a resource whenever it reconciles, so a
missed event does no harm.
"""

import asyncio
import contextlib
import logging
from typing import Any, Final

import kopf

from kafscale.operator.kube.kinds import CLUSTERS, TOPICS, Kind
from kafscale.operator.work_queue import ResourceKey, Worker, WorkQueue

FINALIZER: Final = "kafscale.io/operator"
PREFIX: Final = "kafscale.io"
CANCELLATION_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5.0


def registry(worker: Worker, queue: WorkQueue) -> kopf.OperatorRegistry:
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
            raise kopf.TemporaryError("finalizing is not complete", delay=RETRY_SECONDS)
