"""Small requests with long responses: no turn of the event loop takes long, and memory has a bound.

The limit is generous, because the machines of tests are slow.
"""

import asyncio

import pytest

from doubles import virtual_time
from doubles.turn_timer import measured_turns
from kafscale.broker.requests.repeats import REPEATED_RESULTS_MAX
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from kafscale.storage.log.state.producer_state import PRODUCERS_COUNT_MAX
from kafscale.transactions.transaction import Transaction
from unit.broker.harness import decode_response, framed, request, response_parts
from unit.broker.in_memory_broker import run_with_broker

TURN_SECONDS_MAX = 0.05
PARTITIONS = 10
OFFSETS = 30_000
IDS = 100_000
REPEATS = 1_000
OK, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST


@pytest.fixture
def turns():
    with measured_turns() as timer:
        yield timer


@pytest.fixture
def serve(turns):
    """Serves a request, and measures the turns, without those of the client."""

    async def serve_request(broker, api, message, version):
        frame = framed(request(api, version, message))
        await asyncio.sleep(0)  # This turn has encoded the request.
        turns.reset()
        parts = await response_parts(broker.dispatcher.dispatch(broker.client, frame))
        assert turns.longest_seconds < TURN_SECONDS_MAX, turns.longest
        return decode_response(framed(b"".join(parts)), api, version)[1]

    return serve_request


def test_producers(serve):
    async def body(broker):
        await broker.topic("orders", PARTITIONS)
        for partition in range(PARTITIONS):
            producers = broker.log("orders", partition).producers
            for producer_id in range(PRODUCERS_COUNT_MAX):
                producers.record(producer_id, 0, 0, 0, 0, 0, 0, 0)

        async def described(partitions):
            message = DescribeProducersRequest([TopicToDescribe("orders", list(partitions))])
            response = await serve(broker, DESCRIBE_PRODUCERS, message, 0)
            [topic] = response.topics
            assert [each.index for each in topic.partitions] == list(partitions)
            return [(each.error_code, len(each.active_producers)) for each in topic.partitions]

        whole = (OK, PRODUCERS_COUNT_MAX)
        assert await described(range(PARTITIONS)) == PARTITIONS * [whole]
        # As in Kafka, a repeated partition is answered again.
        assert await described([0, 0]) == 2 * [whole]
        repeated = await described(REPEATS * [0])
        assert set(repeated) == {whole, (INVALID, 0)}
        assert repeated.count(whole) == 1 + REPEATED_RESULTS_MAX // (1 + PRODUCERS_COUNT_MAX)
        # Numbers are not counted among the elements of a request.
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        assert set(await described(range(PARTITIONS, OFFSETS))) == {unknown}

    run_with_broker(body)


def test_transactions(serve):
    async def body(broker):
        partitions = [("orders", number) for number in range(OFFSETS)]
        await broker.begin("billing", *partitions)
        message = DescribeTransactionsRequest(REPEATS * ["billing"])
        response = await serve(broker, DESCRIBE_TRANSACTIONS, message, 0)
        first, *others = response.transactions
        assert [each.partitions for each in first.topics] == [list(range(OFFSETS))]
        assert [(each.transactional_id, each.error_code) for each in others] == (REPEATS - 1) * [
            ("billing", INVALID)
        ]

    run_with_broker(body)


def test_transactional_ids(serve):
    async def body(broker):
        coordinator = broker.services.transactions.coordinator
        for number in range(IDS):
            transaction = Transaction.new(f"sink-{number}", virtual_time.clock_ms())
            session = coordinator._require_session(f"sink-{number}")
            coordinator._ids.add(session, transaction)
        response = await serve(broker, LIST_TRANSACTIONS, ListTransactionsRequest(["None"]), 2)
        assert response.unknown_state_filters == ["None"]
        assert not response.transactions
        response = await serve(broker, LIST_TRANSACTIONS, ListTransactionsRequest(), 2)
        assert len({each.transactional_id for each in response.transactions}) == IDS

    run_with_broker(body)


@pytest.mark.parametrize("version", [5, 9])
def test_offsets(serve, version):
    async def body(broker):
        topic = await broker.topic("orders")
        offset = CommittedOffset(
            offset=7, metadata="m" * 100, committed_ms=virtual_time.clock_ms(), topic_id=topic.id
        )
        broker.services.groups.registry.get_or_create("g").offsets.commit(
            {("orders", number): offset for number in range(OFFSETS)}
        )
        await broker.services.groups.delete_offsets("g", [])

        async def fetched(topics, repeats=1):
            message = OffsetFetchRequest(
                group_id="g", topics=topics, groups=repeats * [GroupToFetch("g", topics=topics)]
            )
            response = await serve(broker, OFFSET_FETCH, message, version)
            groups = response.groups if version >= 8 else [response]
            return [
                (
                    group.error_code,
                    [
                        (each.index, each.committed_offset, each.error_code)
                        for topic in group.topics
                        for each in topic.partitions
                    ],
                )
                for group in groups
            ]

        everything = [(number, 7, OK) for number in range(OFFSETS)]
        assert await fetched(None) == [(OK, everything)]
        numbers = list(range(OFFSETS))
        assert await fetched([TopicToFetch(name="orders", partitions=numbers)]) == [
            (OK, everything)
        ]
        [(_, repeated)] = await fetched([TopicToFetch(name="orders", partitions=OFFSETS * [0])])
        assert set(repeated) == {(0, 7, OK), (0, -1, INVALID)}
        assert repeated.count((0, 7, OK)) < REPEATED_RESULTS_MAX
        if version >= 8:
            assert await fetched(None, REPEATS) == [
                (OK, everything),
                *((REPEATS - 1) * [(INVALID, [])]),
            ]

    run_with_broker(body)
