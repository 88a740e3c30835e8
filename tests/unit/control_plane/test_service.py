"""Validation of requests, and the calls of the broker."""

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
from unit.control_plane.scripted_broker import ORDERS_0, ORDERS_1, ScriptedBroker


def service_of(broker, **bounds):
    samples = Samples(lambda: 1_000)
    return ControlService(broker, AssignmentFeed(broker.partition_owners), samples, **bounds)


async def streamed(*samples):
    for sample in samples:
        yield sample


@pytest.mark.parametrize(
    ("method", "request_message", "message"),
    [
        ("drain_partitions", DrainPartitionsRequest(deadline_seconds=-1), "deadline"),
        ("drain_partitions", DrainPartitionsRequest(deadline_seconds=3601), "deadline"),
        ("drain_partitions", DrainPartitionsRequest(reason="x" * 1001), "reason"),
        (
            "drain_partitions",
            DrainPartitionsRequest(partitions=[PartitionRef()]),
            "must have a topic",
        ),
        ("trigger_flush", TriggerFlushRequest(), "all_assigned"),
        ("trigger_flush", TriggerFlushRequest(partitions=[PartitionRef()]), "must have a topic"),
        ("seal_tail", SealTailRequest(), "must have a topic"),
        ("swap_segments", SwapSegmentsRequest(job="merge"), "must have a topic"),
        ("swap_segments", SwapSegmentsRequest(partition=ORDERS_0.message), "job is required"),
    ],
)
def test_invalid_request_is_rejected_before_the_broker_is_called(method, request_message, message):
    async def scenario():
        broker = ScriptedBroker()
        with pytest.raises(InvalidRequestError, match=message):
            await getattr(service_of(broker), method)(request_message)
        assert not broker.calls

    run(scenario)


def test_too_many_partitions_are_rejected():
    async def scenario():
        broker = ScriptedBroker()
        named = [PartitionRef(topic="orders", partition=number) for number in range(10_001)]
        with pytest.raises(InvalidRequestError, match="at most 10000 partitions"):
            await service_of(broker).trigger_flush(TriggerFlushRequest(partitions=named))

    run(scenario)


def test_duplicate_partitions_are_merged():
    async def scenario():
        broker = ScriptedBroker()
        named = [ORDERS_0.message, ORDERS_1.message, ORDERS_0.message]
        response = await service_of(broker).trigger_flush(TriggerFlushRequest(partitions=named))
        assert broker.calls == [("flush", [ORDERS_0, ORDERS_1])]
        assert list(response.flushed) == named[:2]

    run(scenario)


def test_all_assigned_overrides_partitions():
    async def scenario():
        broker = ScriptedBroker()
        await service_of(broker).trigger_flush(
            TriggerFlushRequest(partitions=[ORDERS_0.message], all_assigned=True)
        )
        assert broker.calls == [("flush", None)]

    run(scenario)


def test_drain_without_partitions_is_of_everything():
    async def scenario():
        broker = ScriptedBroker()
        service = service_of(broker)
        await service.drain_partitions(DrainPartitionsRequest(reason="upgrade"))
        await service.drain_partitions(
            DrainPartitionsRequest(partitions=[ORDERS_1.message], deadline_seconds=7)
        )
        assert broker.calls == [("drain", None, "upgrade", 30), ("drain", [ORDERS_1], "", 7)]

    run(scenario)


def test_timeout_has_a_message():
    async def scenario():
        broker = ScriptedBroker()
        broker.gate = asyncio.Event()
        service = service_of(broker, work_seconds_max=0.01)
        with pytest.raises(TimeoutError, match=r"sealing takes more than 0\.01 seconds"):
            await service.seal_tail(SealTailRequest(partition=ORDERS_0.message))

    run(scenario)


def test_status_includes_samples_on_request():
    async def scenario():
        service = service_of(ScriptedBroker())
        sample = MetricsSample(broker_id="4", timestamp_ms=1, counters={"requests": 2.0})
        ack = await service.stream_metrics(streamed(sample, sample))
        assert ack.message == "2 samples accepted"
        assert not (await service.get_status(BrokerStatusRequest())).samples
        status = await service.get_status(BrokerStatusRequest(with_samples=True))
        assert list(status.samples) == [sample]

    run(scenario)
