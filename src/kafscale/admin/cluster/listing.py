"""Lists the topics and groups of a cluster over Kafka's protocol.

Invariants: each broker has `POLL_SECONDS_MAX` to respond, and the number of described groups is
bounded. If a broker does not respond, its groups are missing and the listing says so.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.admin.cluster.broker import POLL_SECONDS_MAX
from kafscale.client.client import Client
from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError, check
from kafscale.errors import KafscaleError
from kafscale.groups.model import GroupType
from kafscale.net.address import Address
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse

GROUPS_DESCRIBED_MAX: Final = 500
"""Per broker; the member count of further groups is unknown."""
GROUPS_MAX: Final = 10_000


class TopicSummary(msgspec.Struct, frozen=True, gc=False):
    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int


class GroupSummary(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    group: str
    type: str
    state: str
    protocol_type: str
    member_count: int | None
    """None if it was not requested or the broker did not return it."""


class Listing(msgspec.Struct, frozen=True):
    """All topics and groups at one time."""

    source: Address
    """The broker that returned the topics."""
    addresses: tuple[Address, ...]
    """The advertised addresses of the brokers."""
    topics: dict[str, TopicSummary]
    groups: dict[str, GroupSummary]
    problems: tuple[str, ...]
    """Why groups may be missing."""


async def list_topics_and_groups(client: Client, addresses: Sequence[Address]) -> Listing:
    """List all topics and groups, starting at the first address that responds."""
    source, metadata = await _metadata(client, addresses)
    brokers = [Address(each.host, each.port) for each in metadata.brokers]
    responses = await asyncio.gather(*(_groups(client, each) for each in brokers))
    groups: dict[str, GroupSummary] = {}
    problems = []
    for response in responses:
        if isinstance(response, KafscaleError):
            problems.append(str(response))
        else:
            groups |= {each.group: each for each in response}
    return Listing(
        source=source,
        addresses=tuple(brokers),
        topics=_topics(metadata),
        groups=dict(sorted(groups.items())[:GROUPS_MAX]),
        problems=tuple(problems),
    )


async def _metadata(
    client: Client, addresses: Sequence[Address]
) -> tuple[Address, MetadataResponse]:
    problems: dict[str, None] = {}
    for address in addresses:
        try:
            async with asyncio.timeout(POLL_SECONDS_MAX):
                connection = await client.connect(address)
                response = await connection.ask(
                    METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False)
                )
        except TimeoutError:
            problems[f"no response from {address} within {POLL_SECONDS_MAX:g} s"] = None
        except UnreachableError as error:
            problems[str(error)] = None
        else:
            check(f"the broker at {address}", response.error_code)
            return address, response
    raise UnreachableError("\n".join(problems) or "no bootstrap address is set")


def _topics(response: MetadataResponse) -> dict[str, TopicSummary]:
    listed = (
        TopicSummary(
            name=topic.name or "",
            topic_id=topic.topic_id.hex(),
            internal=topic.is_internal,
            partition_count=len(topic.partitions),
            leaderless_count=sum(each.leader_id < 0 for each in topic.partitions),
        )
        for topic in response.topics
    )
    return {each.name: each for each in sorted(listed, key=lambda each: each.name)}


async def _groups(client: Client, address: Address) -> list[GroupSummary] | KafscaleError:
    try:
        async with asyncio.timeout(POLL_SECONDS_MAX):
            connection = await client.connect(address)
            response = await connection.ask(LIST_GROUPS, ListGroupsRequest())
            check(f"the broker at {address}", response.error_code)
            counts = await _member_counts(connection, response.groups)
    except TimeoutError:
        return KafscaleError(f"{address} did not list its groups within {POLL_SECONDS_MAX:g} s")
    except KafscaleError as error:
        return error
    return [
        GroupSummary(
            group=each.group_id,
            type=_type(each),
            state=each.group_state,
            protocol_type=each.protocol_type,
            member_count=counts.get(each.group_id),
        )
        for each in response.groups
    ]


async def _member_counts(connection: Connection, listed: Sequence[ListedGroup]) -> dict[str, int]:
    """The member counts of the groups that this broker coordinates."""
    chosen = listed[:GROUPS_DESCRIBED_MAX]
    counts: dict[str, int] = {}
    if classic := _ids(each for each in chosen if _type(each) != GroupType.CONSUMER.value):
        described = await connection.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(group_ids=classic))
        counts |= {g.group_id: len(g.members) for g in described.groups if not g.error_code}
    if consumer := _ids(each for each in chosen if _type(each) == GroupType.CONSUMER.value):
        request = ConsumerGroupDescribeRequest(group_ids=consumer)
        described_consumer = await connection.ask(CONSUMER_GROUP_DESCRIBE, request)
        counts |= {
            g.group_id: len(g.members) for g in described_consumer.groups if not g.error_code
        }
    return counts


def _ids(groups: Iterable[ListedGroup]) -> list[str]:
    return [each.group_id for each in groups]


def _type(group: ListedGroup) -> str:
    return group.group_type.lower() or GroupType.CLASSIC.value
