"""Resets the committed offsets of a group that has no members.

A reset is planned first: for every partition, the target becomes an offset. As in Kafka's tools, an
offset outside the log becomes its start or its end, with a note that says so.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from kafscale.admin.groups.describe import describe_group
from kafscale.admin.groups.groups import topics_by_name
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError
from kafscale.client.group_offsets import by_topic, commit, committed, format_topic_partition
from kafscale.errors import InvalidRequestError, NonEmptyGroupError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.formatting import pluralize
from kafscale.text.topic_partition import TopicPartition
from kafscale.text.units import HOUR_MS, MINUTE_MS, SECOND_MS, parse_duration

_ISO_DURATION: Final = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_UNITS_MS: Final = (24 * HOUR_MS, HOUR_MS, MINUTE_MS, SECOND_MS)

Topics = Mapping[str, Sequence[int]]
"""The topics to reset, with the partitions of each; no partition means all of them."""


class TargetKind(StrEnum):
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"


class ResetTarget(NamedTuple):
    """Where to reset to; `number` is an offset, a shift in records, or a time in ms since 1970."""

    kind: TargetKind
    number: int = 0


class PartitionOffsets(NamedTuple):
    """The offsets of a partition that a target is resolved against."""

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None
    """The first offset at or after the target time, if there is one."""


class ResetRow(msgspec.Struct, frozen=True, rename="camel"):
    """The planned reset of one partition."""

    topic: str
    partition: int
    before: int | None
    after: int
    start_offset: int
    end_offset: int
    note: str | None


async def reset(
    client: Client, name: str, topics: Topics | None, target: ResetTarget, *, execute: bool
) -> list[ResetRow]:
    """Plan a reset and commit it if `execute` is set; without topics, of all committed ones."""
    async with Coordinator(client, name) as coordinator:
        await _check_no_members(coordinator)
        before = {key: each.offset for key, each in (await committed(coordinator)).items()}
        partitions = await _partitions_to_reset(client, name, topics, before)
        plan = await _plan(client, partitions, before, target)
        if execute:
            await commit(coordinator, {(each.topic, each.partition): each.after for each in plan})
    return plan


def resolve_offset(target: ResetTarget, partition: PartitionOffsets) -> tuple[int, str]:
    """The offset of a target in a partition, and a note; `ValueError` if there is none."""
    start, end, committed_offset, at_time = partition
    match target.kind:
        case TargetKind.EARLIEST:
            return start, ""
        case TargetKind.LATEST:
            return end, ""
        case TargetKind.TIME:
            return (end, "no record is at or after that time") if at_time is None else (at_time, "")
        case TargetKind.CURRENT:
            fallback = end, "nothing was committed"
            return fallback if committed_offset is None else (committed_offset, "")
        case TargetKind.OFFSET:
            return _clamp(start, end, target.number)
        case TargetKind.SHIFT:
            if committed_offset is None:
                raise ValueError("nothing is committed, so there is nothing to shift")
            return _clamp(start, end, committed_offset + target.number)


def parse_topic(text: str) -> tuple[str, Sequence[int]]:
    """Parse a topic, optionally with some of its partitions.

    >>> parse_topic("orders"), parse_topic("orders:2,0")
    (('orders', ()), ('orders', (2, 0)))
    """
    name, colon, numbers = text.partition(":")
    if not name or (colon and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers, re.ASCII)):
        raise ValueError(
            f"{text!r} is not a topic, such as orders, or orders:0,2 for some of its partitions"
        )
    return name, tuple(int(number) for number in numbers.split(",")) if colon else ()


def parse_age(text: str) -> int:
    """Parse a duration in ISO 8601 or in the format of the settings; returns milliseconds.

    >>> parse_age("PT1H30M"), parse_age("P1D"), parse_age("15m")
    (5400000, 86400000, 900000)
    """
    match = _ISO_DURATION.fullmatch(text)
    if match and any(match.groups()):
        parts = zip(match.groups(default="0"), _ISO_UNITS_MS, strict=True)
        return sum(int(number) * unit_ms for number, unit_ms in parts)
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a duration, such as 90m or PT1H30M") from None


def _clamp(start: int, end: int, offset: int) -> tuple[int, str]:
    if offset < start:
        return start, f"{offset} is before the start"
    if offset > end:
        return end, f"{offset} is after the end"
    return offset, ""


async def _check_no_members(coordinator: Coordinator) -> None:
    """Members would overwrite the reset offsets with their own commits."""
    name = coordinator.group_id
    try:
        group = await describe_group(coordinator)
    except BrokerResponseError as error:
        if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # The first commit creates the group.
    if group.members:
        raise NonEmptyGroupError(
            f"group {name} has {pluralize(len(group.members), 'member')} ({group.state}); its"
            " offsets can be reset only while it has none: stop its members first"
        )


async def _partitions_to_reset(
    client: Client, name: str, topics: Topics | None, before: Mapping[TopicPartition, int]
) -> dict[str, tuple[TopicMetadata, list[int]]]:
    """The topics to reset, each with the partitions to reset."""
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
        metadata = await client.topic(topic)
        known = sorted(leaders_of(metadata))
        if missing := set(indexes) - set(known):
            raise UnknownTopicError(
                f"topic {topic} has no partition {min(missing)}, only 0 to {known[-1]}"
            )
        chosen[topic] = metadata, sorted(set(indexes)) or known
    return chosen


async def _plan(
    client: Client,
    chosen: Mapping[str, tuple[TopicMetadata, Sequence[int]]],
    before: Mapping[TopicPartition, int],
    target: ResetTarget,
) -> list[ResetRow]:
    """The new offset of each partition, by topic and partition."""
    plan = []
    problems = []
    for topic, (metadata, indexes) in sorted(chosen.items()):
        partitions = await _partition_offsets(client, metadata, indexes, before, target)
        for index, partition in partitions.items():
            try:
                after, note = resolve_offset(target, partition)
            except ValueError as error:
                problems.append(f"{format_topic_partition((topic, index))}: {error}")
                continue
            plan.append(
                ResetRow(
                    topic=topic,
                    partition=index,
                    before=partition.committed,
                    after=after,
                    start_offset=partition.start,
                    end_offset=partition.end,
                    note=note or None,
                )
            )
    if problems:
        raise InvalidRequestError("\n".join(problems))
    return plan


async def _partition_offsets(
    client: Client,
    topic: TopicMetadata,
    indexes: Sequence[int],
    before: Mapping[TopicPartition, int],
    target: ResetTarget,
) -> dict[int, PartitionOffsets]:
    times = [EARLIEST_TIME, LATEST_TIME]
    if target.kind is TargetKind.TIME:
        times.append(target.number)
    starts, ends, *at_times = await asyncio.gather(
        *(client.offsets(topic, dict.fromkeys(indexes, time_ms)) for time_ms in times)
    )
    name = topic.name or ""
    offsets = {}
    for index in indexes:
        at_time = at_times[0][index] if at_times else -1
        offsets[index] = PartitionOffsets(
            starts[index], ends[index], before.get((name, index)), at_time if at_time >= 0 else None
        )
    return offsets
