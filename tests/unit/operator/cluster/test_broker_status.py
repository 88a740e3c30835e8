"""Surveys: what brokers say, how long one lasts, and that a silent broker holds nobody up."""

import asyncio

from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import BrokerStatusResponse, MetricsSample, PartitionStatus
from kafscale.control_plane.partition import Partition
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.memory import MemoryStore
from kafscale.operator.cluster.broker_status import (
    ASKED_AT_ONCE_MAX,
    CONNECTIONS,
    FRESH_MS,
    IDLE,
    Surveyor,
    control_address,
    over_control_plane,
    summary,
)
from kafscale.operator.cluster.metadata import ClusterMetadata
from kafscale.testing import virtual_time
from unit.control_plane.stage import ScriptedBroker, served


def registered(broker_id, **more):
    return BrokerInfo(id=broker_id, epoch=1, host="a", port=9092, **more)


def sample(broker_id, timestamp_ms, connections):
    return MetricsSample(
        broker_id=broker_id, timestamp_ms=timestamp_ms, gauges={CONNECTIONS: connections}
    )


def test_a_survey_tells_how_brokers_do_and_how_far_logs_go():
    survey = summary(
        {
            0: BrokerStatusResponse(
                broker_id="0",
                ready=True,
                version="1.2",
                partitions=[
                    PartitionStatus(topic="orders", partition=0, leader=True, log_end_offset=7),
                    PartitionStatus(topic="orders", partition=1, leader=False, log_end_offset=3),
                ],
                samples=[sample("0", 1, 5), sample("1", 5, 2)],
            ),
            1: BrokerStatusResponse(
                broker_id="1",
                draining=True,
                problems={"store": "it does not answer"},
                partitions=[
                    PartitionStatus(topic="orders", partition=1, leader=True, log_end_offset=4)
                ],
                samples=[sample("0", 2, 6), sample("1", 4, 9)],
            ),
        }
    )
    assert (survey.ready, survey.draining, survey.silent) == ([0], [1], [])
    assert survey.log_end_offsets == {Partition("orders", 0): 7, Partition("orders", 1): 4}
    assert survey.brokers[0].version == "1.2"
    assert survey.brokers[0].partition_count == 2
    assert survey.brokers[1].problems == {"store": "it does not answer"}
    assert [each.connection_count for each in survey.brokers.values()] == [6, 2]
    assert survey.connection_count == 8


def test_what_one_broker_does_not_say_is_not_made_up():
    survey = summary({0: BrokerStatusResponse(broker_id="0", samples=[sample("0", 1, 5)]), 1: None})
    assert survey.silent == [1]
    assert survey.ready == []
    assert survey.connection_count is None


class Brokers:
    """Brokers that answer after a second; `silent` ones never do, `lost` ones cannot be reached."""

    def __init__(self, count):
        self.store = MemoryStore(virtual_time.clock_ms)
        self.metadata = ClusterMetadata(self.store, "objects")
        self.count = count
        self.asked = 0
        self.asked_at_once = self.asked_at_once_max = 0
        self.silent = self.lost = frozenset()

    async def start(self):
        for number in range(self.count):
            value = encode_broker(registered(number), 0)
            await self.store.commit([], [Put(keys.broker(str(number)), value)])
        await self.metadata.start()

    async def answer(self, broker):
        self.asked += 1
        self.asked_at_once += 1
        self.asked_at_once_max = max(self.asked_at_once_max, self.asked_at_once)
        try:
            if broker.id in self.lost:
                raise UnreachableError("a:0", "UNAVAILABLE", "connection refused")
            await asyncio.sleep(3600 if broker.id in self.silent else 1)
        finally:
            self.asked_at_once -= 1
        return BrokerStatusResponse(broker_id=str(broker.id), ready=True)


def play(body, count=3):
    async def scenario(_random):
        brokers = Brokers(count)
        await brokers.start()
        try:
            return await body(brokers, Surveyor(brokers.answer, virtual_time.clock_ms))
        finally:
            await brokers.metadata.close()

    return virtual_time.run(scenario, seed=0)


def test_one_survey_serves_all_who_ask_within_some_seconds():
    async def body(brokers, surveyor):
        surveys = await asyncio.gather(*(surveyor.survey(brokers.metadata) for _ in range(100)))
        assert all(each is surveys[0] for each in surveys)
        assert brokers.asked == 3
        await asyncio.sleep(FRESH_MS / 1000)
        assert await surveyor.survey(brokers.metadata) is not surveys[0]
        return brokers.asked

    assert play(body) == 6


def test_who_does_not_answer_is_silent_and_holds_nobody_up():
    async def body(brokers, surveyor):
        brokers.silent, brokers.lost = {0}, {2}
        begun_ms = virtual_time.clock_ms()
        survey = await surveyor.survey(brokers.metadata)
        return survey.ready, survey.silent, virtual_time.clock_ms() - begun_ms

    ready, silent, lasted_ms = play(body)
    assert (ready, silent) == ([1], [0, 2])
    assert lasted_ms < 5000


def test_many_brokers_are_asked_a_few_at_a_time():
    async def body(brokers, surveyor):
        survey = await surveyor.survey(brokers.metadata)
        return len(survey.ready), brokers.asked_at_once_max

    assert play(body, count=50) == (50, ASKED_AT_ONCE_MAX)


def test_what_is_known_of_a_cluster_is_forgotten_with_it():
    async def body(brokers, surveyor):
        await surveyor.survey(brokers.metadata)
        assert len(surveyor._kept) == 1
        await brokers.metadata.close()
        brokers.metadata = ClusterMetadata(brokers.store, "objects")
        await asyncio.sleep(1)
        return len(surveyor._kept)

    assert play(body) == 0


def test_brokers_are_asked_where_they_have_registered():
    async def body():
        broker = ScriptedBroker()
        async with served(broker) as client:
            here = registered(3, control_host="127.0.0.1", control_port=client.server.port)
            answer = await over_control_plane()(here)
        return answer.broker_id, answer.partitions[0].log_end_offset

    assert asyncio.run(body()) == ("3", 12)
    assert control_address(registered(0, control_port=9093)) == "a:9093"


def test_the_operators_own_samples_tell_of_clients():
    samples = {
        "red": [
            MetricsSample(broker_id="0", timestamp_ms=9, gauges={CONNECTIONS: 4, IDLE: 0}),
            MetricsSample(broker_id="1", timestamp_ms=9, gauges={CONNECTIONS: 0, IDLE: 70.5}),
        ]
    }

    async def body(brokers, _surveyor):
        async def answer(broker):
            return BrokerStatusResponse(broker_id=str(broker.id), cluster_id="red")

        surveyor = Surveyor(answer, virtual_time.clock_ms, lambda each: samples[each], fresh_ms=0)
        survey = await surveyor.survey(brokers.metadata)
        assert (survey.connection_count, survey.idle_seconds) == (4, 0)
        samples["red"][0].gauges[IDLE] = 90
        assert (await surveyor.survey(brokers.metadata)).idle_seconds == 70.5
        del samples["red"][0]
        survey = await surveyor.survey(brokers.metadata)
        return survey.connection_count, survey.idle_seconds

    assert play(body, count=2) == (None, None)
