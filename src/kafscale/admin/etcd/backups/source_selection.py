"""Chooses the etcd member to take a snapshot from.

A member without a leader may be far behind, and a learner is; neither is used. Followers are
preferred, to spare the leader; among followers, the one with the highest revision. If a member
fails midway, the next one is tried.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, Self

from kafscale.admin.etcd.backups.store import (
    Progress,
    SnapshotSource,
    SnapshotStore,
    SourceError,
    StoredSnapshot,
)
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError, StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import MemberStatus, statuses
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


class Connection(SnapshotSource, Protocol):
    """A connection to a member, open for the duration of a block."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


Connect = Callable[[str, Etcd], Connection]
"""Opens a connection to a member by its endpoint; `Maintenance` implements it."""


async def take_from_any(
    snapshots: SnapshotStore,
    settings: Etcd,
    connect: Connect,
    progress: Progress = lambda _done, _all: None,
) -> StoredSnapshot:
    """Take a snapshot from the best member that succeeds."""
    async with AsyncExitStack() as stack:
        members = {
            endpoint: await stack.enter_async_context(connect(endpoint, settings))
            for endpoint in settings.endpoints
        }
        by_endpoint = await statuses(members)
        failures = [f"{endpoint}: {why}" for endpoint, why in _unsuitable(by_endpoint)]
        for endpoint in rank_sources(by_endpoint):
            try:
                return await snapshots.take(members[endpoint], progress)
            except SourceError as error:
                log.warning(
                    "snapshot from etcd member failed", endpoint=endpoint, reason=str(error)
                )
                failures.append(str(error))
    raise StoreUnavailableError("no etcd member returned a snapshot: " + "; ".join(failures))


def rank_sources(by_endpoint: dict[str, MemberStatus | KafscaleError]) -> Sequence[str]:
    """The endpoints of suitable members, best first."""
    suitable = [
        (status.is_leader, -status.revision, endpoint)
        for endpoint, status in by_endpoint.items()
        if isinstance(status, MemberStatus) and status.has_quorum_view
    ]
    return [endpoint for *_, endpoint in sorted(suitable)]


def _unsuitable(by_endpoint: dict[str, MemberStatus | KafscaleError]) -> list[tuple[str, str]]:
    reasons = []
    for endpoint, status in by_endpoint.items():
        if isinstance(status, KafscaleError):
            reasons.append((endpoint, str(status)))
        elif not status.leader_id:
            reasons.append((endpoint, "it has no leader"))
        elif status.is_learner:
            reasons.append((endpoint, "it is a learner"))
    return reasons
