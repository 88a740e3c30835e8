"""What is heard from Kubernetes, through kopf: each resource has somebody who looks after it.

The law: nothing is decided here. Whoever looks after a resource reads it anew each time it has a
reason to, so no event is ever needed, and none that is missed is missing.
"""

import asyncio
import contextlib
import logging
from typing import Any, Final, Protocol

import kopf

from kafscale.operator.kube.kinds import CLUSTERS, TOPICS, Kind
from kafscale.operator.work_queue import Bells, Resource

FINALIZER: Final = "kafscale.io/operator"
PREFIX: Final = "kafscale.io"
CANCELLATION_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5.0


class Work(Protocol):
    """What is done for resources; errors are the worker's own affair."""

    async def keep(self, resource: Resource) -> float:
        """Bring a resource to what it asks for; after how many seconds to look again."""

    async def let_go(self, resource: Resource, body: dict[str, Any]) -> bool:
        """Do what has to be done before a resource may go; whether it is done."""


def registry(work: Work, bells: Bells) -> kopf.OperatorRegistry:
    """Who is called when, for kopf."""
    handlers = kopf.OperatorRegistry()
    _login(handlers)
    _configure(handlers)
    for kind in (CLUSTERS, TOPICS):
        _look_after(kind, handlers, work, bells)
    return handlers


def _login(handlers: kopf.OperatorRegistry) -> None:
    @kopf.on.login(registry=handlers)
    def login(**facts: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**facts) or kopf.login_with_kubeconfig(**facts)


def _configure(handlers: kopf.OperatorRegistry) -> None:
    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        logging.getLogger("kopf").setLevel(logging.WARNING)
        logging.getLogger("kopf.objects").addFilter(_without_asides)
        settings.posting.enabled = False  # Events are ours to tell, in words for people.
        settings.persistence.finalizer = FINALIZER
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=PREFIX)
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=PREFIX)
        settings.background.instant_exit_timeout = 0.1


def _without_asides(record: logging.LogRecord) -> bool:
    """Take from what kopf says of a resource what it says to itself: all its settings."""
    for name in ("settings", "k8s_skip"):
        vars(record).pop(name, None)
    return True


def _look_after(kind: Kind, handlers: kopf.OperatorRegistry, work: Work, bells: Bells) -> None:
    group, _, version = kind.api_version.partition("/")
    what = (group, version, kind.plural)

    def resource(namespace: str | None, name: str | None) -> Resource:
        return Resource(kind.kind, namespace or "", name or "")

    @kopf.on.event(*what, registry=handlers, id="ring")
    async def ring(namespace: str | None, name: str | None, **_: Any) -> None:
        bells.ring(resource(namespace, name))

    @kopf.daemon(*what, registry=handlers, id="keep", cancellation_timeout=CANCELLATION_SECONDS)
    async def keep(
        namespace: str | None, name: str | None, stopped: kopf.DaemonStopped, **_: Any
    ) -> None:
        which = resource(namespace, name)
        with contextlib.suppress(asyncio.CancelledError):  # So kopf says that it is enough.
            while not stopped:
                await bells.wait(which, await work.keep(which))
        bells.forget(which)

    @kopf.on.delete(*what, registry=handlers, id="let-go")
    async def let_go(namespace: str | None, name: str | None, body: kopf.Body, **_: Any) -> None:
        if not await work.let_go(resource(namespace, name), dict(body)):
            raise kopf.TemporaryError("not yet", delay=RETRY_SECONDS)
