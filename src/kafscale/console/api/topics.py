"""Topics: found, looked at, created, configured, grown and deleted, and who reads them.

The law: a list is told from the last look of the watch, one topic by those who own it now; after
every change the watch looks again, so that the next list shows it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.admin.cluster import brokers
from kafscale.admin.topics import configs as topics_configs
from kafscale.admin.topics import consumers as topics_consumers
from kafscale.admin.topics import describe as topics_describe
from kafscale.admin.topics import topics
from kafscale.console.api.confirming import confirm
from kafscale.console.api.pagination import cut
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.cluster import Flush, Flushed
from kafscale.console.schema.topics import (
    AlterConfigs,
    Config,
    CreateTopic,
    DeleteTopic,
    Grow,
    Topic,
    TopicConsumer,
    TopicDetail,
    TopicPage,
    TopicQuery,
    TopicSort,
)
from kafscale.errors import InvalidRequestError

_VALUES: Final[dict[TopicSort, Callable[[Topic], float | None]]] = {
    "partitions": lambda topic: topic.partition_count,
    "records": lambda topic: topic.record_count,
    "size": lambda topic: topic.size_bytes,
    "produce": lambda topic: topic.produce_bytes_per_second,
    "fetch": lambda topic: topic.fetch_bytes_per_second,
}
"""What topics are sorted by, other than their names."""


async def list_topics(room: Room, call: Call) -> TopicPage:
    query: TopicQuery = call.query
    wanted = query.search.lower()
    found = [
        topic
        for name, topic in room.watch.topics.items()
        if (query.internal or not topic.internal) and wanted in name.lower()
    ]
    return TopicPage(
        as_of_ms=room.watch.as_of_ms,
        total=len(found),
        page=query.page,
        size=query.size,
        items=cut(in_order(found, query), query.page, query.size),
    )


def in_order(found: list[Topic], query: TopicQuery) -> list[Topic]:
    """By name, and then by what is asked for; those of which it is not known come last."""
    descends = query.order == "desc"
    if query.sort == "name":
        return sorted(found, key=lambda topic: topic.name, reverse=descends)
    value = _VALUES[query.sort]

    def key(topic: Topic) -> tuple[bool, float, str]:
        number = value(topic)
        return number is None, (-1 if descends else 1) * (number or 0), topic.name

    return sorted(found, key=key)


async def create(room: Room, call: Call) -> Topic:
    asked: CreateTopic = call.body
    if asked.partition_count is not None and asked.partition_count < 1:
        raise InvalidRequestError(f"a topic has 1 partition or more, not {asked.partition_count}")
    async with room.reach.client() as client:
        await topics.create(
            client, asked.name, asked.partition_count, asked.configs, exists_ok=False
        )
    await room.watch.look()
    return (await _detail(room, asked.name, is_new=True)).topic


async def describe(room: Room, call: Call) -> TopicDetail:
    return await _detail(room, call.path["name"])


async def delete(room: Room, call: Call) -> None:
    name, asked = call.path["name"], call.body
    confirm(f"topic {name}", name, asked.confirm)
    async with room.reach.client() as client:
        await topics.delete_one(client, name)
    await room.watch.look()


async def grow(room: Room, call: Call) -> TopicDetail:
    name, asked = call.path["name"], call.body
    async with room.reach.client() as client:
        await topics.grow(client, name, asked.partition_count)
    await room.watch.look()
    return await _detail(room, name)


async def configs(room: Room, call: Call) -> list[Config]:
    async with room.reach.client() as client:
        found = await topics_configs.describe(client, call.path["name"])
    return msgspec.convert(found, list[Config])


async def alter_configs(room: Room, call: Call) -> list[Config]:
    name, asked = call.path["name"], call.body
    if both := asked.set.keys() & set(asked.delete):
        raise InvalidRequestError(f"{min(both)} is to be set and deleted; say one of them")
    if not (asked.set or asked.delete):
        raise InvalidRequestError("nothing is to be changed; name a config to set or to delete")
    async with room.reach.client() as client:
        await topics.alter_configs(client, name, asked.set, asked.delete)
    return await configs(room, call)


async def consumers(room: Room, call: Call) -> list[TopicConsumer]:
    """Of groups whose topics the watch has not seen, each is asked."""
    name = call.path["name"]
    groups = [
        group.group
        for group in room.watch.groups.values()
        if name in group.topics or not group.topics
    ]
    async with room.reach.client() as client:
        found = await topics_consumers.topic_consumers(client, name, groups)
    return msgspec.convert(found, list[TopicConsumer])


async def flush(room: Room, call: Call) -> Flushed:
    name, asked = call.path["name"], call.body
    if asked.topic not in {None, name}:
        raise InvalidRequestError(f"this flushes topic {name}, not {asked.topic}")
    async with room.reach.cluster() as cluster:
        flushed = await brokers.flush(cluster, name, asked.partitions)
    return msgspec.convert({"partitions": flushed}, Flushed)


async def _detail(room: Room, name: str, *, is_new: bool = False) -> TopicDetail:
    found = await topics_describe.look(room.reach, name, is_new=is_new)
    watched = room.watch.topics.get(name)
    rates = {
        "produceBytesPerSecond": watched and watched.produce_bytes_per_second,
        "fetchBytesPerSecond": watched and watched.fetch_bytes_per_second,
    }
    return msgspec.convert(
        {
            "topic": found | rates,
            "partitions": found["partitions"],
            "throughput": room.watch.topic_throughput(name),
        },
        TopicDetail,
    )


ROUTES: Final = (
    Route("GET", "/topics", list_topics, query=TopicQuery, gives=TopicPage),
    Route("POST", "/topics", create, takes=CreateTopic, gives=Topic),
    Route("GET", "/topics/{name}", describe, gives=TopicDetail),
    Route("DELETE", "/topics/{name}", delete, takes=DeleteTopic),
    Route("POST", "/topics/{name}/partitions", grow, takes=Grow, gives=TopicDetail),
    Route("GET", "/topics/{name}/configs", configs, gives=list[Config]),
    Route("PUT", "/topics/{name}/configs", alter_configs, takes=AlterConfigs, gives=list[Config]),
    Route("POST", "/topics/{name}/flush", flush, takes=Flush, gives=Flushed, tags=("slow",)),
    Route("GET", "/topics/{name}/consumers", consumers, gives=list[TopicConsumer]),
)
