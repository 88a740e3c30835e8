"""WriteTxnMarkers: v1.

Behaviour:
* Ends the transaction of a producer in partitions that this broker leads. Administrators send it to
  abort a transaction that no coordinator knows (`kafka-transactions.sh abort`); brokers have the
  control plane for it. Each partition succeeds or fails on its own; the response is sent when the
  markers are durable.
* Requires ALTER or CLUSTER_ACTION on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes: there is one version.
"""

import asyncio
from collections.abc import Mapping, Sequence

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.errors import KafscaleError, UnknownTopicError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.error_codes import error_code_of
from kafscale.protocol.messages.write_txn_markers import (
    MarkedPartition,
    MarkedTopic,
    MarkerToWrite,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from kafscale.text.topic_partition import TopicPartition


async def handle(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    if not context.is_authorized(Operation.ALTER, ResourceType.CLUSTER, quiet=True):
        context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    markers = await asyncio.gather(
        *(_write(context, each) for each in request.markers if _names_partitions(each))
    )
    return WriteTxnMarkersResponse(markers=list(markers))


def error_response(
    _context: RequestContext, request: WriteTxnMarkersRequest, error: KafscaleError
) -> WriteTxnMarkersResponse:
    """The same error for every partition."""
    return WriteTxnMarkersResponse(
        markers=[_written(marker, {}, error.code) for marker in request.markers]
    )


def _names_partitions(marker: MarkerToWrite) -> bool:
    """Whether a marker is for any partition; the response leaves out others, as in Kafka."""
    return any(topic.partitions for topic in marker.topics)


async def _write(context: RequestContext, marker: MarkerToWrite) -> WrittenMarker:
    partitions = [(topic.name, index) for topic in marker.topics for index in topic.partitions]
    known = [each for each in partitions if _exists(context, each)]
    results = await context.broker.transactions.writer.write(
        Marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.committed,
            known,
        )
    )
    codes = dict(zip(known, map(error_code_of, results), strict=True))
    context.broker.audit.changed(
        context,
        "transaction ended",
        producer_id=marker.producer_id,
        partitions=_names(known),
        committed=marker.committed,
    )
    return _written(marker, codes, UnknownTopicError.code)


def _exists(context: RequestContext, topic_partition: TopicPartition) -> bool:
    name, index = topic_partition
    topic = context.broker.topic_store.find(name)
    return topic is not None and 0 <= index < topic.partitions


def _names(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(f"{topic}/{index}" for topic, index in partitions)


def _written(
    marker: MarkerToWrite, codes: Mapping[TopicPartition, int], default: int
) -> WrittenMarker:
    return WrittenMarker(
        producer_id=marker.producer_id,
        topics=[
            MarkedTopic(
                topic.name,
                [
                    MarkedPartition(index, codes.get((topic.name, index), default))
                    for index in topic.partitions
                ],
            )
            for topic in marker.topics
        ],
    )
