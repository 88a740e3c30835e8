"""What handlers of transactional requests share: limits, checks of partitions, codes by version."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from kafscale.broker.group_coordinator.commit_limits import MUTE_MS
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import (
    CommitsThrottledError,
    InvalidProducerEpochError,
    KafscaleError,
    ProducerFencedError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.topics import names
from kafscale.protocol.error_codes import ErrorCode
from kafscale.text.topic_partition import TopicPartition

RECORD_BYTES: Final = 400
"""What a transactional id takes in etcd for each transaction, besides its partitions: two values,
and etcd's own."""

TOPIC_BYTES: Final = 10
PARTITION_BYTES: Final = 3
"""What topics, besides their names, and partitions take in a record."""


async def admit(
    context: RequestContext, transactional_id: str, partitions: Collection[TopicPartition] = ()
) -> None:
    """Wait until the coordinator may write a transaction to the metadata store.

    It counts like offset commits, so that no user can fill etcd; raises `CommitsThrottledError`,
    which clients retry. Adding partitions writes those of the whole transaction again. The end of a
    transaction, which writes them once more, is never refused: it counts when they are added.
    """
    user, limits = context.client.principal.user, context.broker.commit_limits
    size_bytes = RECORD_BYTES + 2 * len(transactional_id) + 2 * _record_bytes(partitions)
    if partitions:
        # As far as this broker coordinates it.
        with suppress(KafscaleError):
            record = context.broker.transactions.coordinator.describe(transactional_id)
            size_bytes += _record_bytes(record.partitions)
    if limits.try_admit(user, transactional_id, size_bytes):
        return
    try:
        await limits.wait(user, transactional_id, size_bytes)
    except CommitsThrottledError:
        context.client.throttled_ms = max(context.client.throttled_ms, MUTE_MS)
        raise


def _record_bytes(partitions: Collection[TopicPartition]) -> int:
    """What partitions take in the record of a transaction, roughly."""
    topics = {topic for topic, _ in partitions}
    return sum(TOPIC_BYTES + len(topic) for topic in topics) + PARTITION_BYTES * len(partitions)


def error_code(context: RequestContext, error: KafscaleError, fenced_since: int) -> int:
    """The code of an error; clients before `fenced_since` do not know PRODUCER_FENCED (KIP-588)."""
    if isinstance(error, ProducerFencedError) and context.version < fenced_since:
        return InvalidProducerEpochError.code
    return error.code


def partition_errors(
    context: RequestContext, topic_partitions: Iterable[TopicPartition], *, is_client: bool
) -> dict[TopicPartition, int]:
    """The codes of partitions that cannot be in a transaction.

    If there are any, the others get OPERATION_NOT_ATTEMPTED. Only clients have to be authorized for
    the topics; internal topics are not theirs, whether they exist yet or not.
    """
    topic_store = context.broker.topic_store
    codes: dict[TopicPartition, int] = {}
    authorized: dict[str, bool] = {}
    requested = list(topic_partitions)
    for name, index in requested:
        if is_client and name not in authorized:
            authorized[name] = name not in names.INTERNAL and context.is_authorized(
                Operation.WRITE, ResourceType.TOPIC, name
            )
        topic = topic_store.find(name)
        if is_client and not authorized[name]:
            codes[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= index < topic.partitions:
            codes[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if codes:
        for topic_partition in requested:
            codes.setdefault(topic_partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
    return codes
