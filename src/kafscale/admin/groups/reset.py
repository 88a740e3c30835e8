"""Moves a group of which no member runs: first as a plan that can be looked at, then in earnest."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kafscale.admin.groups.describe import description
from kafscale.admin.groups.groups import topics_by_name
from kafscale.admin.groups.reset_aim import Aim, Kind, Partition, destination
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError
from kafscale.client.group_offsets import by_topic, commit, committed, place_in_words
from kafscale.errors import InvalidRequestError, NonEmptyGroupError, UnknownTopicError
from kafscale.groups.model import TopicPartition
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.formatting import counted

Data = dict[str, Any]
Topics = Mapping[str, Sequence[int]]
"""The topics to reset, with the partitions of each; no partition means all of them."""


async def reset(
    client: Client, name: str, topics: Topics | None, aim: Aim, *, execute: bool
) -> list[Data]:
    """Plan a reset, and carry it out if it is to be executed; without topics, of all committed."""
    async with Coordinator(client, name) as coordinator:
        await _check_that_nobody_reads(coordinator)
        before = {place: each.offset for place, each in (await committed(coordinator)).items()}
        places = await _places(client, name, topics, before)
        plan = await _plan(client, places, before, aim)
        if execute:
            await commit(
                coordinator, {(each["topic"], each["partition"]): each["after"] for each in plan}
            )
    return plan


async def _check_that_nobody_reads(coordinator: Coordinator) -> None:
    """A group with members would only commit over what was reset."""
    name = coordinator.group_id
    try:
        described = await description(coordinator)
    except AnsweredError as error:
        if error.answer is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # Its first commit creates it.
    if described["members"]:
        raise NonEmptyGroupError(
            f"group {name} has {counted(len(described['members']), 'member')}"
            f" ({described['state']}); its offsets can be reset only while it has none: stop them"
            " first"
        )


async def _places(
    client: Client, name: str, topics: Topics | None, before: Mapping[TopicPartition, int]
) -> dict[str, tuple[TopicMetadata, list[int]]]:
    """The topics, each with the partitions of it that are to be reset."""
    if topics is None:
        existing = await topics_by_name(client, [topic for topic, _ in before])
        if not existing:
            raise InvalidRequestError(
                f"group {name} has committed nothing; name the topics to reset"
            )
        return {
            topic: (existing[topic], indexes)
            for topic, indexes in by_topic(before)
            if topic in existing
        }
    chosen = {}
    for topic, indexes in topics.items():
        found = await client.topic(topic)
        known = sorted(leaders_of(found))
        if missing := set(indexes) - set(known):
            raise UnknownTopicError(
                f"topic {topic} has no partition {min(missing)}, only 0 to {known[-1]}"
            )
        chosen[topic] = found, sorted(set(indexes)) or known
    return chosen


async def _plan(
    client: Client,
    places: Mapping[str, tuple[TopicMetadata, Sequence[int]]],
    before: Mapping[TopicPartition, int],
    aim: Aim,
) -> list[Data]:
    """Where each partition is to go, in the order of their names."""
    plan = []
    problems = []
    for topic, (found, indexes) in sorted(places.items()):
        partitions = await _partitions(client, found, indexes, before, aim)
        for index, partition in partitions.items():
            try:
                after, note = destination(aim, partition)
            except ValueError as error:
                problems.append(f"{place_in_words((topic, index))}: {error}")
                continue
            plan.append(
                {
                    "topic": topic,
                    "partition": index,
                    "before": partition.committed,
                    "after": after,
                    "startOffset": partition.start,
                    "endOffset": partition.end,
                    "note": note or None,
                }
            )
    if problems:
        raise InvalidRequestError("\n".join(problems))
    return plan


async def _partitions(
    client: Client,
    topic: TopicMetadata,
    indexes: Sequence[int],
    before: Mapping[TopicPartition, int],
    aim: Aim,
) -> dict[int, Partition]:
    """What has to be known of the partitions of a topic."""
    times = [EARLIEST_TIME, LATEST_TIME]
    if aim.kind is Kind.TIME:
        times.append(aim.number)
    starts, ends, *at_times = await asyncio.gather(
        *(client.offsets(topic, dict.fromkeys(indexes, time_ms)) for time_ms in times)
    )
    name = topic.name or ""
    found = {}
    for index in indexes:
        at_time = at_times[0][index] if at_times else -1
        found[index] = Partition(
            starts[index], ends[index], before.get((name, index)), at_time if at_time >= 0 else None
        )
    return found
