"""A cluster in the pages: drain, kill, and etcd snapshots."""

import re

import pytest
from playwright.sync_api import expect

from services import s3_server, shop
from services.cluster import Cluster
from services.console import ConsoleProcess
from services.s3_server import broker_settings

# Component tests, and tests of the API, cover the same pages in every run.
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    directory = tmp_path_factory.mktemp("cluster") / "parts"
    settings = {"broker_lease_ttl_ms": "6000"}
    with Cluster(directory, brokers=3, etcd_members=1, seed=0, **settings) as running:
        running.wait_until_serving()
        shop.stock(running.bootstrap)
        yield running


@pytest.fixture(scope="module")
def console(cluster, tmp_path_factory):
    settings = broker_settings(cluster.s3.bucket) | cluster.console_settings()
    with ConsoleProcess(tmp_path_factory.mktemp("console"), **settings) as running:
        yield running


def state_colour(window, table, broker):
    """The colour of a broker's state; its row is the one with the link to it."""
    link = window.page.get_by_role("link", name=str(broker), exact=True)
    return window.row(table, "").filter(has=link).locator("[data-tone]").first


def test_broker_is_flushed(window):
    page = window.open("/brokers", "Brokers")
    expect(page.get_by_role("table", name="Brokers").get_by_role("link")).to_have_text(
        ["1", "2", "3"]
    )
    page.get_by_role("link", name="2", exact=True).click()
    window.heading("Broker 2").wait_for()
    window.button("Flush").click()
    dialog = window.dialog("Flush broker 2")
    dialog.get_by_role("button", name="Flush").click()
    expect(dialog.get_by_role("status")).to_contain_text(re.compile("segments"))
    dialog.get_by_role("button", name="Close").last.click()
    expect(dialog).to_have_count(0)


def test_etcd_snapshot_is_taken(window):
    page = window.open("/etcd", "Metadata")
    members = page.get_by_role("table", name="etcd members")
    expect(members).to_contain_text("leader")
    expect(members.locator('[data-tone="good"]')).to_have_count(1)
    window.button("Take a snapshot").click()
    dialog = window.dialog("Take a snapshot of etcd")
    dialog.get_by_role("button", name="Take snapshot").click()
    expect(page.get_by_text(re.compile("Snapshot taken: "))).to_be_visible()
    expect(page.get_by_role("table", name="Snapshots").get_by_role("row")).to_have_count(1 + 1)


def test_drained_broker_serves_nothing_and_rebalance_is_offered(cluster, window):
    page = window.open("/brokers/3", "Broker 3")
    window.button("Drain").click()
    dialog = window.dialog("Drain broker 3")
    dialog.get_by_label("Reason").fill("upgrade")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog.get_by_role("status")).to_contain_text("can be stopped", timeout=60_000)
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_text("This broker leads no partitions.")).to_be_visible()
    window.open("/brokers", "Brokers")
    expect(state_colour(window, "Brokers", 3)).to_have_attribute("data-tone", "warning")

    cluster.nodes[3].terminate()
    cluster.nodes[3].start()
    expect(state_colour(window, "Brokers", 3)).to_have_attribute(
        "data-tone", "good", timeout=60_000
    )
    window.button("Rebalance").click()
    dialog = window.dialog("Rebalance the brokers")
    dialog.get_by_role("button", name="Rebalance").click()
    expect(dialog.get_by_role("status")).to_be_visible(timeout=60_000)


def test_killed_broker_is_marked_and_the_banner_shows_why(cluster, window):
    page = window.open("/", "Overview")
    health = page.get_by_role("status", name="Health")
    expect(health).to_contain_text("Cluster is healthy", timeout=60_000)
    cluster.nodes[2].kill()
    try:
        expect(state_colour(window, "Brokers", 2)).to_have_attribute(
            "data-tone", "bad", timeout=40_000
        )
        expect(health).to_contain_text("Cluster is degraded")
        expect(health).to_contain_text(re.compile("broker 2", re.IGNORECASE))
        window.open("/brokers/2", "Broker 2")
        expect(window.button("Drain")).to_have_count(0)
    finally:
        cluster.nodes[2].start()
    window.open("/", "Overview")
    expect(health).to_contain_text("Cluster is healthy", timeout=60_000)
    expect(state_colour(window, "Brokers", 2)).to_have_attribute("data-tone", "good")
