"""Throttling: what requests are charged, and how long their clients have to wait."""

import asyncio
from random import Random

import pytest

from kafscale.broker.network.listener_config import Listener, Protocol
from kafscale.broker.requests.context import ClientInfo, Drain, RequestContext
from kafscale.broker.security.quotas import Throttling
from kafscale.errors import ThrottledError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.metadata.access.store import AclStore
from kafscale.metadata.store.memory import MemoryStore
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatedTopic,
    CreateTopicsResponse,
)
from kafscale.protocol.messages.fetch import FETCH, FetchedPartition, FetchedTopic, FetchResponse
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from kafscale.protocol.messages.produce import PRODUCE, ProduceResponse
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.security.principal import ANONYMOUS, Principal
from kafscale.testing import virtual_time

ALICE = Principal("User:alice")
ALICES = QuotaEntity(user="alice")
EVERYBODY = QuotaEntity(user="")
SASL = Listener(protocol=Protocol.SASL_PLAINTEXT)


class Desk:
    """Throttling by quotas that a test sets."""

    def __init__(self, rules):
        self.traffic = SecurityCounters()
        self.rules = rules
        self.throttling = Throttling(rules, self.traffic, asyncio.get_running_loop().time)

    async def limit(self, entity=ALICES, /, **limits):
        await self.rules.alter_quota(entity, limits)

    def context(self, api, version=None, *, request_bytes=0, identity=ALICE, **client):
        return RequestContext(
            ClientInfo("10.0.0.1", 50_000, identity=identity, **client),
            "loader",
            api,
            api.version_max if version is None else version,
            correlation_id=1,
            received_ms=0,
            started=0.0,
            broker=None,
            drain=Drain(),
            request_bytes=request_bytes,
        )

    def produce(self, request_bytes, **context):
        asked = self.context(PRODUCE, request_bytes=request_bytes, **context)
        return self.throttling.charge(asked, ProduceResponse(), 0.0)

    def fetch(self, *sizes_bytes):
        slices = [memoryview(bytes(each)) for each in sizes_bytes]
        response = FetchResponse(
            topics=[FetchedTopic("orders", partitions=[FetchedPartition(records=slices)])]
        )
        return self.throttling.charge(self.context(FETCH), response, 0.0)

    def beat(self, busy_seconds=0.0, **context):
        asked = self.context(HEARTBEAT, **context)
        return self.throttling.charge(asked, HeartbeatResponse(), busy_seconds)


def at_desk(body):
    async def scenario(_random: Random) -> None:
        rules = AclStore(MemoryStore(virtual_time.clock_ms))
        await rules.start()
        try:
            await body(Desk(rules))
        finally:
            await rules.close()

    virtual_time.run(scenario, seed=0)


def test_without_quotas_there_is_nothing_to_do():
    async def body(desk):
        assert desk.throttling.is_idle
        assert desk.produce(10**9) == 0
        await desk.limit(producer_byte_rate=1000.0)
        assert not desk.throttling.is_idle
        await desk.limit(producer_byte_rate=None)
        assert desk.throttling.is_idle
        assert desk.traffic.throttled == {}

    at_desk(body)


def test_quotas_that_are_there_from_the_start_hold_from_the_start():
    async def body(desk):
        await desk.limit(producer_byte_rate=1000.0)
        assert not Throttling(desk.rules, desk.traffic, lambda: 0.0).is_idle

    at_desk(body)


def test_producers_are_charged_what_they_send():
    async def body(desk):
        await desk.limit(producer_byte_rate=1000.0)
        assert desk.produce(1000) == 0
        assert desk.produce(500) == 500
        assert desk.fetch(10_000) == 0
        assert desk.beat() == 0
        await asyncio.sleep(0.5)
        assert desk.produce(1) == 1
        assert desk.traffic.throttled == {"producer_byte_rate": 2}

    at_desk(body)


def test_consumers_are_charged_what_they_get():
    async def body(desk):
        await desk.limit(consumer_byte_rate=1000.0)
        assert desk.fetch(600, 400) == 0
        assert desk.fetch(200) == 200
        assert desk.fetch() == 200, "an empty answer waits for the debts of others as well"
        assert desk.produce(10_000) == 0
        refused = desk.throttling.charge(desk.context(FETCH), FetchResponse(error_code=1), 0.0)
        assert refused == 200

    at_desk(body)


def test_a_fetch_brings_no_more_than_can_be_waited_for():
    async def body(desk):
        context = desk.context(FETCH)
        assert desk.throttling.fetch_bytes_max(context, 50_000) == 50_000
        await desk.limit(consumer_byte_rate=1000.0)
        assert desk.throttling.fetch_bytes_max(context, 50_000) == 10_000
        assert desk.throttling.fetch_bytes_max(context, 5_000) == 5_000

    at_desk(body)


def test_every_request_counts_and_so_does_its_time():
    async def body(desk):
        await desk.limit(request_rate=2.0)
        assert [desk.beat(), desk.produce(1), desk.fetch()] == [0, 0, 500]
        await desk.limit(request_rate=None, request_percentage=10.0)
        assert [desk.beat(0.1), desk.beat(0.05)] == [0, 500]
        assert desk.beat(60.0) == 1000, "heartbeats must not wait for long"

    at_desk(body)


def test_the_longest_wait_is_what_is_told_and_counted():
    async def body(desk):
        await desk.limit(request_rate=1.0, producer_byte_rate=1000.0)
        desk.beat()
        assert desk.produce(1100) == 1000
        assert desk.produce(3000) == 3100
        assert desk.traffic.throttled == {"request_rate": 1, "producer_byte_rate": 1}

    at_desk(body)


def test_what_logging_in_takes_is_free():
    async def body(desk):
        await desk.limit(EVERYBODY, request_rate=0.1)
        stranger = desk.context(API_VERSIONS, identity=ANONYMOUS, listener=SASL)
        again = desk.context(SASL_AUTHENTICATE, listener=SASL)
        for context in [stranger, again] * 5:
            assert desk.throttling.charge(context, None, 1.0) == 0
        nobody = [desk.beat(identity=ANONYMOUS) for _ in range(2)]
        assert nobody == [0, 10_000], "where nobody logs in, all are ANONYMOUS, and limited so"

    at_desk(body)


def test_a_name_that_a_client_gives_itself_is_not_its_user():
    async def body(desk):
        await desk.limit(QuotaEntity(user="loader"), producer_byte_rate=1.0)
        assert desk.produce(10_000) == 0

    at_desk(body)


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_changes_of_topics_are_refused_where_clients_know_the_error(version):
    async def body(desk):
        await desk.limit(controller_mutation_rate=2.0)
        context = desk.context(CREATE_TOPICS, version)
        made = CreateTopicsResponse(topics=[CreatedTopic("orders")])
        desk.throttling.mutate(context, 30)  # More than there is, but nothing is owed yet.
        waits_ms = desk.throttling.charge(context, made, 0.0)
        if version < 6:
            assert waits_ms == 4000
            desk.throttling.mutate(context, 2)
            assert desk.throttling.charge(context, made, 0.0) == 5000
        else:
            assert waits_ms == 0
            with pytest.raises(ThrottledError):
                desk.throttling.mutate(context, 1)
            refused = CreateTopicsResponse(topics=[CreatedTopic("orders", error_code=89)])
            assert desk.throttling.charge(context, refused, 0.0) == 4000
            await asyncio.sleep(4)
            desk.throttling.mutate(context, 1)

    at_desk(body)


def test_without_a_quota_topics_are_changed_as_often_as_one_likes():
    async def body(desk):
        context = desk.context(CREATE_TOPICS)
        desk.throttling.mutate(context, 10**6)
        await desk.limit(producer_byte_rate=1.0)
        desk.throttling.mutate(context, 10**6)
        assert desk.throttling.charge(context, CreateTopicsResponse(), 0.0) == 0

    at_desk(body)


def test_addresses_that_come_too_often_are_turned_away():
    async def body(desk):
        throttling = desk.throttling
        assert throttling.connection_delay_ms("10.0.0.1") == 0
        await desk.limit(QuotaEntity(ip=""), connection_creation_rate=2.0)
        waits = [throttling.connection_delay_ms("10.0.0.1") for _ in range(4)]
        assert waits == [0, 0, 500, 500], "who is turned away does not count"
        assert throttling.connection_delay_ms("::ffff:10.0.0.1") == 500
        assert throttling.connection_delay_ms("10.0.0.2") == 0
        assert throttling.connection_delay_ms("") == 0
        await asyncio.sleep(0.5)
        assert throttling.connection_delay_ms("10.0.0.1") == 0
        assert desk.traffic.throttled == {"connection_creation_rate": 3}

    at_desk(body)


def test_users_who_come_too_often_have_to_wait():
    async def body(desk):
        assert desk.throttling.login_delay_ms(ALICE) == 0
        await desk.limit(connection_creation_rate=1.0)
        assert [desk.throttling.login_delay_ms(ALICE) for _ in range(3)] == [0, 1000, 2000]
        assert desk.throttling.login_delay_ms(Principal("User:bob")) == 0
        assert desk.beat() == 0

    at_desk(body)
