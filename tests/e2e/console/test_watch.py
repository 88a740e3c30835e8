"""Looking at a cluster again and again, and what that does to it: as little as can be."""

import asyncio
from contextlib import suppress

import pytest

from kafscale.admin.cluster.snapshot import cluster_look
from kafscale.admin.connection import Reach
from kafscale.config import load
from kafscale.console.monitor.poller import ATTENTION_SECONDS, LIST_SECONDS, Watch
from services.certificates import make_certificates
from services.exposition import sample
from services.process import free_port
from services.shell import Shell

pytestmark = pytest.mark.timeout(120)

LOOK_SECONDS = 0.05
WAIT_SECONDS_MAX = 40.0


@pytest.fixture
def broker(start_broker):
    return start_broker(broker_id="1")


def reach(broker, **settings):
    named = {
        "bootstrap_servers": broker.address,
        "control_servers": f"127.0.0.1:{broker.metrics_port}",
    } | settings
    return Reach(load({f"KAFSCALE_{name.upper()}": text for name, text in named.items()}))


def listings(broker):
    """How often somebody has asked for the groups: once a listing, and nobody else does."""
    return sample(broker.http("/metrics")[1], 'requests_total{api="ListGroups"')


class Timer:
    """The time as the watch is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def wait_until(condition):
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - nobody tells when it holds.
            await asyncio.sleep(0.02)


async def looks(watch, count):
    """Wait for so many looks, as nobody who would be there to see them."""
    seen = set()
    while len(seen) <= count:
        seen.add(watch.as_of_ms)
        await asyncio.sleep(0.01)


class Running:
    """A watch that looks inside the block."""

    def __init__(self, watch):
        self._watch = watch

    async def __aenter__(self):
        self._task = asyncio.create_task(self._watch.run())
        return self._watch

    async def __aexit__(self, *_):
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def test_a_console_that_nobody_looks_at_is_no_client(broker):
    timer = Timer()

    async def run():
        async with Running(Watch(reach(broker), look_seconds=LOOK_SECONDS, timer=timer)) as watch:
            await looks(watch, 2)
            first = await asyncio.to_thread(listings, broker)
            timer.now += ATTENTION_SECONDS + LIST_SECONDS
            await looks(watch, 5)
            assert await asyncio.to_thread(listings, broker) == first, "it was left alone"

            assert watch.overview is not None  # Somebody looks.
            await looks(watch, 3)
            second = await asyncio.to_thread(listings, broker)
            assert second == first + 1, "once, and not with every look"
            timer.now += LIST_SECONDS
            await looks(watch, 3)
            assert await asyncio.to_thread(listings, broker) == second + 1

    asyncio.run(run())


def test_a_topic_that_is_created_is_seen_though_nobody_asked(broker):
    kafscale = Shell(broker.address)

    async def run():
        async with Running(Watch(reach(broker), look_seconds=LOOK_SECONDS)) as watch:
            await looks(watch, 2)
            await asyncio.to_thread(kafscale, "topic", "create", "orders", "-p", "2")
            await wait_until(lambda: "orders" in watch.topics)
            await wait_until(lambda: watch.topics["orders"].leaderless_count == 0)
            await asyncio.to_thread(kafscale, "topic", "delete", "orders", "--yes")
            await wait_until(lambda: "orders" not in watch.topics)

    asyncio.run(run())


def test_many_who_want_a_look_at_once_share_it(broker):
    async def run():
        watch = Watch(reach(broker))
        await asyncio.gather(*(watch.look() for _ in range(20)))
        assert watch.overview is not None

    asyncio.run(run())
    assert listings(broker) <= 2


def test_a_cluster_is_looked_at_once_by_whoever_wants_no_history(broker):
    seen = asyncio.run(cluster_look(reach(broker)))
    assert [each.state for each in seen.brokers] == ["ready"]
    assert seen.brokers[0].figures is not None
    assert (seen.problem, seen.listing_problem) == (None, None)


def test_a_cluster_that_is_not_there_is_a_look_as_well(broker):
    nowhere = f"127.0.0.1:{free_port()}"
    seen = asyncio.run(
        cluster_look(reach(broker, bootstrap_servers=nowhere, control_servers=nowhere))
    )
    assert seen.brokers == ()
    assert nowhere in (seen.problem or "")
    assert nowhere in (seen.listing_problem or "")


def test_an_encrypted_control_plane_is_looked_at_and_metrics_are_found(start_broker, tmp_path):
    made = make_certificates(tmp_path, "operator")
    port = free_port()
    broker = start_broker(
        control_addr=f"127.0.0.1:{port}",
        control_tls_enabled="true",
        control_tls_cert_file=str(made.server_certificate),
        control_tls_key_file=str(made.server_key),
        control_tls_ca_file=str(made.authority),
    )
    settings = {
        "control_servers": f"localhost:{port}",
        "client_control_tls": "true",
        "client_tls_ca_file": str(made.authority),
        "client_tls_cert_file": str(made.users["operator"].certificate),
        "client_tls_key_file": str(made.users["operator"].key),
    }
    for metrics_port, is_measured in ((broker.metrics_port, True), (free_port(), False)):
        named = settings | {"broker_metrics_port": str(metrics_port)}
        seen = asyncio.run(cluster_look(reach(broker, **named)))
        (one,) = seen.brokers
        assert one.state == "ready"
        assert (one.figures is not None) == is_measured
        assert one.figures_problem is None
