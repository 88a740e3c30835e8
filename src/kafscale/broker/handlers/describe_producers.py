"""DescribeProducers: v0.

Behaviour:
* The producers that a partition remembers, with the first offset of an open transaction, and the
  coordinator epoch of the newest marker. A partition of `__consumer_offsets` has the producers in
  whose transactions groups of its shard have offsets; these have no offsets of their own, so 0
  stands for the first one.
* Each partition succeeds or fails on its own. A repeated one is answered again, as in Kafka; if
  that is a lot, INVALID_REQUEST.
* Requires READ on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes: there is one version.
"""

from collections.abc import Awaitable, Iterator
from typing import Final

from kafscale.broker.group_coordinator.open_transactions import OpenTransaction
from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.repeats import Repeats
from kafscale.broker.requests.slices import Work
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.services import Services
from kafscale.broker.shared.partition_lookup import find_by_name
from kafscale.errors import GroupError, KafscaleError, NotOwnerError, UnknownTopicError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.topics import names
from kafscale.protocol.messages.describe_producers import (
    ActiveProducer,
    DescribedPartition,
    DescribedTopic,
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicToDescribe,
)
from kafscale.records.batch import NO_SEQUENCE
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.producer_state import ProducerState

PRODUCERS_AT_ONCE: Final = 500

NO_COORDINATOR: Final = -1
NO_OFFSET: Final = -1


def handle(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse | Awaitable[DescribeProducersResponse]:
    return slices.serve(context, _describe_all(context, request))


def error_response(
    _context: RequestContext, request: DescribeProducersRequest, error: KafscaleError
) -> DescribeProducersResponse:
    """The same error for every partition."""
    return DescribeProducersResponse(
        topics=[_failed_topic(topic, error) for topic in request.topics]
    )


def _failed_topic(topic: TopicToDescribe, error: KafscaleError) -> DescribedTopic:
    return DescribedTopic(
        name=topic.name, partitions=[_failed(index, error) for index in topic.partitions]
    )


def _describe_all(
    context: RequestContext, request: DescribeProducersRequest
) -> Work[DescribeProducersResponse]:
    repeats = Repeats()
    response = DescribeProducersResponse()
    for topic in request.topics:
        denied = None
        if not context.is_authorized(Operation.READ, ResourceType.TOPIC, topic.name):
            denied = authorization_error(ResourceType.TOPIC, topic.name)
        described = DescribedTopic(name=topic.name)
        response.topics.append(described)
        yield slices.ELEMENT_RESULTS
        for index in topic.partitions:
            partition = (
                _failed(index, denied)
                if denied
                else (yield from _describe(context.broker, topic.name, index, repeats))
            )
            described.partitions.append(partition)
            yield slices.ELEMENT_RESULTS + len(partition.active_producers) % PRODUCERS_AT_ONCE
    return response


def _describe(
    broker: Services, topic: str, index: int, repeats: Repeats
) -> Work[DescribedPartition]:
    try:
        repeats.check((topic, index))
        if broker.topic_store.is_internal(topic):
            active = _producers_of_shard(broker, topic, index)
        else:
            names.check(topic)
            active = _producers_of(find_by_name(broker, topic, index))
    except KafscaleError as error:
        return _failed(index, error)
    described = DescribedPartition(index=index)
    for producer in active:
        described.active_producers.append(producer)
        if len(described.active_producers) % PRODUCERS_AT_ONCE == 0:
            yield PRODUCERS_AT_ONCE
    repeats.add((topic, index), 1 + len(described.active_producers))
    return described


def _producers_of(log: PartitionLog) -> Iterator[ActiveProducer]:
    transactions = log.transactions

    def active(producer: ProducerState) -> ActiveProducer:
        opened = transactions.open.get(producer.producer_id)
        marker = transactions.marker_of(producer.producer_id)
        last_ms = producer.last_timestamp_ms
        return ActiveProducer(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp_ms=last_ms if marker is None else max(last_ms, marker.time_ms),
            coordinator_epoch=NO_COORDINATOR if marker is None else marker.coordinator_epoch,
            transaction_start_offset=NO_OFFSET if opened is None else opened.first_offset,
        )

    return map(active, log.producers.describe())


def _producers_of_shard(broker: Services, topic: str, index: int) -> Iterator[ActiveProducer]:
    found = broker.topic_store.find(topic)
    if found is None or not 0 <= index < found.partitions:
        raise UnknownTopicError
    try:
        opened = broker.groups.open_transactions(index)
    except GroupError as error:
        # The leader is the coordinator of the shard. Its log need not be opened for this.
        raise NotOwnerError(str(error)) from error

    def active(transaction: OpenTransaction) -> ActiveProducer:
        transactions = broker.groups.registry.open_transactions
        epoch = transactions.coordinator_epoch(index, transaction.producer_id)
        return ActiveProducer(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            last_sequence=NO_SEQUENCE,
            last_timestamp_ms=transaction.started_ms,
            coordinator_epoch=NO_COORDINATOR if epoch is None else epoch,
            transaction_start_offset=0,
        )

    return map(active, opened)


def _failed(index: int, error: KafscaleError) -> DescribedPartition:
    return DescribedPartition(index=index, error_code=error.code, error_message=str(error))
