"""Long lists are served in slices, one per iteration of the event loop, for all requests."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count

import msgspec
import pytest

from kafscale.broker.requests import slices
from kafscale.broker.requests.dispatcher import InFlightRequest
from kafscale.broker.requests.slices import SLICE_ELEMENTS, SLICE_RESULTS, sliced
from kafscale.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafscale.protocol.messages.describe_groups import (
    DESCRIBE_GROUPS,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from unit.broker.harness import framed, request, run_pending
from unit.broker.in_memory_broker import run_with_broker

VERSION = 5
REQUESTS = 10
SLICES = 4
NAMES = [f"name-{number}" for number in range(SLICES * SLICE_ELEMENTS)]


class IterationCounter:
    """Counts the iterations of the event loop."""

    def __init__(self):
        self.count = 0

    async def run(self):
        while True:
            self.count += 1
            await asyncio.sleep(0)


def test_requests_take_turns():
    """Each gets all of its results, in order, and no iteration serves two slices."""

    async def body(broker):
        iterations = IterationCounter()
        counting = asyncio.create_task(iterations.run())
        served = Counter()

        def describe(_context, request):
            served[iterations.count] += 1
            return DescribeGroupsResponse(
                groups=[DescribedGroup(group_id=group_id) for group_id in request.group_ids]
            )

        handle = sliced(DESCRIBE_GROUPS, VERSION, describe, "groups")
        context = broker.context(DESCRIBE_GROUPS, VERSION)
        responses = await asyncio.gather(
            *(handle(context, DescribeGroupsRequest(NAMES)) for _ in range(REQUESTS))
        )
        counting.cancel()
        for response in responses:
            assert [group.group_id for group in response.groups] == NAMES
        assert served.total() == REQUESTS * SLICES
        assert max(served.values()) == 1

    run_with_broker(body)


@pytest.mark.parametrize("is_long", [False, True])
def test_requests_with_many_results_take_turns(is_long):
    """However few elements they have; short ones need no task."""

    async def body(broker):
        iterations = IterationCounter()
        counting = asyncio.create_task(iterations.run())
        served = Counter()
        groups = [DescribedGroup(group_id=str(each)) for each in range(4 if is_long else 1)]

        def describe():
            response = DescribeGroupsResponse()
            for group in groups:
                yield SLICE_RESULTS // 2
                response.groups.append(group)
                served[iterations.count] += 1
            return response

        context = broker.context(DESCRIBE_GROUPS, VERSION)
        results = [slices.serve(context, describe()) for _ in range(REQUESTS)]
        assert [isinstance(each, DescribeGroupsResponse) for each in results] == REQUESTS * [
            not is_long
        ]
        # The beginnings are served at once.
        del served[iterations.count]
        if is_long:
            for response in await asyncio.gather(*results):
                assert response.groups == groups
            assert max(served.values()) == 2
            assert served.total() == REQUESTS * 3
        counting.cancel()

    run_with_broker(body)


def test_slice_that_waits_does_not_keep_others_waiting():
    async def body(broker):
        context = broker.context(DELETE_TOPICS, VERSION)
        blocked = asyncio.Event()

        async def wait(part):
            await blocked.wait()
            return part

        waiting = asyncio.create_task(slices.each(context, NAMES, wait))
        await run_pending()
        assert await slices.each(context, NAMES, list) == NAMES
        blocked.set()
        assert await waiting == NAMES

    run_with_broker(body)


def test_longest_list_of_topics_to_delete_is_served_in_slices():
    """Other requests are served before the response is complete."""

    async def body(broker):
        iterations = IterationCounter()
        counting = asyncio.create_task(iterations.run())
        names = [f"{name}-{copy}" for copy in range(SLICES**2) for name in NAMES]
        deleting = DeleteTopicsRequest(topic_names=names)
        response = await broker.ask(DELETE_TOPICS, deleting, VERSION)
        counting.cancel()
        assert [topic.name for topic in response.topics] == deleting.topic_names
        assert iterations.count >= SLICES**3

    run_with_broker(body)


@pytest.mark.parametrize(
    ("api", "version", "message"),
    [
        (DESCRIBE_GROUPS, VERSION, DescribeGroupsRequest(NAMES)),
        (FIND_COORDINATOR, 4, FindCoordinatorRequest(keys=NAMES)),
        (METADATA, 12, MetadataRequest([TopicToDescribe(name=name) for name in NAMES])),
    ],
)
def test_long_list_of_a_client_that_disconnects_is_served_no_further(api, version, message):
    async def body(broker):
        frame = framed(request(api, version, message))
        served = broker.dispatcher.dispatch(broker.client, frame)
        assert isinstance(served, InFlightRequest)
        await run_pending(2)
        served.client_disconnected()
        await run_pending(2)
        assert not broker.dispatcher._in_flight

    run_with_broker(body)


def test_half_of_the_time_remains_for_other_requests():
    """And the other half is charged to the quotas of the client."""
    slice_seconds = 0.01

    async def body(broker):
        context = broker.context(DESCRIBE_GROUPS, VERSION)
        loop = asyncio.get_running_loop()
        seconds = iter(count(loop.time(), slice_seconds))
        timed = msgspec.structs.replace(
            context, broker=replace(broker.services, timer=lambda: next(seconds))
        )
        started = loop.time()
        await slices.each(timed, NAMES, list)
        assert loop.time() - started == pytest.approx(SLICES * slice_seconds)
        assert timed.busy_seconds == pytest.approx(SLICES * slice_seconds)

    run_with_broker(body)
