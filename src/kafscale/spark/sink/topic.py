"""What a task needs to know of a topic that it writes: partitions, and the maximum of a batch."""

from typing import Final, NamedTuple

from kafscale.client.client import Client, leaders_of
from kafscale.client.errors import BrokerResponseError, check, retry
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    ResourceToDescribe,
)
from kafscale.spark.codec.encoder import MESSAGE_BYTES_DEFAULT

_TOPIC_RESOURCE: Final = 2
_MESSAGE_BYTES: Final = "max.message.bytes"


class WrittenTopic(NamedTuple):
    """A topic that is written."""

    partition_count: int
    message_bytes_max: int


async def find(client: Client, name: str) -> WrittenTopic:
    """Find a topic, which brokers may create."""
    metadata = await retry(lambda: client.topic(name, create=True))
    try:
        message_bytes_max = await retry(lambda: _message_bytes_max(client, name))
    except BrokerResponseError:
        # Writing a topic does not need the permission to see its configs.
        message_bytes_max = MESSAGE_BYTES_DEFAULT
    return WrittenTopic(len(leaders_of(metadata)), message_bytes_max)


async def _message_bytes_max(client: Client, name: str) -> int:
    connection = await client.any_broker()
    if not connection.serves(DESCRIBE_CONFIGS):
        return MESSAGE_BYTES_DEFAULT
    resource = ResourceToDescribe(_TOPIC_RESOURCE, name, [_MESSAGE_BYTES])
    response = await connection.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest([resource]))
    (described,) = response.resources
    check(f"topic {name}", described.error_code, described.error_message)
    values = [each.value for each in described.configs if each.name == _MESSAGE_BYTES]
    return int(values[0]) if values and values[0] else MESSAGE_BYTES_DEFAULT
