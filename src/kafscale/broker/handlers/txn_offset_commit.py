"""TxnOffsetCommit: v0-5.

Behaviour:
* The offsets of a request become a part of the producer's transaction, and the response is sent
  once they are stored. They are committed by the marker of the transaction, or dropped.
* The first offsets of a transaction are verified with its coordinator: INVALID_TXN_STATE or
  TRANSACTION_ABORTABLE if the group is not a part of it.
* Invalid offsets are left out, each with its own error: UNKNOWN_TOPIC_OR_PARTITION, or
  OFFSET_METADATA_TOO_LARGE above `offsets.metadataMaxBytes`. Other errors are returned for every
  partition that exists. A topic without partitions is ignored.
* A commit above the limits of its user or group waits, as with OffsetCommit; it counts twice.
* A group that does not exist is created for a client that is not a member (generation -1), else
  ILLEGAL_GENERATION. A client that does not say of which member its offsets are may commit, too.
* Requires WRITE on the transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and READ on
  the group, else GROUP_AUTHORIZATION_FAILED, each for every partition; and READ on each topic, else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes:
* v0-1: COORDINATOR_NOT_AVAILABLE while the coordinator is loading, which old clients retry.
* v3+: the client says of which member its offsets are.
* v4+: TRANSACTION_ABORTABLE; INVALID_TXN_STATE before.
* v5+: adds the group to the transaction; before, AddOffsetsToTxn has to.
"""

from typing import Final

from kafscale.broker.group_coordinator.commit_limits import MUTE_MS, commit_bytes
from kafscale.broker.group_coordinator.group_registry import check_group_id as check_length
from kafscale.broker.group_coordinator.pending_transaction import PART_BYTES
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id, group_error_code
from kafscale.broker.shared.offset_commits import (
    PARTITION_ERRORS,
    check_metadata,
    check_partition,
    check_topic,
)
from kafscale.errors import (
    AuthorizationError,
    CommitsThrottledError,
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    KafscaleError,
    UnknownTopicError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.messages.txn_offset_commit import (
    CommittedPartition,
    CommittedTopic,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafscale.text.topic_partition import TopicPartition

LOADING_SINCE: Final = 2
ABORTABLE_SINCE: Final = 4
ADDS_GROUP_SINCE: Final = 5

_Collected = tuple[dict[TopicPartition, CommittedOffset], TxnOffsetCommitResponse]


async def handle(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    offsets, response = _collect_all(context, request)
    if _is_nothing_to_commit(response):
        return response
    check_group_id(request.group_id)
    check_length(request.group_id)
    # They are written twice: now, and when the transaction is committed.
    size_bytes = PART_BYTES + 2 * commit_bytes(request.group_id, offsets)
    await _admit(context, request, size_bytes)
    adds_group = context.version >= ADDS_GROUP_SINCE
    groups = context.broker.groups
    guard = groups.start_verification(
        request.group_id, request.producer_id, request.producer_epoch, adds_partition=adds_group
    )
    if guard is not None:
        await context.broker.transactions.verify_offsets(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.group_id,
            adds_partition=adds_group,
            knows_abortable=context.version >= ABORTABLE_SINCE,
        )
    # Topics may be others after the wait.
    offsets, response = _collect_all(context, request, quiet=True)
    if _is_nothing_to_commit(response):
        return response
    await groups.commit_in_transaction(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        offsets=offsets,
        guard=guard,
    )
    return response


def error_response(
    context: RequestContext, request: TxnOffsetCommitRequest, error: KafscaleError
) -> TxnOffsetCommitResponse:
    """The same error for every partition; or for those that exist, unless access is denied."""
    code = group_error_code(error)
    if code == CoordinatorLoadingError.code and context.version < LOADING_SINCE:
        code = CoordinatorUnavailableError.code

    def error_code(requested: TopicToCommit, partition: PartitionToCommit) -> int:
        if isinstance(error, AuthorizationError):
            return code
        return _partition_error(context, requested, partition) or code

    return TxnOffsetCommitResponse(
        throttle_time_ms=MUTE_MS if isinstance(error, CommitsThrottledError) else 0,
        topics=[
            CommittedTopic(
                requested.name,
                [
                    CommittedPartition(each.index, error_code(requested, each))
                    for each in requested.partitions
                ],
            )
            for requested in request.topics
            if requested.partitions
        ],
    )


def _is_nothing_to_commit(response: TxnOffsetCommitResponse) -> bool:
    """Whether every partition has an error that takes precedence over the others."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    return codes <= PARTITION_ERRORS


async def _admit(context: RequestContext, request: TxnOffsetCommitRequest, size_bytes: int) -> None:
    """Wait until the limits allow the commit."""
    limits, user = context.broker.commit_limits, context.client.principal.user
    if limits.try_admit(user, request.group_id, size_bytes):
        return
    try:
        await limits.wait(user, request.group_id, size_bytes)
    except CommitsThrottledError:
        context.client.throttled_ms = max(context.client.throttled_ms, MUTE_MS)
        raise


def _collect_all(
    context: RequestContext, request: TxnOffsetCommitRequest, *, quiet: bool = False
) -> _Collected:
    """The valid offsets, and the response if they are committed."""
    offsets: dict[TopicPartition, CommittedOffset] = {}
    response = TxnOffsetCommitResponse()
    for requested in request.topics:
        if requested.partitions:
            topic = _topic(context, requested, quiet=quiet)
            committed = [
                CommittedPartition(each.index, _collect(context, each, topic, offsets))
                for each in requested.partitions
            ]
            response.topics.append(CommittedTopic(requested.name, committed))
    return offsets, response


def _collect(
    context: RequestContext,
    partition: PartitionToCommit,
    topic: Topic | KafscaleError,
    offsets: dict[TopicPartition, CommittedOffset],
) -> int:
    """Add a valid offset to `offsets`; returns the error code of the partition."""
    if isinstance(topic, KafscaleError):
        return topic.code
    try:
        check_partition(topic, partition.index)
        check_metadata(context, partition.metadata)
    except KafscaleError as error:
        return error.code
    offsets[topic.name, partition.index] = CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.leader_epoch,
        metadata=partition.metadata or "",
        committed_ms=context.received_ms,
        topic_id=topic.id,
    )
    return 0


def _partition_error(
    context: RequestContext, requested: TopicToCommit, partition: PartitionToCommit
) -> int:
    """The error code of a partition, apart from the transaction; 0 if there is none."""
    topic = _topic(context, requested, quiet=True)
    if isinstance(topic, KafscaleError):
        return topic.code
    try:
        check_partition(topic, partition.index)
    except KafscaleError as error:
        return error.code
    return 0


def _topic(
    context: RequestContext, requested: TopicToCommit, *, quiet: bool
) -> Topic | KafscaleError:
    """The requested topic, or why no offset of it can be committed."""
    unknown = UnknownTopicError(f"topic {requested.name!r} does not exist")
    topic = context.broker.topic_store.find(requested.name)
    try:
        return check_topic(context, topic, requested.name, unknown, quiet=quiet)
    except KafscaleError as error:
        return error
