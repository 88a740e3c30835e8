"""Client quotas: what requests are charged, and throttle times."""

import asyncio
from random import Random

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.network.listener_config import Listener, SecurityProtocol
from kafscale.broker.requests.context import ClientInfo, RequestContext, ShutdownSignal
from kafscale.broker.security.quotas import ClientQuotas
from kafscale.errors import ThrottledError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.metadata.access.store import AccessStore
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

ALICE = Principal("User:alice")
ALICES = QuotaEntity(user="alice")
DEFAULT_USER = QuotaEntity(user="")
SASL = Listener(protocol=SecurityProtocol.SASL_PLAINTEXT)


class QuotaHarness:
    """Client quotas that a test configures."""

    def __init__(self, access_store):
        self.counters = SecurityCounters()
        self.access_store = access_store
        self.quotas = ClientQuotas(access_store, self.counters, asyncio.get_running_loop().time)

    async def limit(self, entity=ALICES, /, **limits):
        await self.access_store.alter_quota(entity, limits)

    def context(self, api, version=None, *, request_bytes=0, principal=ALICE, **client):
        return RequestContext(
            ClientInfo("10.0.0.1", 50_000, principal=principal, **client),
            "loader",
            api,
            api.version_max if version is None else version,
            correlation_id=1,
            received_ms=0,
            started=0.0,
            broker=None,
            shutdown=ShutdownSignal(),
            request_bytes=request_bytes,
        )

    def produce(self, request_bytes, **context):
        requested = self.context(PRODUCE, request_bytes=request_bytes, **context)
        return self.quotas.charge(requested, ProduceResponse(), 0.0)

    def fetch(self, *sizes_bytes):
        slices = [memoryview(bytes(each)) for each in sizes_bytes]
        response = FetchResponse(
            topics=[FetchedTopic("orders", partitions=[FetchedPartition(records=slices)])]
        )
        return self.quotas.charge(self.context(FETCH), response, 0.0)

    def heartbeat(self, busy_seconds=0.0, **context):
        requested = self.context(HEARTBEAT, **context)
        return self.quotas.charge(requested, HeartbeatResponse(), busy_seconds)


def run_with_quotas(body):
    async def scenario(_random: Random) -> None:
        access_store = AccessStore(MemoryStore(virtual_time.clock_ms))
        await access_store.start()
        try:
            await body(QuotaHarness(access_store))
        finally:
            await access_store.close()

    virtual_time.run(scenario, seed=0)


def test_quotas_are_idle_without_configured_quotas():
    async def body(harness):
        assert harness.quotas.is_idle
        assert harness.produce(10**9) == 0
        await harness.limit(producer_byte_rate=1000.0)
        assert not harness.quotas.is_idle
        await harness.limit(producer_byte_rate=None)
        assert harness.quotas.is_idle
        assert harness.counters.throttled == {}

    run_with_quotas(body)


def test_existing_quotas_apply_from_the_start():
    async def body(harness):
        await harness.limit(producer_byte_rate=1000.0)
        assert not ClientQuotas(harness.access_store, harness.counters, lambda: 0.0).is_idle

    run_with_quotas(body)


def test_producer_byte_rate_charges_request_bytes():
    async def body(harness):
        await harness.limit(producer_byte_rate=1000.0)
        assert harness.produce(1000) == 0
        assert harness.produce(500) == 500
        assert harness.fetch(10_000) == 0
        assert harness.heartbeat() == 0
        await asyncio.sleep(0.5)
        assert harness.produce(1) == 1
        assert harness.counters.throttled == {"producer_byte_rate": 2}

    run_with_quotas(body)


def test_consumer_byte_rate_charges_fetched_bytes():
    async def body(harness):
        await harness.limit(consumer_byte_rate=1000.0)
        assert harness.fetch(600, 400) == 0
        assert harness.fetch(200) == 200
        assert harness.fetch() == 200, "an empty response is throttled for earlier ones"
        assert harness.produce(10_000) == 0
        refused = harness.quotas.charge(harness.context(FETCH), FetchResponse(error_code=1), 0.0)
        assert refused == 200

    run_with_quotas(body)


def test_fetch_size_is_limited_by_the_quota():
    async def body(harness):
        context = harness.context(FETCH)
        assert harness.quotas.fetch_bytes_max(context, 50_000) == 50_000
        await harness.limit(consumer_byte_rate=1000.0)
        assert harness.quotas.fetch_bytes_max(context, 50_000) == 10_000
        assert harness.quotas.fetch_bytes_max(context, 5_000) == 5_000

    run_with_quotas(body)


def test_request_rate_and_request_percentage_are_charged():
    async def body(harness):
        await harness.limit(request_rate=2.0)
        assert [harness.heartbeat(), harness.produce(1), harness.fetch()] == [0, 0, 500]
        await harness.limit(request_rate=None, request_percentage=10.0)
        assert [harness.heartbeat(0.1), harness.heartbeat(0.05)] == [0, 500]
        assert harness.heartbeat(60.0) == 1000, (
            "request_percentage throttles for one second at most"
        )

    run_with_quotas(body)


def test_longest_throttle_time_is_returned_and_counted():
    async def body(harness):
        await harness.limit(request_rate=1.0, producer_byte_rate=1000.0)
        harness.heartbeat()
        assert harness.produce(1100) == 1000
        assert harness.produce(3000) == 3100
        assert harness.counters.throttled == {"request_rate": 1, "producer_byte_rate": 1}

    run_with_quotas(body)


def test_authentication_requests_are_free():
    async def body(harness):
        await harness.limit(DEFAULT_USER, request_rate=0.1)
        peer = harness.context(API_VERSIONS, principal=ANONYMOUS, listener=SASL)
        again = harness.context(SASL_AUTHENTICATE, listener=SASL)
        for context in [peer, again] * 5:
            assert harness.quotas.charge(context, None, 1.0) == 0
        anonymous = [harness.heartbeat(principal=ANONYMOUS) for _ in range(2)]
        assert anonymous == [0, 10_000], "without authentication all clients are ANONYMOUS"

    run_with_quotas(body)


def test_client_id_is_not_a_user():
    async def body(harness):
        await harness.limit(QuotaEntity(user="loader"), producer_byte_rate=1.0)
        assert harness.produce(10_000) == 0

    run_with_quotas(body)


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_mutation_quota_refuses_versions_that_know_the_error(version):
    async def body(harness):
        await harness.limit(controller_mutation_rate=2.0)
        context = harness.context(CREATE_TOPICS, version)
        created = CreateTopicsResponse(topics=[CreatedTopic("orders")])
        harness.quotas.charge_mutation(
            context, 30
        )  # Exceeds the quota, but the balance was positive.
        waits_ms = harness.quotas.charge(context, created, 0.0)
        if version < 6:
            assert waits_ms == 4000
            harness.quotas.charge_mutation(context, 2)
            assert harness.quotas.charge(context, created, 0.0) == 5000
        else:
            assert waits_ms == 0
            with pytest.raises(ThrottledError):
                harness.quotas.charge_mutation(context, 1)
            refused = CreateTopicsResponse(topics=[CreatedTopic("orders", error_code=89)])
            assert harness.quotas.charge(context, refused, 0.0) == 4000
            await asyncio.sleep(4)
            harness.quotas.charge_mutation(context, 1)

    run_with_quotas(body)


def test_mutations_are_unlimited_without_a_quota():
    async def body(harness):
        context = harness.context(CREATE_TOPICS)
        harness.quotas.charge_mutation(context, 10**6)
        await harness.limit(producer_byte_rate=1.0)
        harness.quotas.charge_mutation(context, 10**6)
        assert harness.quotas.charge(context, CreateTopicsResponse(), 0.0) == 0

    run_with_quotas(body)


def test_connection_rate_of_an_address_is_limited():
    async def body(harness):
        quotas = harness.quotas
        assert quotas.connection_delay_ms("10.0.0.1") == 0
        await harness.limit(QuotaEntity(ip=""), connection_creation_rate=2.0)
        waits = [quotas.connection_delay_ms("10.0.0.1") for _ in range(4)]
        assert waits == [0, 0, 500, 500], "refused connections are not charged"
        assert quotas.connection_delay_ms("::ffff:10.0.0.1") == 500
        assert quotas.connection_delay_ms("10.0.0.2") == 0
        assert quotas.connection_delay_ms("") == 0
        await asyncio.sleep(0.5)
        assert quotas.connection_delay_ms("10.0.0.1") == 0
        assert harness.counters.throttled == {"connection_creation_rate": 3}

    run_with_quotas(body)


def test_connection_rate_of_a_user_is_limited():
    async def body(harness):
        assert harness.quotas.login_delay_ms(ALICE) == 0
        await harness.limit(connection_creation_rate=1.0)
        assert [harness.quotas.login_delay_ms(ALICE) for _ in range(3)] == [0, 1000, 2000]
        assert harness.quotas.login_delay_ms(Principal("User:bob")) == 0
        assert harness.heartbeat() == 0

    run_with_quotas(body)
