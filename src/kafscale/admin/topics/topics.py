"""Create, list, describe, alter and delete topics."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.client import topics as client_topics
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, Client, leaders_of
from kafscale.client.errors import BrokerResponseError, check
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    TopicToGrow,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeletedTopic,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.protocol.messages.describe_log_dirs import DESCRIBE_LOG_DIRS, DescribeLogDirsRequest
from kafscale.protocol.messages.describe_log_dirs import TopicToDescribe as TopicToMeasure
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.topic_partition import TopicPartition

TIMEOUT_MS: Final = 30_000
TOPIC_RESOURCE: Final = 2
TOPIC_SOURCE: Final = 1
_SET, _DELETE = 0, 1


class CreatedTopic(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    partition_count: int


class ListedTopic(msgspec.Struct, frozen=True, rename="camel"):
    name: str | None
    topic_id: str
    partition_count: int
    internal: bool


class PartitionOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """A partition; what no broker returned is None."""

    partition: int
    leader: int | None
    leader_epoch: int
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None


class DescribedTopic(msgspec.Struct, frozen=True, rename="camel"):
    name: str | None
    topic_id: str
    internal: bool
    configs: dict[str, str | None]
    """Configs that are set for this topic."""
    partitions: list[PartitionOffsets]


async def create(
    client: Client,
    name: str,
    partition_count: int | None,
    configs: dict[str, str],
    *,
    exists_ok: bool,
) -> CreatedTopic | None:
    """Create a topic; None if it exists already and `exists_ok` is set."""
    count = await client_topics.create(client, name, partition_count, configs, exists_ok=exists_ok)
    return None if count is None else CreatedTopic(name, count)


async def list_all(client: Client) -> list[ListedTopic]:
    """All topics by name."""
    response = await client.metadata(None)
    return sorted(
        (
            ListedTopic(
                name=topic.name,
                topic_id=topic.topic_id.hex(),
                partition_count=len(topic.partitions),
                internal=topic.is_internal,
            )
            for topic in response.topics
        ),
        key=lambda topic: str(topic.name),
    )


async def describe(client: Client, names: Sequence[str]) -> list[DescribedTopic]:
    """Describe these topics; all but internal ones if no names are given."""
    response = await client.metadata(list(names) or None)
    for topic in response.topics:
        check(f"topic {topic.name}", topic.error_code)
    found = [topic for topic in response.topics if names or not topic.is_internal]
    topics = sorted(found, key=lambda topic: topic.name or "")
    if not topics:
        return []
    sizes, configs, offsets = await asyncio.gather(
        _sizes(client, topics),
        _configs(client, topics),
        asyncio.gather(*(_offsets(client, topic) for topic in topics)),
    )
    return [
        DescribedTopic(
            name=topic.name,
            topic_id=topic.topic_id.hex(),
            internal=topic.is_internal,
            configs=configs.get(topic.name or "", {}),
            partitions=[
                PartitionOffsets(
                    partition=partition.index,
                    leader=partition.leader_id if partition.leader_id >= 0 else None,
                    leader_epoch=partition.leader_epoch,
                    start_offset=starts.get(partition.index),
                    end_offset=ends.get(partition.index),
                    size_bytes=sizes.get((topic.name or "", partition.index)),
                )
                for partition in sorted(topic.partitions, key=lambda each: each.index)
            ],
        )
        for topic, (starts, ends) in zip(topics, offsets, strict=True)
    ]


async def delete(
    client: Client, names: Sequence[str], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Delete topics; return the deleted names and the problems of the others."""
    deleted, problems = [], []
    for topic in await _delete(client, list(dict.fromkeys(names))):
        if missing_ok and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        try:
            check(f"topic {topic.name}", topic.error_code, topic.error_message)
            deleted.append(topic.name or "")
        except BrokerResponseError as error:
            problems.append(str(error))
    return deleted, problems


async def delete_one(client: Client, name: str) -> None:
    """Delete a topic; raise an error if it does not exist."""
    (topic,) = await _delete(client, [name])
    check(f"topic {name}", topic.error_code, topic.error_message)


async def alter_configs(
    client: Client, name: str, configs: dict[str, str], deleted: Sequence[str]
) -> None:
    """Set some configs of a topic, and reset others to their defaults."""
    changes = [ConfigToAlter(key, _SET, value) for key, value in configs.items()]
    changes += [ConfigToAlter(key, _DELETE, None) for key in deleted]
    resource = ResourceToAlter(TOPIC_RESOURCE, name, changes)
    response = await client.ask_controller(
        INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource])
    )
    (altered,) = response.resources
    check(f"topic {name}", altered.error_code, altered.error_message)


async def create_partitions(client: Client, name: str, partition_count: int) -> None:
    """Increase the number of partitions of a topic."""
    request = CreatePartitionsRequest(
        topics=[TopicToGrow(name, partition_count, None)], timeout_ms=TIMEOUT_MS
    )
    response = await client.ask_controller(
        CREATE_PARTITIONS, request, wait_seconds=TIMEOUT_MS / 1000
    )
    (result,) = response.topics
    check(f"topic {name}", result.error_code, result.error_message)


async def _delete(client: Client, names: list[str]) -> list[DeletedTopic]:
    request = DeleteTopicsRequest(
        topics=[TopicToDelete(name) for name in names], topic_names=names, timeout_ms=TIMEOUT_MS
    )
    response = await client.ask_controller(DELETE_TOPICS, request, wait_seconds=TIMEOUT_MS / 1000)
    return response.topics


async def _offsets(client: Client, topic: TopicMetadata) -> tuple[dict[int, int], dict[int, int]]:
    """The start and end offsets of the partitions that have a leader."""
    with_leader = [index for index, leader_id in leaders_of(topic).items() if leader_id >= 0]
    starts, ends = await asyncio.gather(
        client.offsets(topic, dict.fromkeys(with_leader, EARLIEST_TIME)),
        client.offsets(topic, dict.fromkeys(with_leader, LATEST_TIME)),
    )
    return starts, ends


async def _configs(
    client: Client, topics: Sequence[TopicMetadata]
) -> dict[str, dict[str, str | None]]:
    """The configs set for each topic; empty if the brokers do not support DescribeConfigs."""
    connection = await client.any_broker()
    if not connection.serves(DESCRIBE_CONFIGS):
        return {}
    resources = [ResourceToDescribe(TOPIC_RESOURCE, topic.name or "", None) for topic in topics]
    response = await connection.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    return {
        resource.resource_name: {
            config.name: config.value
            for config in resource.configs
            if config.source == TOPIC_SOURCE
        }
        for resource in response.resources
    }


async def _sizes(client: Client, topics: Sequence[TopicMetadata]) -> dict[TopicPartition, int]:
    """The size of partitions, from brokers that support DescribeLogDirs."""
    requested = [
        TopicToMeasure(topic.name or "", [each.index for each in topic.partitions])
        for topic in topics
    ]
    sizes: dict[TopicPartition, int] = {}
    for node_id in client.broker_ids:
        connection = await client.broker(node_id)
        if not connection.serves(DESCRIBE_LOG_DIRS):
            continue
        response = await connection.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=requested))
        for directory in response.log_dirs:
            for topic in directory.topics:
                for each in topic.partitions:
                    key = topic.name, each.index
                    sizes[key] = max(sizes.get(key, 0), each.size_bytes)
    return sizes
