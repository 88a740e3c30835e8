"""Creates topics, and waits until they have leaders."""

from collections.abc import Mapping
from typing import Final

from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import BrokerResponseError, check, retry
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicConfig,
    TopicToCreate,
)
from kafscale.protocol.messages.metadata import TopicMetadata

TIMEOUT_MS: Final = 30_000
BROKERS_DEFAULT: Final = -1


async def create(
    client: Client,
    name: str,
    partition_count: int | None,
    configs: Mapping[str, str],
    *,
    exists_ok: bool,
) -> int | None:
    """Create a topic and return its partition count; None if it exists and `exists_ok` is set."""
    topic = TopicToCreate(
        name=name,
        partition_count=partition_count or BROKERS_DEFAULT,
        replication_factor=BROKERS_DEFAULT,
        configs=[TopicConfig(key, value) for key, value in configs.items()],
    )
    response = await client.ask_controller(
        CREATE_TOPICS,
        CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS),
        wait_seconds=TIMEOUT_MS / 1000,
    )
    (created,) = response.topics
    if exists_ok and created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return None
    check(f"topic {name}", created.error_code, created.error_message)
    return created.partition_count


async def find(client: Client, name: str) -> TopicMetadata | None:
    """Fetch the metadata of a topic; None if it does not exist."""
    try:
        return await client.topic(name)
    except BrokerResponseError as error:
        if error.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise


async def wait_for_leaders(client: Client, name: str) -> TopicMetadata:
    """Fetch the metadata of a topic when all of its partitions have leaders."""

    async def once() -> TopicMetadata:
        topic = await client.topic(name)
        if NO_LEADER in leaders_of(topic).values():
            raise BrokerResponseError(f"topic {name}", ErrorCode.LEADER_NOT_AVAILABLE)
        return topic

    def should_retry(error: Exception) -> bool:
        # Some brokers may not know a new topic yet.
        return isinstance(error, BrokerResponseError) and (
            error.error_code.retriable or error.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    return await retry(once, should_retry)
