"""What `kafscale group` asks of a cluster, as plain data: the form in which programs get it."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kafscale.admin.groups.describe import HINT, assigned_to, description
from kafscale.client.client import LATEST_TIME, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError, check
from kafscale.client.group_offsets import Committed, by_topic, committed
from kafscale.errors import KafscaleError
from kafscale.groups.model import Kind, TopicPartition
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from kafscale.protocol.messages.metadata import TopicMetadata

Data = dict[str, Any]

_HINTS: Final = {
    ErrorCode.GROUP_ID_NOT_FOUND: HINT,
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; who they are, tells:"
    " kafscale group describe {group} --members",
}


async def list_all(
    client: Client, states: Collection[str] = (), types: Collection[str] = ()
) -> list[Data]:
    """Every group, by name; only those in some of these states and of some of these types."""
    await client.metadata([])
    request = ListGroupsRequest(state_filters=list(states), type_filters=list(types))
    groups: dict[str, ListedGroup] = {}
    for node_id in client.broker_ids:
        connection = await client.broker(node_id)
        response = await connection.ask(LIST_GROUPS, request)
        check(f"broker {node_id}", response.error_code)
        groups.update((group.group_id, group) for group in response.groups)
    if states and not all(group.group_state for group in groups.values()):
        raise KafscaleError("these brokers do not tell the states of groups; leave out --state")
    # Brokers that do not know a filter do not heed it; those that tell no types know classic ones.
    return [
        {
            "group": group.group_id,
            "type": group.group_type.lower() or Kind.CLASSIC.value,
            "state": group.group_state,
            "protocolType": group.protocol_type,
        }
        for _, group in sorted(groups.items())
        if not types or (group.group_type.lower() or Kind.CLASSIC.value) in types
    ]


async def describe(client: Client, names: Sequence[str]) -> list[Data]:
    """Everything that the cluster tells about these groups; about all of them, without names."""
    chosen = list(dict.fromkeys(names)) or [each["group"] for each in await list_all(client)]
    return [await _describe(client, name) for name in chosen]


async def offsets(client: Client, name: str) -> list[Data]:
    """What a group has committed, with how far it lags behind."""
    async with Coordinator(client, name) as coordinator:
        found = await committed(coordinator)
        if not found:
            await description(coordinator)  # Which says so if there is no such group.
    ends = await _ends(client, found)
    return [_position(place, found, ends) for place in sorted(found)]


async def delete(
    client: Client, names: Sequence[str], *, missing_ok: bool
) -> tuple[list[str], list[str]]:
    """Delete groups: the names of those that were there, and what is wrong with the others."""
    deleted, problems = [], []
    for name in dict.fromkeys(names):
        try:
            await delete_one(client, name)
            deleted.append(name)
        except AnsweredError as error:
            if not (missing_ok and error.answer is ErrorCode.GROUP_ID_NOT_FOUND):
                problems.append(str(error))
    return deleted, problems


async def delete_one(client: Client, name: str) -> None:
    """Delete a group, which has to be there."""
    async with Coordinator(client, name) as coordinator:
        response = await coordinator.ask(
            DELETE_GROUPS,
            DeleteGroupsRequest(group_ids=[name]),
            lambda each: each.groups[0].error_code,
        )
    code = ErrorCode.of(response.groups[0].error_code)
    check(f"group {name}", code, hint=_HINTS.get(code, "").format(group=name))


async def topics_by_name(client: Client, names: Iterable[str]) -> dict[str, TopicMetadata]:
    """Those of the topics that exist."""
    asked = sorted(set(names))
    topics = (await client.metadata(asked)).topics if asked else []
    return {topic.name or "": topic for topic in topics if topic.error_code == ErrorCode.NONE}


async def _describe(client: Client, name: str) -> Data:
    async with Coordinator(client, name) as coordinator:
        described, found = await asyncio.gather(description(coordinator), committed(coordinator))
    owners = assigned_to(described["members"])
    places = sorted({*found, *owners})
    ends = await _ends(client, places)
    rows = []
    for place in places:
        owner = owners.get(place, {})
        about = {key: owner.get(key) for key in ("memberId", "host", "clientId")}
        rows.append(_position(place, found, ends) | about)
    return described | {"offsets": rows}


def _position(
    place: TopicPartition,
    found: Mapping[TopicPartition, Committed],
    ends: Mapping[TopicPartition, int],
) -> Data:
    """How far a group has come in a partition, and how far that is from the end."""
    position, end = found.get(place), ends.get(place)
    return {
        "topic": place[0],
        "partition": place[1],
        "committedOffset": None if position is None else position.offset,
        "endOffset": end,
        "lag": None if position is None or end is None else max(0, end - position.offset),
        "leaderEpoch": None
        if position is None or position.leader_epoch < 0
        else position.leader_epoch,
        "metadata": None if position is None else position.metadata,
    }


async def _ends(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end; those that are gone, or have no leader, are left out."""
    chosen = by_topic(places)
    topics = await topics_by_name(client, [name for name, _ in chosen])
    ends: dict[TopicPartition, int] = {}
    for name, indexes in chosen:
        if name in topics:
            leaders = leaders_of(topics[name])
            led = [index for index in indexes if leaders.get(index, -1) >= 0]
            found = await client.offsets(topics[name], dict.fromkeys(led, LATEST_TIME))
            ends |= {(name, index): end for index, end in found.items()}
    return ends
