"""Metadata (3): the brokers of the cluster, and the topics with the leaders of their partitions.

Version notes:
* v0: no topics named means all of them. From v1 on null means all, and an empty array none.
* v1: racks, the controller, whether a topic is internal.
* v2: cluster id (KIP-78).
* v3: throttle time (KIP-124).
* v4: the client may disable automatic topic creation.
* v5: replicas that are offline (KIP-112).
* v6: a throttled response is sent first and the client muted afterwards (KIP-219).
* v7: leader epochs (KIP-320).
* v8: authorized operations of the cluster and of topics, if requested (KIP-430).
* v9: flexible.
* v10: topic ids in the response; those in the request must not be used (KIP-516).
* v11: authorized operations of the cluster move to DescribeCluster (KIP-700).
* v12: topics may be requested by id, with a null name; the response may have null names, too.
* v13: an error of the whole response, which makes clients bootstrap again (KIP-1102).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    nullable,
    since,
)


class TopicToDescribe(Message):
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    name: Annotated[String | None, nullable(since=10)] = ""
    """None where the topic is requested by its id."""


class MetadataRequest(Message):
    topics: Annotated[list[TopicToDescribe] | None, nullable(since=1)] = []
    """None for all topics; in v0 an empty array means all."""
    allow_auto_topic_creation: Annotated[Boolean, since(4)] = True
    include_cluster_authorized_operations: Annotated[Boolean, since(8, until=10)] = False
    include_topic_authorized_operations: Annotated[Boolean, since(8)] = False


class Broker(Message):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, since(1)] = None


class PartitionMetadata(Message):
    error_code: Int16 = 0
    index: Int32 = 0
    leader_id: Int32 = 0
    """-1 where no broker leads."""
    leader_epoch: Annotated[Int32, since(7)] = -1
    replicas: list[Int32] = []
    in_sync_replicas: list[Int32] = []
    offline_replicas: Annotated[list[Int32], since(5)] = []


class TopicMetadata(Message):
    error_code: Int16 = 0
    name: Annotated[String | None, nullable(since=12)] = ""
    """None if no topic has the requested id."""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    is_internal: Annotated[Boolean, since(1)] = False
    partitions: list[PartitionMetadata] = []
    authorized_operations: Annotated[Int32, since(8)] = -0x8000_0000
    """One bit per operation; the default means that they were not requested."""


class MetadataResponse(Message):
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: list[Broker] = []
    cluster_id: Annotated[String | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: list[TopicMetadata] = []
    cluster_authorized_operations: Annotated[Int32, since(8, until=10)] = -0x8000_0000
    """One bit per operation; the default means that they were not requested."""
    error_code: Annotated[Int16, since(13)] = 0


METADATA = Api(3, "Metadata", MetadataRequest, MetadataResponse, 13, flexible_since=9)
