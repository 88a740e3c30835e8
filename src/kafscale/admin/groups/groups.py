"""List, describe and delete consumer groups, and their committed offsets."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kafscale.admin.groups.describe import (
    HINT,
    GroupDescription,
    describe_group,
    partition_assignments,
)
from kafscale.client.client import LATEST_TIME, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError, check
from kafscale.client.group_offsets import Committed, by_topic, committed
from kafscale.errors import KafscaleError
from kafscale.groups.model import GroupType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.topic_partition import TopicPartition

_HINTS: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND: HINT,
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; list them with:"
    " kafscale group describe {group} --members",
}


class GroupInfo(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    type: str
    state: str
    protocol_type: str


class GroupOffset(msgspec.Struct, frozen=True, rename="camel"):
    """The position of a group in a partition, and who reads it if the group was described."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    metadata: str | None
    member_id: str | UnsetType | None = UNSET
    host: str | UnsetType | None = UNSET
    client_id: str | UnsetType | None = UNSET


class GroupDetail(GroupDescription, frozen=True, kw_only=True, rename="camel"):
    """A group with its offsets."""

    offsets: list[GroupOffset]


async def list_all(
    client: Client, states: Collection[str] = (), types: Collection[str] = ()
) -> list[GroupInfo]:
    """All groups by name; only those in the given states and of the given types, if any."""
    await client.metadata([])
    request = ListGroupsRequest(state_filters=list(states), type_filters=list(types))
    groups: dict[str, ListedGroup] = {}
    for node_id in client.broker_ids:
        connection = await client.broker(node_id)
        response = await connection.ask(LIST_GROUPS, request)
        check(f"broker {node_id}", response.error_code)
        groups.update((group.group_id, group) for group in response.groups)
    if states and not all(group.group_state for group in groups.values()):
        raise KafscaleError("these brokers do not return the states of groups; omit --state")
    # Old brokers ignore the type filter and return no types; all their groups are classic.
    return [
        GroupInfo(
            group=group.group_id,
            type=group.group_type.lower() or GroupType.CLASSIC.value,
            state=group.group_state,
            protocol_type=group.protocol_type,
        )
        for _, group in sorted(groups.items())
        if not types or (group.group_type.lower() or GroupType.CLASSIC.value) in types
    ]


async def describe(client: Client, names: Sequence[str]) -> list[GroupDetail]:
    """Describe these groups; all of them if no names are given."""
    chosen = list(dict.fromkeys(names)) or [each.group for each in await list_all(client)]
    return [await _describe(client, name) for name in chosen]


async def offsets(client: Client, name: str) -> list[GroupOffset]:
    """The committed offsets of a group, with its lag."""
    async with Coordinator(client, name) as coordinator:
        positions = await committed(coordinator)
        if not positions:
            await describe_group(coordinator)  # Raises an error if the group does not exist.
    ends = await _end_offsets(client, positions)
    return [_group_offset(each, positions, ends) for each in sorted(positions)]


async def delete(
    client: Client, names: Sequence[str], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Delete groups; return the deleted names and the problems of the others."""
    deleted, problems = [], []
    for name in dict.fromkeys(names):
        try:
            await delete_one(client, name)
            deleted.append(name)
        except BrokerResponseError as error:
            if not (missing_ok and error.error_code is ErrorCode.GROUP_ID_NOT_FOUND):
                problems.append(str(error))
    return deleted, problems


async def delete_one(client: Client, name: str) -> None:
    """Delete a group; raise an error if it does not exist."""
    async with Coordinator(client, name) as coordinator:
        response = await coordinator.ask(
            DELETE_GROUPS,
            DeleteGroupsRequest(group_ids=[name]),
            lambda each: each.groups[0].error_code,
        )
    code = ErrorCode.of(response.groups[0].error_code)
    check(f"group {name}", code, hint=_HINTS.get(code, "").format(group=name))


async def topics_by_name(client: Client, names: Iterable[str]) -> dict[str, TopicMetadata]:
    """The topics among `names` that exist."""
    requested = sorted(set(names))
    topics = (await client.metadata(requested)).topics if requested else []
    return {topic.name or "": topic for topic in topics if topic.error_code == ErrorCode.NONE}


async def _describe(client: Client, name: str) -> GroupDetail:
    async with Coordinator(client, name) as coordinator:
        description, positions = await asyncio.gather(
            describe_group(coordinator), committed(coordinator)
        )
    owners = partition_assignments(description.members)
    topic_partitions = sorted({*positions, *owners})
    ends = await _end_offsets(client, topic_partitions)
    rows = []
    for topic_partition in topic_partitions:
        owner = owners.get(topic_partition)
        rows.append(
            msgspec.structs.replace(
                _group_offset(topic_partition, positions, ends),
                member_id=None if owner is None else owner.member_id,
                host=None if owner is None else owner.host,
                client_id=None if owner is None else owner.client_id,
            )
        )
    return GroupDetail(**msgspec.structs.asdict(description), offsets=rows)


def _group_offset(
    topic_partition: TopicPartition,
    positions: Mapping[TopicPartition, Committed],
    ends: Mapping[TopicPartition, int],
) -> GroupOffset:
    position, end = positions.get(topic_partition), ends.get(topic_partition)
    return GroupOffset(
        topic=topic_partition[0],
        partition=topic_partition[1],
        committed_offset=None if position is None else position.offset,
        end_offset=end,
        lag=None if position is None or end is None else max(0, end - position.offset),
        leader_epoch=None
        if position is None or position.leader_epoch < 0
        else position.leader_epoch,
        metadata=None if position is None else position.metadata,
    )


async def _end_offsets(
    client: Client, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The end offsets of partitions, without those that are deleted or have no leader."""
    chosen = by_topic(topic_partitions)
    topics = await topics_by_name(client, [name for name, _ in chosen])
    ends: dict[TopicPartition, int] = {}
    for name, indexes in chosen:
        if name in topics:
            leaders = leaders_of(topics[name])
            with_leader = [index for index in indexes if leaders.get(index, -1) >= 0]
            offsets_by_index = await client.offsets(
                topics[name], dict.fromkeys(with_leader, LATEST_TIME)
            )
            ends |= {(name, index): end for index, end in offsets_by_index.items()}
    return ends
