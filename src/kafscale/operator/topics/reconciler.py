"""Topics, brought to what their resources ask for, again and again.

The laws:

1. What is to be done is decided by `plan`, and done by `changes`. Nothing is touched before it is
   made sure that no older resource has the topic.
2. A cluster that is not there, a store that does not answer and a resource that is wrong are told
   of in the status; none of them is an error of the operator.
3. Deleting a resource deletes only the topic that it was applied to, and never waits for a cluster
   that is gone, or that is about to be and does not answer any more.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kafscale.control_plane.partition import Partition
from kafscale.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    KubeError,
    OperatingError,
    RefusedError,
    StoreUnavailableError,
    TopicExistsError,
    UnknownTopicError,
)
from kafscale.metadata.schema.model import Topic
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.broker_status import Surveyor
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.conditions import Condition, bad, unknown
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import CLUSTERS
from kafscale.operator.spec.status import TopicStatus
from kafscale.operator.spec.topic import TopicResource, read_topic
from kafscale.operator.topics import apply, status
from kafscale.operator.topics.apply import Event
from kafscale.operator.topics.conflicts import Rivals
from kafscale.operator.topics.plan import (
    PHASE_DELETING,
    PHASE_PENDING,
    PHASE_READY,
    READY,
    Plan,
    is_ours,
    plan,
    refused,
)
from kafscale.operator.topics.status_writer import Bulletin, Finding

log = get_logger(__name__)

SETTLED_SECONDS: Final = 30.0
SOON_SECONDS: Final = 5.0
"""When to look again at what will not stay as it is."""
ATTEMPTS_MAX: Final = 2
"""How often a change is planned, where others were faster."""
NEWS_SECONDS: Final = 0.5
"""How long it takes at the most until what others have done is seen here."""

_OVERTAKEN: Final = (TopicExistsError, UnknownTopicError, InvalidPartitionsError)


class TopicReconciler:
    """Brings topics to what their resources say, and tells how they are."""

    def __init__(
        self,
        kube: Kube,
        registry: MetadataRegistry,
        surveyor: Surveyor,
        *,
        clock: Callable[[], int],
        new_id: Callable[[], bytes],
    ) -> None:
        """`clock` is in milliseconds; `new_id` makes the ids of topics, sixteen random bytes."""
        self._kube = kube
        self._registry = registry
        self._surveyor = surveyor
        self._clock = clock
        self._new_id = new_id
        self._rivals = Rivals(kube, clock)
        self._bulletin = Bulletin(kube, clock)

    async def reconcile(self, body: Manifest) -> float:
        """Bring a topic to what its resource says; in how many seconds to look again.

        Raises `KubeError` where the API server fails.
        """
        resource = _read(body)
        if resource is None:
            return SETTLED_SECONDS
        before = self._bulletin.before(resource)
        metadata = self._registry.get(resource.namespace, resource.spec.cluster_ref)
        if metadata is None:
            finding = await self._without_cluster(resource, before)
        else:
            finding = await self._with_cluster(resource, before, metadata)
        await self._bulletin.tell(resource, before, finding)
        return finding.seconds

    async def let_go(self, body: Manifest) -> bool:
        """Do what is to be done before a resource goes; whether it may go now.

        Raises `KubeError` where the API server fails.
        """
        resource = _read(body)
        if resource is None:
            return True
        before = self._bulletin.before(resource)
        try:
            await self._delete(resource, before)
        except KubeError:
            raise
        except OperatingError as error:
            log.warning("topic not deleted yet", topic=resource.topic_name, reason=str(error))
            blocked = bad(READY, "DeletionFailed", f"{error}; it is tried again")
            await self._bulletin.tell(resource, before, _as_before(before, PHASE_DELETING, blocked))
            return False
        self._bulletin.forget(resource)
        return True

    # --- bringing -------------------------------------------------------------------------------

    async def _without_cluster(self, resource: TopicResource, before: TopicStatus) -> Finding:
        name = resource.spec.cluster_ref
        if await self._kube.get(CLUSTERS, resource.namespace, name) is None:
            missing = f"there is no KafscaleCluster {name!r} in namespace {resource.namespace!r}"
            condition = bad(READY, "ClusterNotFound", missing)
            return _as_before(before, PHASE_PENDING, condition, SETTLED_SECONDS)
        waiting = f"the etcd of cluster {name!r} is not in use yet"
        return _as_before(before, PHASE_PENDING, bad(READY, "ClusterNotReady", waiting))

    async def _with_cluster(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> Finding:
        if resource.topic_name in metadata.catalog.deletions:
            waiting = "an older topic of this name is being deleted, with its records"
            return _as_before(before, PHASE_PENDING, bad(READY, "DeletionUnderWay", waiting))
        try:
            await _check_usable(metadata)
            planned, topic = await self._brought(resource, before, metadata)
        except KubeError:
            raise
        except OperatingError as error:
            condition = unknown(READY, "StoreUnavailable", str(error))
            return _as_before(before, before.phase or PHASE_PENDING, condition)
        except RefusedError as error:
            reason = "InvalidName" if isinstance(error, InvalidTopicError) else "Refused"
            planned = refused(before, reason, str(error))
            topic = metadata.catalog.get(resource.topic_name)
        return await self._found(before, planned, topic, metadata)

    async def _brought(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> tuple[Plan, Topic | None]:
        """Plan, and act; the plan, and the topic as it is then."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            planned, topic = await self._planned(resource, before, metadata)
            try:
                for action in planned.actions:
                    topic, event = await apply.make(
                        action, resource.topic_name, metadata.catalog, self._clock(), self._new_id
                    )
                    log.info("topic changed", topic=topic.name, change=event.reason)
                    await self._bulletin.happened(resource, event)
            except _OVERTAKEN:
                if attempt == ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(NEWS_SECONDS)
            else:
                break
        if planned.is_adoption:
            await self._bulletin.happened(resource, Event("Adopted", "it was there already"))
        return planned, topic

    async def _planned(
        self, resource: TopicResource, before: TopicStatus, metadata: ClusterMetadata
    ) -> tuple[Plan, Topic | None]:
        """What to do, made sure of if it touches anything, and the topic as it is."""
        older = await self._rivals.older(resource, now=False)
        topic = metadata.catalog.get(resource.topic_name)
        planned = plan(resource, before, topic, older)
        if planned.actions or planned.is_adoption:
            older = await self._rivals.older(resource, now=True)
            topic = metadata.catalog.get(resource.topic_name)
            planned = plan(resource, before, topic, older)
        return planned, topic

    async def _found(
        self, before: TopicStatus, planned: Plan, topic: Topic | None, metadata: ClusterMetadata
    ) -> Finding:
        """How things are, after what was done."""
        topic_id, partitions, seconds = before.topic_id, [], SETTLED_SECONDS
        if topic is not None and (planned.phase == PHASE_READY or is_ours(before, topic)):
            topic_id = topic.id.hex()
            partitions = status.partitions(
                topic, metadata.view.leader, await self._log_end_offsets(metadata), before
            )
            if planned.actions or not all(each.leader for each in partitions):
                seconds = SOON_SECONDS
        return Finding(
            phase=planned.phase,
            conditions=planned.conditions,
            applied=planned.applied,
            topic_id=topic_id,
            partitions=partitions,
            seconds=seconds,
        )

    async def _log_end_offsets(self, metadata: ClusterMetadata) -> Mapping[Partition, int]:
        return (await self._surveyor.survey(metadata)).log_end_offsets

    # --- deleting -------------------------------------------------------------------------------

    async def _delete(self, resource: TopicResource, before: TopicStatus) -> None:
        """Delete the topic, if it is this resource's to delete."""
        if resource.spec.deletion_policy == "Retain" or not before.topic_id:
            return
        name = resource.spec.cluster_ref
        cluster = await self._kube.get(CLUSTERS, resource.namespace, name)
        if cluster is None or await self._rivals.older(resource, now=True):
            return
        try:
            metadata = self._registry.get(resource.namespace, name)
            if metadata is None:
                raise StoreUnavailableError(f"the etcd of cluster {name!r} is not in use yet")
            await _check_usable(metadata)
            event = await apply.delete(resource.topic_name, before.topic_id, metadata.catalog)
        except OperatingError as error:
            if not cluster["metadata"].get("deletionTimestamp"):
                raise
            log.warning("topic left behind", topic=resource.topic_name, reason=str(error))
            return
        if event:
            log.info("topic changed", topic=resource.topic_name, change=event.reason)
            await self._bulletin.happened(resource, event)


def _read(body: Manifest) -> TopicResource | None:
    """The resource; None if it is of no schema that we know, and so means no topic."""
    try:
        return read_topic(body)
    except msgspec.ValidationError as error:
        log.warning("spec not understood", topic=body["metadata"]["name"], reason=str(error))
        return None


async def _check_usable(metadata: ClusterMetadata) -> None:
    """Raise if what is known of topics is not what is true of them."""
    if not metadata.is_connected:
        raise StoreUnavailableError("the etcd of the cluster does not answer")
    if not await metadata.is_settled():
        raise StoreUnavailableError("brokers bring restored metadata up to date with the bucket")


def _as_before(
    before: TopicStatus, phase: str, condition: Condition, seconds: float = SOON_SECONDS
) -> Finding:
    """What is told where nothing could be looked at."""
    return Finding(
        phase=phase,
        conditions=(condition,),
        applied=before.applied,
        topic_id=before.topic_id,
        partitions=before.partitions,
        seconds=seconds,
    )
