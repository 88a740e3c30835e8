"""Topics in the pages: create, alter, add partitions, flush and delete."""

import re

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def created_topic(console, topic) -> str:
    """An empty topic with two partitions."""
    console.client().post("/topics", {"name": topic, "partitionCount": 2})
    return topic


def described(broker, topic):
    return AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, 10).topics[topic]


def test_topic_is_created(window, shop_broker, topic):
    window.open("/topics", "Topics")
    window.button("Create a topic").click()
    dialog = window.dialog("Create a topic")
    dialog.get_by_label("Name", exact=False).first.fill("a b")
    expect(dialog.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    dialog.get_by_label("Name", exact=False).first.fill(topic)
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_role("button", name="Add config").click()
    dialog.get_by_label("Name of config 1").fill("max.message.bytes")
    dialog.get_by_label("Value of config 1").fill("2000000")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(window.heading(topic)).to_be_visible()
    expect(window.page.get_by_text(f"Topic {topic} created.")).to_be_visible()
    rows = window.page.get_by_role("table", name="Partitions").get_by_role("row")
    expect(rows).to_have_count(1 + 3)
    assert len(described(shop_broker, topic).partitions) == 3
    window.page.get_by_role("link", name="Configuration").click()
    expect(window.page.get_by_label("max.message.bytes", exact=True)).to_have_value("2000000")


@pytest.mark.long
def test_rejected_form_shows_the_error_and_keeps_its_input(window):
    window.expect_status(409)
    window.open("/topics", "Topics")
    window.button("Create a topic").click()
    dialog = window.dialog("Create a topic")
    dialog.get_by_label("Name", exact=False).first.fill("orders")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("exists")
    expect(dialog.get_by_label("Name", exact=False).first).to_have_value("orders")


@pytest.mark.long
def test_search_and_sort_are_in_the_url(window):
    page = window.open("/topics", "Topics")
    page.get_by_role("searchbox", name="Search topics").fill("or")
    names = page.get_by_role("table", name="Topics").get_by_role("link")
    expect(names).to_have_text(["inventory", "orders"])
    page.get_by_role("table", name="Topics").get_by_role("button", name="Partitions").click()
    expect(page).to_have_url(re.compile("sort=partitions"))
    expect(names).to_have_text(["orders", "inventory"])
    page.reload()
    expect(names).to_have_text(["orders", "inventory"])
    page.get_by_role("searchbox", name="Search topics").fill("nothing like it")
    expect(page.get_by_text("Nothing matches “nothing like it”.")).to_be_visible()


def test_config_is_changed_and_reset(window, created_topic):
    page = window.open(f"/topics/{created_topic}?part=configs", created_topic)
    page.get_by_role("searchbox", name="Search configs").fill("retention.ms")
    field = page.get_by_label("retention.ms", exact=True)
    field.fill("3600000")
    expect(page.get_by_text("1 unsaved change")).to_be_visible()
    window.button("Save").click()
    expect(page.get_by_text(f"1 config of {created_topic} changed.")).to_be_visible()
    page.reload()
    expect(field).to_have_value("3600000")
    window.button("Reset to default: retention.ms").click()
    window.button("Save").click()
    expect(window.button("Reset to default: retention.ms")).to_have_count(0)
    expect(field).to_have_value("604800000")


@pytest.mark.long
def test_invalid_config_is_rejected(window, created_topic):
    window.expect_status(400)
    page = window.open(f"/topics/{created_topic}?part=configs", created_topic)
    page.get_by_label("retention.ms", exact=True).fill("long")
    window.button("Save").click()
    expect(page.get_by_role("alert")).to_contain_text("retention.ms")
    window.button("Discard").click()
    expect(page.get_by_text("unsaved change")).to_have_count(0)


def test_partitions_are_added(window, shop_broker, created_topic):
    window.open(f"/topics/{created_topic}", created_topic)
    window.button("Add partitions").click()
    dialog = window.dialog(f"Add partitions to {created_topic}")
    dialog.get_by_label("Total partitions").fill("2")
    expect(dialog.get_by_role("button", name="Add partitions")).to_be_disabled()
    dialog.get_by_label("Total partitions").fill("5")
    dialog.get_by_role("button", name="Add partitions").click()
    expect(window.page.get_by_text(f"Topic {created_topic} now has 5 partitions.")).to_be_visible()
    rows = window.page.get_by_role("table", name="Partitions").get_by_role("row")
    expect(rows).to_have_count(1 + 5)
    assert len(described(shop_broker, created_topic).partitions) == 5


def test_flush_writes_segments(window):
    page = window.open("/topics/payments?part=segments", "payments")
    window.button("Flush").click()
    window.dialog("Flush payments").get_by_role("button", name="Flush").click()
    expect(page.get_by_text(re.compile("partitions? of payments flushed"))).to_be_visible()
    table = page.get_by_role("table", name="Segments")
    expect(table.get_by_role("row").nth(1)).to_be_visible()


@pytest.mark.long
def test_consumers_link_to_their_group(window):
    page = window.open("/topics/clicks?part=consumers", "clicks")
    row = window.row("Consumers", "analytics")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Show more").click()
    lags = page.get_by_role("table", name="Lag of analytics by partition")
    expect(lags.get_by_role("row")).to_have_count(1 + 12)
    row.get_by_role("link", name="analytics").click()
    expect(window.heading("analytics")).to_be_visible()


def test_topic_is_deleted_after_confirmation(window, shop_broker, created_topic):
    window.expect_status(404)  # The page may request the topic meanwhile.
    page = window.open(f"/topics/{created_topic}", created_topic)
    window.button("Delete").click()
    dialog = window.dialog(f"Delete {created_topic}")
    confirm = dialog.get_by_role("button", name="Delete topic")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(created_topic[:-1])
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(created_topic)
    confirm.click()
    expect(window.heading("Topics")).to_be_visible()
    expect(page.get_by_text(f"Topic {created_topic} deleted.")).to_be_visible()
    expect(page.get_by_role("link", name=created_topic)).to_have_count(0)
    topics = AdminClient({"bootstrap.servers": shop_broker.address}).list_topics(timeout=10).topics
    assert created_topic not in topics


@pytest.mark.long
def test_topic_is_deleted_from_the_list(window, created_topic):
    page = window.open(f"/topics?search={created_topic}", "Topics")
    window.button(f"Delete {created_topic}").click()
    dialog = window.dialog("Delete a topic")
    dialog.get_by_role("textbox").fill(created_topic)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("link", name=created_topic)).to_have_count(0)


@pytest.mark.long
def test_missing_topic_is_reported(window):
    window.expect_status(404)
    page = window.open("/topics/absent", "absent")
    expect(page.get_by_role("alert")).to_contain_text("absent")
    expect(window.button("Try again")).to_be_visible()
