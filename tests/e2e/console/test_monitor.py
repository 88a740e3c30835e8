"""The cluster monitor, and the load that it causes."""

import asyncio
from contextlib import suppress

import pytest

from kafscale.admin.cluster.snapshot import take_snapshot
from kafscale.admin.connection import ClusterConnections
from kafscale.config import load
from kafscale.console.monitor.poller import ATTENTION_SECONDS, POLLS_PER_LISTING, ClusterMonitor
from services.certificates import make_certificates
from services.exposition import sample
from services.process import free_port
from services.shell import Shell

pytestmark = pytest.mark.timeout(120)

POLL_SECONDS = 0.05
LISTING_SECONDS = POLLS_PER_LISTING * POLL_SECONDS
WAIT_SECONDS_MAX = 40.0


@pytest.fixture
def broker(start_broker):
    return start_broker(broker_id="1")


def connections(broker, **settings):
    named = {
        "bootstrap_servers": broker.address,
        "control_servers": broker.control_address,
    } | settings
    return ClusterConnections(
        load({f"KAFSCALE_{name.upper()}": text for name, text in named.items()})
    )


def listings(broker):
    """The number of ListGroups requests; each listing sends one."""
    return sample(broker.http("/metrics")[1], 'requests_total{api="ListGroups"')


class Timer:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def wait_until(condition):
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - there is no event for it.
            await asyncio.sleep(0.02)


async def wait_for_polls(monitor, count):
    """Wait for `count` polls without counting as a reader."""
    times = set()
    while len(times) <= count:
        times.add(monitor.as_of_ms)
        await asyncio.sleep(0.01)


class RunningMonitor:
    """Runs a monitor inside the block."""

    def __init__(self, monitor):
        self._monitor = monitor

    async def __aenter__(self):
        self._task = asyncio.create_task(self._monitor.run())
        return self._monitor

    async def __aexit__(self, *_):
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def test_monitor_without_readers_lists_nothing(broker):
    timer = Timer()

    async def run():
        async with RunningMonitor(
            ClusterMonitor(connections(broker), poll_seconds=POLL_SECONDS, timer=timer)
        ) as monitor:
            await wait_for_polls(monitor, 2)
            first = await asyncio.to_thread(listings, broker)
            timer.now += ATTENTION_SECONDS + LISTING_SECONDS
            await wait_for_polls(monitor, 5)
            assert await asyncio.to_thread(listings, broker) == first, "no listing without readers"

            assert monitor.overview is not None  # A reader.
            await wait_for_polls(monitor, 3)
            second = await asyncio.to_thread(listings, broker)
            assert second == first + 1, "once, and not with every poll"
            timer.now += LISTING_SECONDS
            await wait_for_polls(monitor, 3)
            assert await asyncio.to_thread(listings, broker) == second + 1

    asyncio.run(run())


def test_new_topic_is_listed_without_readers(broker):
    kafscale = Shell(broker.address)

    async def run():
        async with RunningMonitor(
            ClusterMonitor(connections(broker), poll_seconds=POLL_SECONDS)
        ) as monitor:
            await wait_for_polls(monitor, 2)
            await asyncio.to_thread(kafscale, "topic", "create", "orders", "-p", "2")
            await wait_until(lambda: "orders" in monitor.topics)
            await wait_until(lambda: monitor.topics["orders"].leaderless_count == 0)
            await asyncio.to_thread(kafscale, "topic", "delete", "orders", "--yes")
            await wait_until(lambda: "orders" not in monitor.topics)

    asyncio.run(run())


def test_concurrent_refreshes_share_one_poll(broker):
    async def run():
        monitor = ClusterMonitor(connections(broker))
        await asyncio.gather(*(monitor.refresh() for _ in range(20)))
        assert monitor.overview is not None

    asyncio.run(run())
    assert listings(broker) <= 2


def test_take_snapshot_of_a_running_cluster(broker):
    snapshot = asyncio.run(take_snapshot(connections(broker)))
    assert [each.state for each in snapshot.brokers] == ["ready"]
    assert snapshot.brokers[0].metrics is not None
    assert (snapshot.problem, snapshot.listing_problem) == (None, None)


def test_take_snapshot_of_a_missing_cluster(broker):
    nowhere = f"127.0.0.1:{free_port()}"
    snapshot = asyncio.run(
        take_snapshot(connections(broker, bootstrap_servers=nowhere, control_servers=nowhere))
    )
    assert snapshot.brokers == ()
    assert nowhere in (snapshot.problem or "")
    assert nowhere in (snapshot.listing_problem or "")


def test_take_snapshot_with_control_plane_tls(start_broker, tmp_path):
    created = make_certificates(tmp_path, "operator")
    broker = start_broker(
        control_tls_enabled="true",
        control_tls_cert_file=str(created.server_certificate),
        control_tls_key_file=str(created.server_key),
        control_tls_ca_file=str(created.authority),
    )
    settings = {
        "control_servers": broker.control_address,
        "client_control_tls_enabled": "true",
        "client_tls_ca_file": str(created.authority),
        "client_tls_cert_file": str(created.users["operator"].certificate),
        "client_tls_key_file": str(created.users["operator"].key),
    }
    snapshot = asyncio.run(take_snapshot(connections(broker, **settings)))
    (one,) = snapshot.brokers
    assert one.state == "ready"
    assert one.metrics is not None
    assert one.metrics_problem is None
