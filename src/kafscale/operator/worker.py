"""The work on resources: whose turn it is, how long it took, and what went wrong.

The law: one resource's trouble is its own. Whatever fails for it is logged once as long as it stays
the same, counted, and tried again after a pause that grows; the others are looked after meanwhile.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import CLUSTERS, TOPICS
from kafscale.operator.work_queue import Resource

log = get_logger(__name__)

PAUSE_SECONDS_MIN: Final = 2.0
PAUSE_SECONDS_MAX: Final = 60.0
GONE_SECONDS: Final = 5.0
"""Who has gone is about to be told so by kopf."""


class Reconciler(Protocol):
    """Looks after resources of one kind."""

    async def reconcile(self, body: Manifest) -> float:
        """Bring a resource to what it asks for; after how many seconds to look again."""

    async def let_go(self, body: Manifest) -> bool:
        """Do what has to be done before it may go; whether it is done."""


class Worker:
    """Does the work that `handlers` calls for."""

    def __init__(
        self,
        kube: Kube,
        metrics: OperatorMetrics,
        *,
        clusters: Reconciler,
        topics: Reconciler,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._metrics = metrics
        self._kinds = {CLUSTERS.kind: CLUSTERS, TOPICS.kind: TOPICS}
        self._reconcilers = {CLUSTERS.kind: clusters, TOPICS.kind: topics}
        self._steady = steady
        self._failures: dict[Resource, tuple[str, int]] = {}
        """What went wrong last for a resource, and how often in a row."""

    async def keep(self, resource: Resource) -> float:
        async def work() -> float:
            kind = self._kinds[resource.kind]
            body = await self._kube.get(kind, resource.namespace, resource.name)
            if body is None or "deletionTimestamp" in body["metadata"]:
                return GONE_SECONDS
            return await self._reconcilers[resource.kind].reconcile(body)

        return await self._tried(resource, work)

    async def let_go(self, resource: Resource, body: dict[str, Any]) -> bool:
        async def work() -> float:
            is_done = await self._reconcilers[resource.kind].let_go(body)
            return 0.0 if is_done else PAUSE_SECONDS_MIN

        is_done = not await self._tried(resource, work)
        if is_done:
            self._failures.pop(resource, None)
        return is_done

    async def _tried(self, resource: Resource, work: Callable[[], Awaitable[float]]) -> float:
        """What the work says, or how long to pause after it has failed."""
        began = self._steady()
        try:
            seconds = await work()
        except KafscaleError as error:
            seconds = self._failed(resource, str(error))
        except Exception as error:
            # An edge: whatever one resource meets, the others go on.
            log.exception("not kept", kind=resource.kind, name=resource.name)
            seconds = self._failed(resource, f"{type(error).__name__}: {error}")
        else:
            self._failures.pop(resource, None)
        is_failed = resource in self._failures
        self._metrics.reconciled(resource.kind, self._steady() - began, succeeded=not is_failed)
        return seconds

    def _failed(self, resource: Resource, reason: str) -> float:
        before, times = self._failures.get(resource, ("", 0))
        self._failures[resource] = (reason, times + 1)
        if reason != before:
            log.warning(
                "not kept yet",
                kind=resource.kind,
                namespace=resource.namespace,
                name=resource.name,
                reason=reason,
            )
        return min(PAUSE_SECONDS_MIN * 2.0 ** min(times, 10), PAUSE_SECONDS_MAX)
