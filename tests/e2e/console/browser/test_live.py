"""Pages update without being reloaded, and say when they cannot."""

import re

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import expect

from services import shop
from services.broker import BrokerProcess

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def broker(tmp_path):
    """A broker for one test, to be stopped and started."""
    with BrokerProcess(tmp_path / "broker", broker_id="1") as running:
        yield running


@pytest.fixture
def own_console(start_console, broker):
    return start_console(broker)


@pytest.mark.long
def test_overview_shows_a_topic_created_elsewhere(window, shop_broker, topic):
    page = window.open("/", "Overview")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    tile = page.locator("#content").get_by_text(re.compile(r"^\d+ partitions$"))
    expect(tile).to_be_visible()
    before = int(tile.inner_text().split()[0])
    admin = AdminClient({"bootstrap.servers": shop_broker.address})
    admin.create_topics([NewTopic(topic, 5)])[topic].result(timeout=20)
    expect(tile).to_have_text(f"{before + 5} partitions")


def test_charts_update_with_traffic(open_window, own_console, broker):
    shop.stock(broker.address)
    window = open_window(own_console).sign_in()
    page = window.open("/", "Overview")
    with shop.trade(broker.address):
        drawn = page.get_by_role("img", name=re.compile(r"Throughput: Produced [1-9][\d.]* "))
        expect(drawn).to_be_visible()
        expect(drawn.locator("canvas")).to_be_visible()
        window.button("Show as a table").first.click()
        expect(
            page.get_by_role("table", name="Throughput").get_by_role("row").nth(1)
        ).to_be_visible()


@pytest.mark.long
def test_empty_cluster_says_what_to_do(open_window, own_console):
    window = open_window(own_console).sign_in()
    page = window.open("/topics", "Topics")
    expect(page.get_by_text("There are no topics yet.")).to_be_visible()
    window.open("/groups", "Consumer groups")
    expect(page.get_by_text(re.compile("no consumer groups", re.IGNORECASE))).to_be_visible()
    window.open("/pipeline", "Data pipeline")
    expect(page.get_by_text("No job has run yet.")).to_be_visible()
    window.open("/etcd", "Metadata")
    expect(page.get_by_text("Metadata is stored in a local file")).to_be_visible()
    window.open("/access", "Access")
    expect(page.get_by_text("Authorization is disabled")).to_be_visible()
    window.open("/", "Overview")
    expect(page.get_by_role("status", name="Health")).to_contain_text("Cluster is healthy")
    expect(page.get_by_text("No consumer group has lag.")).to_be_visible()


def test_stopped_broker_is_reported_and_found_again(open_window, own_console, broker):
    window = open_window(own_console).sign_in()
    window.expect_status(500, 502, 503, 504)
    page = window.open("/", "Overview")
    health = page.get_by_role("status", name="Health")
    expect(health).to_contain_text("Cluster is healthy")
    broker.kill()
    expect(health).not_to_contain_text("Cluster is healthy", timeout=40_000)
    window.open("/topics/absent", "absent")
    expect(page.get_by_role("alert").first).to_be_visible(timeout=40_000)
    retry = window.button("Try again")
    expect(retry).to_be_visible()

    broker.start()
    window.expect_status(404)
    retry.click()
    expect(page.get_by_role("alert")).to_contain_text("absent", timeout=40_000)
    window.open("/", "Overview")
    expect(health).to_contain_text("Cluster is healthy", timeout=40_000)


@pytest.mark.long
def test_stopped_console_is_reported_and_found_again(open_window, own_console):
    window = open_window(own_console).sign_in()
    window.expect_status(401)
    page = window.open("/", "Overview")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    own_console.terminate()
    expect(page.get_by_text(re.compile("Reconnecting|cannot be reached"))).to_be_visible()
    own_console.start()
    # Its sessions ended with it, so a new login is needed.
    expect(window.button("Log in")).to_be_visible(timeout=40_000)
    window.ignore_errors("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET")
