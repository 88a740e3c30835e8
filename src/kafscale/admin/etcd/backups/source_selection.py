"""Whom to take a snapshot from: members that are well, those that have the least to do first.

The law: a member without a leader may be far behind the others, and a learner is; neither is asked.
Of the others a follower is preferred, because the leader has enough to do, and among followers the
one that has come furthest. Where one fails in the middle, the next is asked.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, Self

from kafscale.admin.etcd.backups.store import (
    Progress,
    Snapshots,
    SnapshotSource,
    SourceError,
    StoredSnapshot,
)
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError, StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import MemberStatus, statuses
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


class Connection(SnapshotSource, Protocol):
    """A member that is connected to as long as a block lasts."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


Connect = Callable[[str, Etcd], Connection]
"""Makes a connection to a member from its endpoint; `Maintenance` is one."""


async def take_from_any(
    snapshots: Snapshots,
    settings: Etcd,
    connect: Connect,
    progress: Progress = lambda _done, _all: None,
) -> StoredSnapshot:
    """Take a snapshot from whoever is well enough."""
    async with AsyncExitStack() as stack:
        members = {
            endpoint: await stack.enter_async_context(connect(endpoint, settings))
            for endpoint in settings.endpoints
        }
        told = await statuses(members)
        failures = [f"{endpoint}: {why}" for endpoint, why in _unwell(told)]
        for endpoint in in_order(told):
            try:
                return await snapshots.take(members[endpoint], progress)
            except SourceError as error:
                log.warning("member gives no snapshot", endpoint=endpoint, reason=str(error))
                failures.append(str(error))
    raise StoreUnavailableError("no member of etcd gives a snapshot: " + "; ".join(failures))


def in_order(told: dict[str, MemberStatus | KafscaleError]) -> Sequence[str]:
    """The endpoints that can be asked, the best first."""
    well = [
        (status.is_leader, -status.revision, endpoint)
        for endpoint, status in told.items()
        if isinstance(status, MemberStatus) and status.has_quorum_view
    ]
    return [endpoint for *_, endpoint in sorted(well)]


def _unwell(told: dict[str, MemberStatus | KafscaleError]) -> list[tuple[str, str]]:
    found = []
    for endpoint, status in told.items():
        if isinstance(status, KafscaleError):
            found.append((endpoint, str(status)))
        elif not status.leader_id:
            found.append((endpoint, "it knows no leader"))
        elif status.is_learner:
            found.append((endpoint, "it is a learner"))
    return found
