"""Reconciles topics with their resources.

Invariants:

1. `plan` decides what to do. Nothing is changed before it is certain that no older resource owns
   the topic. Each change is one conditional commit in the metadata store, never a request of
   Kafka's protocol, which brokers may restrict. Brokers learn of a change from the store, and
   delete the objects of deleted topics.
2. A missing cluster, an unavailable store and an invalid resource are reported in the status; none
   of them is an error of the operator.
3. Deleting a resource deletes only the topic that it was applied to, and never waits for a cluster
   that is gone, or that is being deleted and does not respond.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kafscale.control_plane.messages import Partition
from kafscale.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    KubeError,
    OperatingError,
    RefusedError,
    StoreUnavailableError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.broker_status import BrokerStatusCollector
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.kube.api import CLUSTERS, Kube, Manifest
from kafscale.operator.spec.status import Condition, TopicStatus, bad, unknown
from kafscale.operator.spec.topic import TopicResource, read_topic
from kafscale.operator.topics import status
from kafscale.operator.topics.conflicts import TopicOwners
from kafscale.operator.topics.plan import (
    PHASE_DELETING,
    PHASE_PENDING,
    PHASE_READY,
    READY,
    Action,
    Alter,
    Create,
    Grow,
    Plan,
    plan,
    rejected,
    was_applied_to,
)
from kafscale.operator.topics.status import Event, Outcome, StatusWriter

logger = get_logger(__name__)

RESYNC_SECONDS: Final = 30.0
RECHECK_SECONDS: Final = 5.0
"""The delay before a transient state is checked again."""
ATTEMPTS_MAX: Final = 2
"""How often a change is planned if concurrent changes interfere."""
CREATE_MS_MAX: Final = 5_000
"""How long a new topic waits for an old one of the same name to be deleted."""
PROPAGATION_SECONDS: Final = 0.5
"""How long it takes at most until concurrent changes are visible here."""

_RACE_ERRORS: Final = (TopicExistsError, UnknownTopicError, InvalidPartitionsError)


class TopicReconciler:
    """Reconciles topics, and reports their status."""

    def __init__(
        self,
        kube: Kube,
        registry: MetadataRegistry,
        collector: BrokerStatusCollector,
        *,
        clock: Callable[[], int],
        new_id: Callable[[], bytes],
    ) -> None:
        """`clock` is in milliseconds; `new_id` generates topic ids of 16 random bytes."""
        self._kube = kube
        self._registry = registry
        self._collector = collector
        self._clock = clock
        self._new_id = new_id
        self._owners = TopicOwners(kube, clock)
        self._status_writer = StatusWriter(kube, clock)

    async def reconcile(self, body: Manifest) -> float:
        """Reconcile a topic; return the seconds until the next check.

        Raises `KubeError` if the API server fails.
        """
        resource = _read(body)
        if resource is None:
            return RESYNC_SECONDS
        before = self._status_writer.before(resource)
        metadata = self._registry.get(resource.namespace, resource.spec.cluster_ref)
        if metadata is None:
            outcome = await self._cluster_missing(resource, before)
        else:
            outcome = await self._reconcile_topic(resource, before, metadata)
        await self._status_writer.write_status(resource, before, outcome)
        return outcome.seconds

    async def finalize(self, body: Manifest) -> bool:
        """Clean up before a resource is deleted; return whether that is complete.

        Raises `KubeError` if the API server fails.
        """
        resource = _read(body)
        if resource is None:
            return True
        before = self._status_writer.before(resource)
        try:
            await self._delete(resource, before)
        except KubeError:
            raise
        except OperatingError as error:
            logger.warning("topic not deleted yet", topic=resource.topic_name, reason=str(error))
            blocked = bad(READY, "DeletionFailed", f"{error}; the deletion is retried")
            await self._status_writer.write_status(
                resource, before, _unchanged(before, PHASE_DELETING, blocked)
            )
            return False
        self._status_writer.forget(resource)
        return True

    # --- reconciling ----------------------------------------------------------------------------

    async def _cluster_missing(self, resource: TopicResource, before: TopicStatus) -> Outcome:
        name = resource.spec.cluster_ref
        if await self._kube.get(CLUSTERS, resource.namespace, name) is None:
            missing = f"no KafscaleCluster {name!r} in namespace {resource.namespace!r}"
            condition = bad(READY, "ClusterNotFound", missing)
            return _unchanged(before, PHASE_PENDING, condition, RESYNC_SECONDS)
        waiting = f"the etcd of cluster {name!r} is not ready yet"
        return _unchanged(before, PHASE_PENDING, bad(READY, "ClusterNotReady", waiting))

    async def _reconcile_topic(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> Outcome:
        if resource.topic_name in metadata.topic_store.deletions:
            waiting = "a former topic of this name is being deleted with its records"
            return _unchanged(before, PHASE_PENDING, bad(READY, "DeletionInProgress", waiting))
        try:
            await _check_usable(metadata)
            planned, topic = await self._plan_and_execute(resource, before, metadata)
        except KubeError:
            raise
        except OperatingError as error:
            condition = unknown(READY, "StoreUnavailable", str(error))
            return _unchanged(before, before.phase or PHASE_PENDING, condition)
        except RefusedError as error:
            reason = "InvalidName" if isinstance(error, InvalidTopicError) else "Rejected"
            planned = rejected(before, reason, str(error))
            topic = metadata.topic_store.get(resource.topic_name)
        return await self._outcome(before, planned, topic, metadata)

    async def _plan_and_execute(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> tuple[Plan, Topic | None]:
        """Plan and execute; return the plan, and the topic as it is then."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            planned, topic = await self._plan(resource, before, metadata)
            try:
                for action in planned.actions:
                    topic, event = await _execute(
                        action,
                        resource.topic_name,
                        metadata.topic_store,
                        self._clock(),
                        self._new_id,
                    )
                    logger.info("topic changed", topic=topic.name, change=event.reason)
                    await self._status_writer.record_event(resource, event)
            except _RACE_ERRORS:
                if attempt == ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(PROPAGATION_SECONDS)
            else:
                break
        if planned.is_adoption:
            await self._status_writer.record_event(
                resource, Event("Adopted", "the topic existed already")
            )
        return planned, topic

    async def _plan(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> tuple[Plan, Topic | None]:
        """The plan, confirmed with fresh data if it changes anything, and the current topic."""
        conflicting = await self._owners.conflicting(resource, now=False)
        topic = metadata.topic_store.get(resource.topic_name)
        planned = plan(resource, before, topic, conflicting)
        if planned.actions or planned.is_adoption:
            conflicting = await self._owners.conflicting(resource, now=True)
            topic = metadata.topic_store.get(resource.topic_name)
            planned = plan(resource, before, topic, conflicting)
        return planned, topic

    async def _outcome(
        self, before: TopicStatus, planned: Plan, topic: Topic | None, metadata: ClusterMetadata
    ) -> Outcome:
        """The outcome after a plan was executed."""
        topic_id, partitions, seconds = before.topic_id, [], RESYNC_SECONDS
        if topic is not None and (planned.phase == PHASE_READY or was_applied_to(before, topic)):
            topic_id = topic.id.hex()
            partitions = status.partitions(
                topic, metadata.view.leader, await self._log_end_offsets(metadata), before
            )
            if planned.actions or not all(each.leader for each in partitions):
                seconds = RECHECK_SECONDS
        return Outcome(
            phase=planned.phase,
            conditions=planned.conditions,
            applied=planned.applied,
            topic_id=topic_id,
            partitions=partitions,
            seconds=seconds,
        )

    async def _log_end_offsets(self, metadata: ClusterMetadata) -> Mapping[Partition, int]:
        return (await self._collector.collect(metadata)).log_end_offsets

    # --- deleting -------------------------------------------------------------------------------

    async def _delete(self, resource: TopicResource, before: TopicStatus) -> None:
        """Delete the topic if this resource owns it."""
        if resource.spec.deletion_policy == "Retain" or not before.topic_id:
            return
        name = resource.spec.cluster_ref
        cluster = await self._kube.get(CLUSTERS, resource.namespace, name)
        if cluster is None or await self._owners.conflicting(resource, now=True):
            return
        try:
            metadata = self._registry.get(resource.namespace, name)
            if metadata is None:
                raise StoreUnavailableError(f"the etcd of cluster {name!r} is not ready yet")
            await _check_usable(metadata)
            event = await _delete(resource.topic_name, before.topic_id, metadata.topic_store)
        except OperatingError as error:
            if not cluster["metadata"].get("deletionTimestamp"):
                raise
            logger.warning(
                "topic not deleted with its cluster", topic=resource.topic_name, reason=str(error)
            )
            return
        if event:
            logger.info("topic changed", topic=resource.topic_name, change=event.reason)
            await self._status_writer.record_event(resource, event)


def _read(body: Manifest) -> TopicResource | None:
    """The resource; None if it does not match the schema, and so names no topic."""
    try:
        return read_topic(body)
    except msgspec.ValidationError as error:
        logger.warning("invalid spec", topic=body["metadata"]["name"], reason=str(error))
        return None


async def _check_usable(metadata: ClusterMetadata) -> None:
    """Raise if the known topics may differ from the actual ones."""
    if not metadata.is_connected:
        raise StoreUnavailableError("the etcd of the cluster does not respond")
    if not await metadata.is_restore_settled():
        raise StoreUnavailableError("brokers are reconciling restored metadata with the bucket")


def _unchanged(
    before: TopicStatus, phase: str, condition: Condition, seconds: float = RECHECK_SECONDS
) -> Outcome:
    """The outcome if nothing could be checked."""
    return Outcome(
        phase=phase,
        conditions=(condition,),
        applied=before.applied,
        topic_id=before.topic_id,
        partitions=before.partitions,
        seconds=seconds,
    )


async def _execute(
    action: Action, name: str, topic_store: TopicStore, now_ms: int, new_id: Callable[[], bytes]
) -> tuple[Topic, Event]:
    """Execute an action; return the topic as it is then, and the event to record.

    Raises `StoreUnavailableError`, or a `RefusedError` if a concurrent change was faster.
    """
    match action:
        case Create(partitions=partitions, configs=configs):
            topic = await topic_store.create(
                name, partitions, configs, now_ms, new_id(), timeout_ms=CREATE_MS_MAX
            )
            return topic, Event("Created", f"with {partitions} partitions")
        case Grow(partitions=partitions):
            topic = await topic_store.grow(name, partitions)
            return topic, Event("Grown", f"to {partitions} partitions")
        case Alter():
            topic = await topic_store.set_configs(name, action.on)
            return topic, Event("Altered", _describe_alter(action))


async def _delete(name: str, topic_id: str, topic_store: TopicStore) -> Event | None:
    """Delete a topic if it still has this id; None if it does not exist any more."""
    topic = topic_store.get(name)
    if topic is None or topic.id.hex() != topic_id:
        return None
    try:
        await topic_store.delete(name, topic.id)
    except (UnknownTopicError, UnknownTopicIdError):
        return None  # Deleted concurrently.
    return Event("Deleted", "with all its records")


def _describe_alter(alter: Alter) -> str:
    assigned = [f"{name}={value}" for name, value in sorted(alter.assigned.items())]
    return ", ".join(
        [*assigned, *(f"{name} reset to its default" for name in sorted(alter.resets))]
    )
