"""What the methods make of requests, before a broker is asked and after."""

import asyncio

import pytest

from kafscale.control_plane.assignment_feed import AssignmentFeed
from kafscale.control_plane.messages import (
    BrokerStatusRequest,
    DrainPartitionsRequest,
    MetricsSample,
    PartitionRef,
    SealTailRequest,
    SwapSegmentsRequest,
    TriggerFlushRequest,
)
from kafscale.control_plane.samples import Samples
from kafscale.control_plane.service import ControlService
from kafscale.errors import InvalidRequestError
from unit.broker.harness import run
from unit.control_plane.stage import ORDERS_0, ORDERS_1, ScriptedBroker


def service_of(broker, **bounds):
    return ControlService(broker, AssignmentFeed(broker.holdings), Samples(), **bounds)


async def streamed(*samples):
    for sample in samples:
        yield sample


@pytest.mark.parametrize(
    ("method", "request_message", "complaint"),
    [
        ("drain_partitions", DrainPartitionsRequest(deadline_seconds=-1), "deadline"),
        ("drain_partitions", DrainPartitionsRequest(deadline_seconds=3601), "deadline"),
        ("drain_partitions", DrainPartitionsRequest(reason="x" * 1001), "reason"),
        ("drain_partitions", DrainPartitionsRequest(partitions=[PartitionRef()]), "its topic"),
        ("trigger_flush", TriggerFlushRequest(), "all_assigned"),
        ("trigger_flush", TriggerFlushRequest(partitions=[PartitionRef()]), "its topic"),
        ("seal_tail", SealTailRequest(), "its topic"),
        ("swap_segments", SwapSegmentsRequest(job="merge"), "its topic"),
        ("swap_segments", SwapSegmentsRequest(partition=ORDERS_0.message), "which job"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_broker_is_asked(
    method, request_message, complaint
):
    async def story():
        broker = ScriptedBroker()
        with pytest.raises(InvalidRequestError, match=complaint):
            await getattr(service_of(broker), method)(request_message)
        assert not broker.asked

    run(story)


def test_too_many_partitions_are_refused():
    async def story():
        broker = ScriptedBroker()
        named = [PartitionRef(topic="orders", partition=number) for number in range(10_001)]
        with pytest.raises(InvalidRequestError, match="10000 partitions at the most"):
            await service_of(broker).trigger_flush(TriggerFlushRequest(partitions=named))

    run(story)


def test_a_partition_that_is_named_twice_is_meant_once():
    async def story():
        broker = ScriptedBroker()
        named = [ORDERS_0.message, ORDERS_1.message, ORDERS_0.message]
        answer = await service_of(broker).trigger_flush(TriggerFlushRequest(partitions=named))
        assert broker.asked == [("flush", [ORDERS_0, ORDERS_1])]
        assert list(answer.flushed) == named[:2]

    run(story)


def test_all_that_is_assigned_wins_over_names():
    async def story():
        broker = ScriptedBroker()
        await service_of(broker).trigger_flush(
            TriggerFlushRequest(partitions=[ORDERS_0.message], all_assigned=True)
        )
        assert broker.asked == [("flush", None)]

    run(story)


def test_a_drain_without_names_is_of_everything_and_has_a_deadline():
    async def story():
        broker = ScriptedBroker()
        service = service_of(broker)
        await service.drain_partitions(DrainPartitionsRequest(reason="upgrade"))
        await service.drain_partitions(
            DrainPartitionsRequest(partitions=[ORDERS_1.message], deadline_seconds=7)
        )
        assert broker.asked == [("drain", None, "upgrade", 30), ("drain", [ORDERS_1], "", 7)]

    run(story)


def test_what_takes_too_long_is_told_so():
    async def story():
        broker = ScriptedBroker()
        broker.gate = asyncio.Event()
        service = service_of(broker, work_seconds_max=0.01)
        with pytest.raises(TimeoutError, match=r"sealing takes more than 0\.01 seconds"):
            await service.seal_tail(SealTailRequest(partition=ORDERS_0.message))

    run(story)


def test_samples_are_shown_to_those_who_ask_for_them():
    async def story():
        service = service_of(ScriptedBroker())
        sample = MetricsSample(broker_id="4", timestamp_ms=1, counters={"requests": 2.0})
        ack = await service.stream_metrics(streamed(sample, sample))
        assert ack.message == "2 samples taken"
        assert not (await service.get_status(BrokerStatusRequest())).samples
        status = await service.get_status(BrokerStatusRequest(with_samples=True))
        assert list(status.samples) == [sample]

    run(story)
