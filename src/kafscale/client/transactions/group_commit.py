"""Commits the offsets of a consumer group with a transaction, and reads them after it.

Both retry the first connection to the group's coordinator, too: the broker that has just died may
be the coordinator, and brokers need a moment to name another.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafscale.client.client import Client
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import Pause, ProducerFencedError, UnreachableError, check, retry
from kafscale.client.group_offsets import NO_GENERATION, Committed, by_topic, committed
from kafscale.client.transactions.coordinator import (
    FIRST_PAUSE_SECONDS,
    ProducerIdentity,
    is_transient,
)
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafscale.text.topic_partition import TopicPartition

_CLASSIC_MAX: Final = 4
"""From v5 on, the request adds the group to the transaction (KIP-890)."""

_FENCED_ERRORS: Final = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH))


class GroupMembership(NamedTuple):
    """The group whose offsets are committed, and the member that consumed the records.

    With a member, the commit fails after the group has removed it (KIP-447).
    """

    group_id: str
    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class _PatientCoordinator(Coordinator):
    """The coordinator of a group, whose first connection is retried like those after it."""

    def _is_retriable(self, error: KafscaleError) -> bool:
        return isinstance(error, UnreachableError) or super()._is_retriable(error)


async def stable_offsets(
    client: Client, group_id: str, *, pause: Pause = asyncio.sleep
) -> dict[TopicPartition, Committed]:
    """Fetch all offsets of a group, after the transactions that have committed some ended."""
    async with _PatientCoordinator(client, group_id, pause=pause) as coordinator:
        return await committed(coordinator, stable=True, pause=pause)


async def commit_in_transaction(
    client: Client,
    transactional_id: str,
    producer: ProducerIdentity,
    group: GroupMembership,
    offsets: Mapping[TopicPartition, int],
    *,
    version_2: bool,
    metadata: str = "",
    pause: Pause = asyncio.sleep,
) -> None:
    """Write the offsets; they become the group's when the transaction is committed.

    The metadata is kept with each of the offsets.
    """
    topics = [
        TopicToCommit(
            name,
            [
                PartitionToCommit(index, offsets[name, index], metadata=metadata)
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets)
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=topics,
    )
    async with _PatientCoordinator(client, group.group_id, pause=pause) as coordinator:

        async def once() -> None:
            response = await coordinator.ask(
                TXN_OFFSET_COMMIT,
                request,
                _first_error,
                version_max=None if version_2 else _CLASSIC_MAX,
            )
            code = _first_error(response)
            if code in _FENCED_ERRORS:
                raise ProducerFencedError(coordinator.subject, code)
            check(coordinator.subject, code)

        await retry(once, is_transient, pause, first_seconds=FIRST_PAUSE_SECONDS)


def _first_error(response: TxnOffsetCommitResponse) -> int:
    codes = (each.error_code for topic in response.topics for each in topic.partitions)
    return next(filter(None, codes), ErrorCode.NONE)
