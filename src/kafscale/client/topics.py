"""Creating topics, and finding them when they can be written to."""

from collections.abc import Mapping
from typing import Final

from kafscale.client.client import NO_LEADER, Client, leaders_of
from kafscale.client.errors import AnsweredError, check
from kafscale.client.retry import retried
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
    """Create a topic: how many partitions it got, or None where it exists and that is fine."""
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
    """A topic, as it is now; None if there is none."""
    try:
        return await client.topic(name)
    except AnsweredError as error:
        if error.answer == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise


async def led(client: Client, name: str) -> TopicMetadata:
    """A topic that exists, once all of its partitions have leaders."""

    async def once() -> TopicMetadata:
        topic = await client.topic(name)
        if NO_LEADER in leaders_of(topic).values():
            raise AnsweredError(f"topic {name}", ErrorCode.LEADER_NOT_AVAILABLE)
        return topic

    def may_come(error: Exception) -> bool:
        # A topic that was just created need not be known to every broker yet.
        return isinstance(error, AnsweredError) and (
            error.answer.retriable or error.answer == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )

    return await retried(once, may_come)
