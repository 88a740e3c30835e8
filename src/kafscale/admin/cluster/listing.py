"""The topics and groups of a cluster, as Kafka's protocol names them: what lists show.

The law: no broker is waited for longer than `LOOK_SECONDS_MAX`, and how many groups are described
has a bound. What a broker that hangs would have told of groups is missing then, and is said to be.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.admin.cluster.broker import LOOK_SECONDS_MAX
from kafscale.client.client import Client
from kafscale.client.connection import Connection
from kafscale.client.errors import UnreachableError, check
from kafscale.errors import KafscaleError
from kafscale.groups.model import Kind
from kafscale.net.host_port import Address
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse

GROUPS_DESCRIBED_MAX: Final = 500
"""Of one broker; how many members others have is not known."""
GROUPS_MAX: Final = 10_000


class ListedTopic(msgspec.Struct, frozen=True, gc=False):
    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int


class GroupLook(msgspec.Struct, frozen=True, gc=False):
    group: str
    type: str
    state: str
    protocol_type: str
    member_count: int | None
    """None where it was not asked for, or there is no answer."""


class Listing(msgspec.Struct, frozen=True):
    """All topics and groups at one moment."""

    asked: Address
    """The broker that has told of the topics."""
    addresses: tuple[Address, ...]
    """Where clients are told to find the brokers."""
    topics: dict[str, ListedTopic]
    groups: dict[str, GroupLook]
    problems: tuple[str, ...]
    """Why some groups may be missing."""


async def list_everything(client: Client, addresses: Sequence[Address]) -> Listing:
    """All topics and groups, asked at the first of these addresses that answers."""
    asked, response = await _metadata(client, addresses)
    brokers = [Address(each.host, each.port) for each in response.brokers]
    answers = await asyncio.gather(*(_groups(client, each) for each in brokers))
    groups: dict[str, GroupLook] = {}
    problems = []
    for answer in answers:
        if isinstance(answer, KafscaleError):
            problems.append(str(answer))
        else:
            groups |= {each.group: each for each in answer}
    return Listing(
        asked=asked,
        addresses=tuple(brokers),
        topics=_topics(response),
        groups=dict(sorted(groups.items())[:GROUPS_MAX]),
        problems=tuple(problems),
    )


async def _metadata(
    client: Client, addresses: Sequence[Address]
) -> tuple[Address, MetadataResponse]:
    problems: dict[str, None] = {}
    for address in addresses:
        try:
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                connection = await client.connect(address)
                response = await connection.ask(
                    METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False)
                )
        except TimeoutError:
            problems[f"{address} does not answer within {LOOK_SECONDS_MAX:g} s"] = None
        except UnreachableError as error:
            problems[str(error)] = None
        else:
            check(f"the broker at {address}", response.error_code)
            return address, response
    raise UnreachableError("\n".join(problems) or "no broker is named to be asked")


def _topics(response: MetadataResponse) -> dict[str, ListedTopic]:
    listed = (
        ListedTopic(
            name=topic.name or "",
            topic_id=topic.topic_id.hex(),
            internal=topic.is_internal,
            partition_count=len(topic.partitions),
            leaderless_count=sum(each.leader_id < 0 for each in topic.partitions),
        )
        for topic in response.topics
    )
    return {each.name: each for each in sorted(listed, key=lambda each: each.name)}


async def _groups(client: Client, address: Address) -> list[GroupLook] | KafscaleError:
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            connection = await client.connect(address)
            response = await connection.ask(LIST_GROUPS, ListGroupsRequest())
            check(f"the broker at {address}", response.error_code)
            counts = await _member_counts(connection, response.groups)
    except TimeoutError:
        return KafscaleError(f"{address} does not tell its groups within {LOOK_SECONDS_MAX:g} s")
    except KafscaleError as error:
        return error
    return [
        GroupLook(
            group=each.group_id,
            type=_type(each),
            state=each.group_state,
            protocol_type=each.protocol_type,
            member_count=counts.get(each.group_id),
        )
        for each in response.groups
    ]


async def _member_counts(connection: Connection, listed: Sequence[ListedGroup]) -> dict[str, int]:
    """How many members the groups have that this broker looks after."""
    chosen = listed[:GROUPS_DESCRIBED_MAX]
    counts: dict[str, int] = {}
    if classic := _ids(each for each in chosen if _type(each) != Kind.CONSUMER.value):
        described = await connection.ask(DESCRIBE_GROUPS, DescribeGroupsRequest(group_ids=classic))
        counts |= {g.group_id: len(g.members) for g in described.groups if not g.error_code}
    if modern := _ids(each for each in chosen if _type(each) == Kind.CONSUMER.value):
        request = ConsumerGroupDescribeRequest(group_ids=modern)
        answered = await connection.ask(CONSUMER_GROUP_DESCRIBE, request)
        counts |= {g.group_id: len(g.members) for g in answered.groups if not g.error_code}
    return counts


def _ids(groups: Iterable[ListedGroup]) -> list[str]:
    return [each.group_id for each in groups]


def _type(group: ListedGroup) -> str:
    return group.group_type.lower() or Kind.CLASSIC.value
