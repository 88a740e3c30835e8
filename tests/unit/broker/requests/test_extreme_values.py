"""Every field of every request at its extremes, as a client with all rights.

The requests are generated from the message declarations, so a new API or field is covered by
itself. A client gets an error or a result; it never causes an unexpected error, ends a task that
others need, or changes what others have stored.
"""

import asyncio
import math
from collections.abc import Iterator
from inspect import isawaitable
from itertools import chain
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from kafscale.broker.requests.pending_response import InFlightRequest
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.requests.slices import SLICE_ELEMENTS
from kafscale.protocol.api import REQUEST_ELEMENTS_MAX, Api
from kafscale.protocol.codec.schema import Array, Field, MessageType, WireType, fields
from kafscale.protocol.codec.wire import Message, PrimitiveType
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.protocol.messages.offset_fetch import OFFSET_FETCH, GroupToFetch, OffsetFetchRequest
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.harness import decode_response, framed, request, response_parts
from unit.broker.in_memory_broker import CONFIG, InMemoryBroker, run_with_broker

NAME = "orders"
"""The name of an existing topic and of an existing group, and of all else that has a name."""

SETTLE_SECONDS = 120
"""Longer than the linger time of group writes, session timeouts and background checks."""

WAIT_SECONDS = 1
"""How long a response is awaited; clients may wait for records for weeks."""

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
COUNT = 300
RANDOM_COUNT = 50


def extremes(wire_type: WireType, nullable: bool, example: Any) -> list[Any]:
    """Unusual values of a field."""
    values: list[Any] = [None] if nullable else []
    match wire_type:
        case Array():
            values += [[], example * 2, example * COUNT]
        case PrimitiveType(name=name) if name in INTEGER_BITS:
            largest = 2 ** (INTEGER_BITS[name] - 1) - 1
            values += [-largest - 1, -largest, -2, -1, 0, 1, 2, 3, 4, largest - 1, largest]
        case PrimitiveType(name=name) if name in UNSIGNED_BITS:
            values += [0, 2 ** UNSIGNED_BITS[name] - 1]
        case PrimitiveType(name="float64"):
            values += [math.nan, math.inf, -math.inf, -1.0, 5e-324, 1.7e308]
        case PrimitiveType(name="bool"):
            values += [False, True]
        case PrimitiveType(name="uuid"):
            values += [bytes(16), b"\xff" * 16]
        case PrimitiveType(name="string"):
            values += ["", ".", "..", "*", "a\0b\n", "\U0010ffff", "x" * 250, "x" * 32_000]
        case PrimitiveType(name="bytes"):
            values += [b"", b"\xff", bytes(100_000)]
        case PrimitiveType(name="records"):
            values += [memoryview(b""), memoryview(b"\xff" * 61), memoryview(bytes(100_000))]
    return values


def example(message: MessageType, version: int, topic_id: bytes) -> Message:
    """A request that addresses what exists."""
    return message(
        **{
            field.name: _example(field, field.type, version, topic_id)
            for field in fields(message, version)
        }
    )


def _example(field: Field, wire_type: WireType, version: int, topic_id: bytes) -> Any:
    match wire_type:
        case Array(element):
            return [_example(field, element, version, topic_id)]
        case PrimitiveType(name="string"):
            return NAME
        case PrimitiveType(name="uuid"):
            return topic_id
        case PrimitiveType(name="bytes"):
            return b"value"
        case PrimitiveType(name="records"):
            return memoryview(build([Record(0, 1_700_000_000_000, b"key", b"value")]))
        case PrimitiveType():
            return 1 if field.name.endswith(("_ms", "timestamp")) else field.default or 0
        case inner:
            assert isinstance(inner, type)
            return example(inner, version, topic_id)


def mutations(message: Message, version: int) -> Iterator[tuple[str, Message]]:
    """Copies of a message with one unusual value each, with the place of the value."""
    for field in fields(type(message), version):
        value = getattr(message, field.name)
        for extreme in extremes(field.type, field.nullable, value):
            place = f"{field.name}={repr(extreme)[:40]}"
            yield place, replace(message, **{field.name: extreme})
        element = value[0] if isinstance(field.type, Array) else value
        if isinstance(element, Message):
            for place, inner in mutations(element, version):
                changed = [inner] if isinstance(field.type, Array) else inner
                yield f"{field.name}.{place}", replace(message, **{field.name: changed})


def random_message(message: Message, version: int, random: Random) -> Message:
    """A copy of a message in which any number of fields have unusual values."""
    changes: dict[str, Any] = {}
    for field in fields(type(message), version):
        value = getattr(message, field.name)
        if random.random() < 0.3:
            changes[field.name] = random.choice(
                [*extremes(field.type, field.nullable, value), value]
            )
        elif isinstance(field.type, Array) and isinstance(value[0], Message):
            changes[field.name] = [
                random_message(value[0], version, random) for _ in range(random.randint(1, 3))
            ]
        elif isinstance(value, Message):
            changes[field.name] = random_message(value, version, random)
    return replace(message, **changes)


async def send(broker: InMemoryBroker, api: Api[Any, Any], version: int, message: Message) -> None:
    parts = broker.dispatcher.dispatch(broker.client, framed(request(api, version, message)))
    if isinstance(parts, InFlightRequest):
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                parts = await response_parts(parts)
        except TimeoutError:
            parts.client_disconnected()
            return
    if parts:  # A request that expects no response has none.
        decode_response(framed(b"".join(parts)), api, version)


async def commit(broker: InMemoryBroker, offset: int) -> int:
    """Commit an offset as another client; returns what is committed then."""
    offsets = TopicToCommit(name="other", partitions=[PartitionToCommit(0, offset)])
    await broker.ask(OFFSET_COMMIT, OffsetCommitRequest("other", -1, topics=[offsets]), 8)
    fetch = OffsetFetchRequest(groups=[GroupToFetch(group_id="other", topics=None)])
    response = await broker.ask(OFFSET_FETCH, fetch, 8)
    return response.groups[0].topics[0].partitions[0].committed_offset


def failures(logs: list[Any]) -> list[Any]:
    return [line for line in logs if line["log_level"] in ("error", "critical")]


@pytest.mark.parametrize("api", [route.api for route in ROUTES], ids=lambda api: api.name)
def test_extreme_values_harm_nobody(api):
    async def body(broker: InMemoryBroker) -> None:
        await broker.topic(NAME, 2)
        await broker.topic("other")
        for version in api.versions:
            topic_id = broker.services.topic_store.topics[NAME].id
            template = example(api.request, version, topic_id)
            combined = (random_message(template, version, random) for _ in range(RANDOM_COUNT))
            messages = chain(mutations(template, version), (("", each) for each in combined))
            for place, message in messages:
                await send(broker, api, version, message)
                assert not failures(logs), f"{api.name} v{version}: {place or message}"
                if broker.services.topic_store.get(NAME) is None:
                    await broker.topic(NAME, 2)
            await asyncio.sleep(SETTLE_SECONDS)
            broker.services.groups.expire_offsets()
            assert await commit(broker, version) == version
            await broker.write("other", 1_700_000_000_000)
            assert not failures(logs)

    random = Random(api.name)
    with capture_logs() as logs:
        run_with_broker(body)


# --- sizes ----------------------------------------------------------------------------------------


def find_coordinators(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(keys=["group"] * count)


def test_requests_have_a_limited_number_of_elements():
    """An empty name is one byte long: 100 MB of them would stop the broker for half an hour."""

    async def body(broker: InMemoryBroker) -> None:
        response = await broker.ask(FIND_COORDINATOR, find_coordinators(REQUEST_ELEMENTS_MAX))
        assert len(response.coordinators) == REQUEST_ELEMENTS_MAX
        too_many = find_coordinators(REQUEST_ELEMENTS_MAX + 1)
        await broker.ask(FIND_COORDINATOR, too_many, is_closed=True)
        topics = [TopicToCommit("orders", partitions=[PartitionToCommit()] * 200)] * 100
        await broker.ask(OFFSET_COMMIT, OffsetCommitRequest(topics=topics), 8, is_closed=True)
        assert (await broker.ask(FIND_COORDINATOR, find_coordinators(1))).coordinators

    with capture_logs() as logs:
        run_with_broker(body)
    reasons = [line["reason"] for line in logs if line["event"] == "unreadable request"]
    assert "20001 elements up to keys exceed the limit of a request" in reasons[0]


def test_only_produce_requests_may_be_large():
    size_bytes = CONFIG.network.other_request_bytes_max

    async def body(broker: InMemoryBroker) -> None:
        metadata = "x" * 30_000
        partitions = [PartitionToCommit(metadata=metadata)] * (size_bytes // 30_000 + 1)
        offsets = TopicToCommit("orders", partitions=partitions)
        await broker.ask(OFFSET_COMMIT, OffsetCommitRequest(topics=[offsets]), 8, is_closed=True)
        records = memoryview(bytes(size_bytes))
        topic = TopicToProduce(name="orders", partitions=[PartitionToProduce(records=records)])
        response = await broker.ask(PRODUCE, ProduceRequest(acks=-1, topics=[topic]), 9)
        assert response.topics[0].partitions[0].error_code != 0

    with capture_logs() as logs:
        run_with_broker(body)
    (reason,) = [line["reason"] for line in logs if line["event"] == "unreadable request"]
    assert f"exceeds the limit of {size_bytes} bytes" in reason


def renamed(message: Message, version: int, number: int) -> Message:
    """A copy of a message with other names in it."""
    changes: dict[str, Any] = {}
    for field in fields(type(message), version):
        value = getattr(message, field.name)
        if isinstance(value, str):
            changes[field.name] = f"name-{number}"
        elif isinstance(field.type, Array) and isinstance(value[0], Message):
            changes[field.name] = [renamed(value[0], version, number)] * 3
    return replace(message, **changes)


def long_list(api: Api[Any, Any], version: int, topic_id: bytes) -> Message:
    """A request for many things, of which only one exists."""
    message = example(api.request, version, topic_id)
    (field,) = [each for each in fields(api.request, version) if isinstance(each.type, Array)]
    first = getattr(message, field.name)[0]
    others = [
        renamed(first, version, number) if isinstance(first, Message) else f"name-{number}"
        for number in range(2 * SLICE_ELEMENTS)
    ]
    changes: dict[str, Any] = {field.name: [first, *others]}
    if hasattr(message, "allow_auto_topic_creation"):
        changes["allow_auto_topic_creation"] = False
    return replace(message, **changes)


@pytest.mark.parametrize(
    "sliced_route",
    [route for route in ROUTES if route.results],
    ids=lambda sliced_route: sliced_route.api.name,
)
def test_other_requests_are_served_between_the_slices_of_a_long_list(sliced_route):
    api = sliced_route.api
    version = api.version_max
    responses = []

    async def in_slices(broker: InMemoryBroker) -> None:
        message = long_list(api, version, (await broker.topic(NAME, 2)).id)
        long = broker.dispatcher.dispatch(broker.client, framed(request(api, version, message)))
        assert isinstance(long, InFlightRequest)
        await asyncio.sleep(0)
        assert (await broker.ask(FIND_COORDINATOR, find_coordinators(1))).coordinators
        assert not long.future.done()
        parts = await response_parts(long)
        responses.append(decode_response(framed(b"".join(parts)), api, version)[1])

    async def at_once(broker: InMemoryBroker) -> None:
        message = long_list(api, version, (await broker.topic(NAME, 2)).id)
        returned = sliced_route.handle(broker.context(api, version), message)
        responses.append(await returned if isawaitable(returned) else returned)

    run_with_broker(in_slices)
    run_with_broker(at_once)
    # Topics have random ids; the client has read what it was sent.
    sliced, whole = (without_ids(msgspec.to_builtins(each)) for each in responses)
    assert sliced == whole


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_ids(inner) for key, inner in value.items() if key != "topic_id"}
    return [without_ids(each) for each in value] if isinstance(value, list) else value
