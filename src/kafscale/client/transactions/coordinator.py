"""The requests of a producer to the coordinator of its transactional id.

Both protocols are here: the classic one, in which partitions and groups are added to a transaction
before they are written, and the one of `transaction.version` 2 (KIP-890), in which brokers add them
and each end of a transaction raises the producer's epoch.

Requests are retried while the coordinator moves or still writes the markers of the last
transaction. All of them may be repeated: coordinators recognize the repetition.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Self

from kafscale.client.client import Client
from kafscale.client.coordinator import COORDINATOR_MOVED_ERRORS, Coordinator, CoordinatorKind
from kafscale.client.errors import BrokerResponseError, Pause, ProducerFencedError, check, retry
from kafscale.client.group_offsets import by_topic
from kafscale.errors import KafscaleError
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TopicToAdd,
)
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafscale.text.topic_partition import TopicPartition

FEATURE: Final = "transaction.version"
VERSION_2: Final = 2

FIRST_PAUSE_SECONDS: Final = 0.02
"""The markers of a transaction are usually written within milliseconds."""

_ADD_PARTITIONS_BY_PRODUCERS_MAX: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers."""

_END_CLASSIC_MAX: Final = 4
_FENCED_ERRORS: Final = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH))


class ProducerIdentity(NamedTuple):
    """The id of a producer, and its epoch."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER: Final = ProducerIdentity()


class TransactionCoordinator:
    """The coordinator of one transactional id. An asynchronous context manager."""

    def __init__(
        self, client: Client, transactional_id: str, *, pause: Pause = asyncio.sleep
    ) -> None:
        self.transactional_id = transactional_id
        self._pause = pause
        self._coordinator = Coordinator(
            client, transactional_id, CoordinatorKind.TRANSACTION, pause=pause
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exit_details: object) -> None:
        await self._coordinator.__aexit__(*exit_details)

    async def version(self) -> int:
        """The `transaction.version` that the cluster has finalized."""
        return await self._coordinator.feature_level(FEATURE)

    async def init(
        self, timeout_ms: int, current: ProducerIdentity = NO_PRODUCER
    ) -> ProducerIdentity:
        """Get a producer id with a new epoch; other producers of the transactional id are fenced.

        With the current identity, the request is of the producer itself (KIP-360): it fails if
        another one has taken over.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=current.producer_id,
            producer_epoch=current.producer_epoch,
        )
        response = await self._ask(INIT_PRODUCER_ID, request, lambda each: each.error_code)
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def add_partitions(
        self, producer: ProducerIdentity, topic_partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction; in the classic protocol, before they are written."""
        request = AddPartitionsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[TopicToAdd(name, indexes) for name, indexes in by_topic(topic_partitions)],
        )
        await self._ask(
            ADD_PARTITIONS_TO_TXN,
            request,
            _add_partitions_code,
            version_max=_ADD_PARTITIONS_BY_PRODUCERS_MAX,
        )

    async def add_group(self, producer: ProducerIdentity, group_id: str) -> None:
        """Add the offsets of a group; in the classic protocol, before they are committed."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group_id,
        )
        await self._ask(ADD_OFFSETS_TO_TXN, request, lambda each: each.error_code)

    async def end(
        self, producer: ProducerIdentity, *, committed: bool, version_2: bool
    ) -> ProducerIdentity:
        """Commit or abort the transaction; return the identity for the next one."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
        )
        version_max = None if version_2 else _END_CLASSIC_MAX
        response = await self._ask(
            END_TXN, request, lambda each: each.error_code, version_max=version_max
        )
        if response.producer_id == NO_PRODUCER_ID:
            return producer
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def _ask(
        self,
        api: Api[Request, Response],
        request: Request,
        code_of: Callable[[Response], int],
        *,
        version_max: int | None = None,
    ) -> Response:
        """Send a request; retry it while the coordinator is not ready for it."""

        async def once() -> Response:
            response = await self._coordinator.ask(api, request, code_of, version_max=version_max)
            code = code_of(response)
            if code in _FENCED_ERRORS:
                raise ProducerFencedError(self._coordinator.subject, code)
            check(self._coordinator.subject, code)
            return response

        return await retry(once, is_transient, self._pause, first_seconds=FIRST_PAUSE_SECONDS)


def is_transient(error: KafscaleError) -> bool:
    """Whether a coordinator may do the same later; `Coordinator` retries after it has moved."""
    return (
        isinstance(error, BrokerResponseError)
        and error.error_code.retriable
        and error.error_code not in COORDINATOR_MOVED_ERRORS
    )


def _add_partitions_code(response: AddPartitionsToTxnResponse) -> int:
    """The first error; OPERATION_NOT_ATTEMPTED only says that another partition has one."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    codes.discard(ErrorCode.NONE)
    causes = codes - {ErrorCode.OPERATION_NOT_ATTEMPTED} or codes
    return min(causes, key=_is_retriable, default=ErrorCode.NONE)


def _is_retriable(code: int) -> bool:
    return ErrorCode.of(code).retriable
