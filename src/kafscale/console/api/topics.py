"""Topics: list, describe, create, alter, delete, flush; their consumers and segments.

Lists come from the last poll of the monitor; one topic is described by its owners. After every
change the cluster is polled, so that the next list shows it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.admin.cluster import operations
from kafscale.admin.topics import configs as topics_configs
from kafscale.admin.topics import consumers as topics_consumers
from kafscale.admin.topics import describe as topics_describe
from kafscale.admin.topics import segments, topics
from kafscale.admin.topics.segments import wal_tail
from kafscale.admin.topics.usage import TopicUsage
from kafscale.console.api.route import (
    ApiContext,
    ApiRequest,
    Route,
    check_confirmation,
    page_items,
    page_start,
)
from kafscale.console.schema.cluster import Flush, Flushed, PartitionName
from kafscale.console.schema.topics import (
    AlterConfigs,
    Config,
    CreateTopic,
    DeleteTopic,
    Grow,
    SegmentPage,
    SegmentQuery,
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
"""The sort keys besides the name."""


async def list_topics(context: ApiContext, request: ApiRequest) -> TopicPage:
    query: TopicQuery = request.query
    search = query.search.lower()
    matching = [
        topic
        for name, topic in context.monitor.topics.items()
        if (query.internal or not topic.internal) and search in name.lower()
    ]
    return TopicPage(
        as_of_ms=context.monitor.as_of_ms,
        total=len(matching),
        page=query.page,
        size=query.size,
        items=page_items(sort_topics(matching, query), query.page, query.size),
    )


def sort_topics(topics: list[Topic], query: TopicQuery) -> list[Topic]:
    """Sort by a key, then by name; topics with unknown values come last."""
    is_descending = query.order == "desc"
    if query.sort == "name":
        return sorted(topics, key=lambda topic: topic.name, reverse=is_descending)
    value = _VALUES[query.sort]

    def key(topic: Topic) -> tuple[bool, float, str]:
        number = value(topic)
        return number is None, (-1 if is_descending else 1) * (number or 0), topic.name

    return sorted(topics, key=key)


async def create(context: ApiContext, request: ApiRequest) -> Topic:
    body: CreateTopic = request.body
    if body.partition_count is not None and body.partition_count < 1:
        raise InvalidRequestError(f"a topic has at least 1 partition, not {body.partition_count}")
    async with context.connections.client() as client:
        await topics.create(client, body.name, body.partition_count, body.configs, exists_ok=False)
    await context.monitor.refresh()
    return (await _detail(context, body.name, is_new=True)).topic


async def describe(context: ApiContext, request: ApiRequest) -> TopicDetail:
    return await _detail(context, request.path["name"])


async def delete(context: ApiContext, request: ApiRequest) -> None:
    name, body = request.path["name"], request.body
    check_confirmation(f"topic {name}", name, body.confirm)
    async with context.connections.client() as client:
        await topics.delete_one(client, name)
    await context.monitor.refresh()


async def grow(context: ApiContext, request: ApiRequest) -> TopicDetail:
    name, body = request.path["name"], request.body
    async with context.connections.client() as client:
        await topics.create_partitions(client, name, body.partition_count)
    await context.monitor.refresh()
    return await _detail(context, name)


async def configs(context: ApiContext, request: ApiRequest) -> list[Config]:
    async with context.connections.client() as client:
        return await topics_configs.describe(client, request.path["name"])


async def alter_configs(context: ApiContext, request: ApiRequest) -> list[Config]:
    name, body = request.path["name"], request.body
    if both := body.set.keys() & set(body.delete):
        raise InvalidRequestError(f"{min(both)} is both set and deleted")
    if not (body.set or body.delete):
        raise InvalidRequestError("no change requested: name a config to set or to delete")
    async with context.connections.client() as client:
        await topics.alter_configs(client, name, body.set, body.delete)
    return await configs(context, request)


async def consumers(context: ApiContext, request: ApiRequest) -> list[TopicConsumer]:
    """Groups whose topics the monitor does not know are queried as well."""
    name = request.path["name"]
    groups = [
        group.group
        for group in context.monitor.groups.values()
        if name in group.topics or not group.topics
    ]
    async with context.connections.client() as client:
        return await topics_consumers.topic_consumers(client, name, groups)


async def flush(context: ApiContext, request: ApiRequest) -> Flushed:
    name, body = request.path["name"], request.body
    if body.topic not in {None, name}:
        raise InvalidRequestError(f"this flushes topic {name}, not {body.topic}")
    async with context.connections.control_plane() as control:
        flushed = await operations.flush(control, name, body.partitions)
    return Flushed(partitions=[PartitionName(each.topic, each.partition) for each in flushed])


async def list_segments(context: ApiContext, request: ApiRequest) -> SegmentPage:
    name, query = request.path["name"], request.query
    first = page_start(query.page, query.size)
    topic = await topics_describe.describe_topic(context.connections, name)
    partition = topic.find_partition(query.partition)
    namespace = context.connections.namespace
    async with context.connections.objects() as store:
        # The tail first: records rolled meanwhile then appear twice rather than never.
        tail = await wal_tail(store, namespace, bytes.fromhex(topic.topic_id), partition)
        inventory = await segments.list_segments(
            store, namespace, topic, query.partition, first=first, count=query.size
        )
    return SegmentPage(
        **msgspec.structs.asdict(inventory), page=query.page, size=query.size, wal=tail
    )


async def _detail(context: ApiContext, name: str, *, is_new: bool = False) -> TopicDetail:
    description = await topics_describe.describe_topic(context.connections, name, is_new=is_new)
    monitored = context.monitor.topics.get(name)
    return TopicDetail(
        topic=Topic(
            **{field: getattr(description, field) for field in TopicUsage.__struct_fields__},
            produce_bytes_per_second=monitored.produce_bytes_per_second if monitored else None,
            fetch_bytes_per_second=monitored.fetch_bytes_per_second if monitored else None,
            dirty_ratio=monitored.dirty_ratio if monitored else None,
        ),
        partitions=description.partitions,
        throughput=context.monitor.topic_throughput(name),
    )


ROUTES: Final = (
    Route("GET", "/topics", list_topics, query=TopicQuery, response=TopicPage),
    Route("POST", "/topics", create, body=CreateTopic, response=Topic),
    Route("GET", "/topics/{name}", describe, response=TopicDetail),
    Route("DELETE", "/topics/{name}", delete, body=DeleteTopic),
    Route("POST", "/topics/{name}/partitions", grow, body=Grow, response=TopicDetail),
    Route("GET", "/topics/{name}/configs", configs, response=list[Config]),
    Route("PUT", "/topics/{name}/configs", alter_configs, body=AlterConfigs, response=list[Config]),
    Route("POST", "/topics/{name}/flush", flush, body=Flush, response=Flushed, tags=("slow",)),
    Route(
        "GET", "/topics/{name}/segments", list_segments, query=SegmentQuery, response=SegmentPage
    ),
    Route("GET", "/topics/{name}/consumers", consumers, response=list[TopicConsumer]),
)
