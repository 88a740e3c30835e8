"""The work queue: wakes the task of a resource, runs its reconciler, and backs off after failures.

Invariants:

* A notification that arrives while a resource is being reconciled is not lost: the next `wait`
  returns at once.
* A failure of one resource does not affect others. It is logged once per distinct reason, counted,
  and retried with exponential backoff.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

from kafscale.aio.backoff import Backoff
from kafscale.aio.events import wait_at_most
from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.kube.api import CLUSTERS, TOPICS, Kube, Manifest

logger = get_logger(__name__)

BACKOFF_SECONDS_MIN: Final = 2.0
BACKOFF_SECONDS_MAX: Final = 60.0
DELETED_RECHECK_SECONDS: Final = 5.0
"""kopf is about to stop the task of a resource that was deleted."""


class ResourceKey(NamedTuple):
    """Identifies a custom resource."""

    kind: str
    namespace: str
    name: str


class WorkQueue:
    """One pending flag per resource."""

    def __init__(self) -> None:
        self._events: defaultdict[ResourceKey, asyncio.Event] = defaultdict(asyncio.Event)

    def notify(self, resource: ResourceKey) -> None:
        self._events[resource].set()

    def notify_all(self, kind: str, namespace: str = "") -> None:
        """Notify all known resources of a kind, in one namespace or in all."""
        for resource, event in self._events.items():
            if resource.kind == kind and namespace in {"", resource.namespace}:
                event.set()

    async def wait(self, resource: ResourceKey, seconds: float) -> None:
        """Return when the resource is notified, at the latest after `seconds`."""
        event = self._events[resource]
        await wait_at_most(seconds, event)
        event.clear()

    def forget(self, resource: ResourceKey) -> None:
        self._events.pop(resource, None)


class Reconciler(Protocol):
    """Reconciles resources of one kind."""

    async def reconcile(self, body: Manifest) -> float:
        """Bring a resource to its desired state; return the seconds until the next resync."""

    async def finalize(self, body: Manifest) -> bool:
        """Clean up before a resource is deleted; return whether that is complete."""


class Worker:
    """Runs the reconcilers for `event_sources`."""

    def __init__(
        self,
        kube: Kube,
        metrics: OperatorMetrics,
        *,
        clusters: Reconciler,
        topics: Reconciler,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._metrics = metrics
        self._kinds = {CLUSTERS.kind: CLUSTERS, TOPICS.kind: TOPICS}
        self._reconcilers = {CLUSTERS.kind: clusters, TOPICS.kind: topics}
        self._monotonic = monotonic
        self._failures: dict[ResourceKey, tuple[str, Backoff]] = {}
        """The last failure of each resource, and the backoff of those in a row."""

    async def reconcile(self, resource: ResourceKey) -> float:
        async def work() -> float:
            kind = self._kinds[resource.kind]
            body = await self._kube.get(kind, resource.namespace, resource.name)
            if body is None or "deletionTimestamp" in body["metadata"]:
                return DELETED_RECHECK_SECONDS
            return await self._reconcilers[resource.kind].reconcile(body)

        return await self._run(resource, work)

    async def finalize(self, resource: ResourceKey, body: dict[str, Any]) -> bool:
        async def work() -> float:
            is_done = await self._reconcilers[resource.kind].finalize(body)
            return 0.0 if is_done else BACKOFF_SECONDS_MIN

        is_done = not await self._run(resource, work)
        if is_done:
            self._failures.pop(resource, None)
        return is_done

    async def _run(self, resource: ResourceKey, work: Callable[[], Awaitable[float]]) -> float:
        """Return the seconds until the next run, which after a failure are the backoff."""
        started = self._monotonic()
        try:
            seconds = await work()
        except KafscaleError as error:
            seconds = self._record_failure(resource, str(error))
        except Exception as error:
            # The boundary: a bug that one resource triggers must not stop the others.
            logger.exception("reconcile crashed", kind=resource.kind, name=resource.name)
            seconds = self._record_failure(resource, f"{type(error).__name__}: {error}")
        else:
            self._failures.pop(resource, None)
        is_failed = resource in self._failures
        self._metrics.reconciled(
            resource.kind, self._monotonic() - started, succeeded=not is_failed
        )
        return seconds

    def _record_failure(self, resource: ResourceKey, reason: str) -> float:
        before, backoff = self._failures.get(resource, ("", None))
        if backoff is None:
            backoff = Backoff(first_seconds=BACKOFF_SECONDS_MIN, max_seconds=BACKOFF_SECONDS_MAX)
        self._failures[resource] = (reason, backoff)
        if reason != before:
            logger.warning(
                "reconcile failed",
                kind=resource.kind,
                namespace=resource.namespace,
                name=resource.name,
                reason=reason,
            )
        return backoff.next_seconds()
