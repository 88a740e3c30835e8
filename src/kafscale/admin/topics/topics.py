"""What `kafscale topic` asks of a cluster, as plain data: the form in which programs get it."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kafscale.client import topics as client_topics
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, Client, leaders_of
from kafscale.client.errors import AnsweredError, check
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

Data = dict[str, Any]

TIMEOUT_MS: Final = 30_000
TOPIC_RESOURCE: Final = 2
TOPIC_SOURCE: Final = 1
_SET, _DELETE = 0, 1


async def create(
    client: Client,
    name: str,
    partition_count: int | None,
    configs: dict[str, str],
    *,
    exists_ok: bool,
) -> Data | None:
    """Create a topic: what it became, or None where it exists and that is fine."""
    count = await client_topics.create(client, name, partition_count, configs, exists_ok=exists_ok)
    return None if count is None else {"name": name, "partitionCount": count}


async def list_all(client: Client) -> list[Data]:
    """Every topic, by name."""
    response = await client.metadata(None)
    return sorted(
        (
            {
                "name": topic.name,
                "topicId": topic.topic_id.hex(),
                "partitionCount": len(topic.partitions),
                "internal": topic.is_internal,
            }
            for topic in response.topics
        ),
        key=lambda topic: str(topic["name"]),
    )


async def describe(client: Client, names: Sequence[str]) -> list[Data]:
    """Everything that the cluster tells about these topics; about all of them, without names."""
    response = await client.metadata(list(names) or None)
    for topic in response.topics:
        check(f"topic {topic.name}", topic.error_code)
    topics = sorted(response.topics, key=lambda topic: topic.name or "")
    if not topics:
        return []
    sizes, configs, *offsets = await asyncio.gather(
        _sizes(client, topics), _configs(client, topics), *(_offsets(client, t) for t in topics)
    )
    return [
        {
            "name": topic.name,
            "topicId": topic.topic_id.hex(),
            "internal": topic.is_internal,
            "configs": configs.get(topic.name, {}),
            "partitions": [
                {
                    "partition": partition.index,
                    "leader": partition.leader_id if partition.leader_id >= 0 else None,
                    "leaderEpoch": partition.leader_epoch,
                    "startOffset": starts.get(partition.index),
                    "endOffset": ends.get(partition.index),
                    "sizeBytes": sizes.get((topic.name, partition.index)),
                }
                for partition in sorted(topic.partitions, key=lambda each: each.index)
            ],
        }
        for topic, (starts, ends) in zip(topics, offsets, strict=True)
    ]


async def delete(
    client: Client, names: Sequence[str], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Delete topics: the names of those that were there, and what is wrong with the others."""
    deleted, problems = [], []
    for topic in await _delete(client, list(dict.fromkeys(names))):
        if missing_ok and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        try:
            check(f"topic {topic.name}", topic.error_code, topic.error_message)
            deleted.append(topic.name or "")
        except AnsweredError as error:
            problems.append(str(error))
    return deleted, problems


async def delete_one(client: Client, name: str) -> None:
    """Delete a topic, which has to be there."""
    (topic,) = await _delete(client, [name])
    check(f"topic {name}", topic.error_code, topic.error_message)


async def alter_configs(
    client: Client, name: str, configs: dict[str, str], deleted: Sequence[str]
) -> None:
    """Set some configs of a topic, and take others back to their defaults."""
    changes = [ConfigToAlter(key, _SET, value) for key, value in configs.items()]
    changes += [ConfigToAlter(key, _DELETE, None) for key in deleted]
    resource = ResourceToAlter(TOPIC_RESOURCE, name, changes)
    response = await client.ask_controller(
        INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource])
    )
    (altered,) = response.resources
    check(f"topic {name}", altered.error_code, altered.error_message)


async def grow(client: Client, name: str, partition_count: int) -> None:
    """Give a topic more partitions."""
    request = CreatePartitionsRequest(
        topics=[TopicToGrow(name, partition_count, None)], timeout_ms=TIMEOUT_MS
    )
    response = await client.ask_controller(
        CREATE_PARTITIONS, request, wait_seconds=TIMEOUT_MS / 1000
    )
    (grown,) = response.topics
    check(f"topic {name}", grown.error_code, grown.error_message)


async def _delete(client: Client, names: list[str]) -> list[DeletedTopic]:
    request = DeleteTopicsRequest(
        topics=[TopicToDelete(name) for name in names], topic_names=names, timeout_ms=TIMEOUT_MS
    )
    response = await client.ask_controller(DELETE_TOPICS, request, wait_seconds=TIMEOUT_MS / 1000)
    return response.topics


async def _offsets(client: Client, topic: TopicMetadata) -> tuple[dict[int, int], dict[int, int]]:
    """Where each partition begins and ends; those without a leader are left out."""
    led = [index for index, leader_id in leaders_of(topic).items() if leader_id >= 0]
    starts, ends = await asyncio.gather(
        client.offsets(topic, dict.fromkeys(led, EARLIEST_TIME)),
        client.offsets(topic, dict.fromkeys(led, LATEST_TIME)),
    )
    return starts, ends


async def _configs(client: Client, topics: Sequence[TopicMetadata]) -> dict[str, dict[str, Any]]:
    """What is set for the topics themselves, where the brokers tell."""
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


async def _sizes(client: Client, topics: Sequence[TopicMetadata]) -> dict[tuple[str, int], int]:
    """What partitions take of the store, where the brokers tell."""
    asked = [
        TopicToMeasure(topic.name or "", [each.index for each in topic.partitions])
        for topic in topics
    ]
    sizes: dict[tuple[str, int], int] = {}
    for node_id in client.broker_ids:
        connection = await client.broker(node_id)
        if not connection.serves(DESCRIBE_LOG_DIRS):
            continue
        response = await connection.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=asked))
        for directory in response.log_dirs:
            for topic in directory.topics:
                for each in topic.partitions:
                    key = topic.name, each.index
                    sizes[key] = max(sizes.get(key, 0), each.size_bytes)
    return sizes
