"""A topic's life in the pages: made, changed, grown, flushed, deleted."""

import re

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def made(console, topic) -> str:
    """A topic with two partitions and nothing in it."""
    console.visitor().post("/topics", {"name": topic, "partitionCount": 2})
    return topic


def described(broker, topic):
    return AdminClient({"bootstrap.servers": broker.address}).list_topics(topic, 10).topics[topic]


def test_a_topic_is_created(window, shop_broker, topic):
    window.open("/topics", "Topics")
    window.button("Create a topic").click()
    dialog = window.dialog("Create a topic")
    dialog.get_by_label("Name", exact=False).first.fill("a b")
    expect(dialog.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    dialog.get_by_label("Name", exact=False).first.fill(topic)
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_role("button", name="Add a configuration").click()
    dialog.get_by_label("Name of configuration 1").fill("max.message.bytes")
    dialog.get_by_label("Value of configuration 1").fill("2000000")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(window.heading(topic)).to_be_visible()
    expect(window.page.get_by_text(f"The topic {topic} was created.")).to_be_visible()
    rows = window.page.get_by_role("table", name="Partitions").get_by_role("row")
    expect(rows).to_have_count(1 + 3)
    assert len(described(shop_broker, topic).partitions) == 3
    window.page.get_by_role("link", name="Settings").click()
    expect(window.page.get_by_label("max.message.bytes", exact=True)).to_have_value("2000000")


def test_what_the_cluster_refuses_is_said_and_what_was_typed_stays(window):
    window.expect_status(409)
    window.open("/topics", "Topics")
    window.button("Create a topic").click()
    dialog = window.dialog("Create a topic")
    dialog.get_by_label("Name", exact=False).first.fill("orders")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("exists")
    expect(dialog.get_by_label("Name", exact=False).first).to_have_value("orders")


def test_topics_are_searched_and_sorted_and_the_address_says_so(window):
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


def test_a_setting_is_changed_and_set_back(window, made):
    page = window.open(f"/topics/{made}?part=settings", made)
    page.get_by_role("searchbox", name="Search settings").fill("retention.ms")
    field = page.get_by_label("retention.ms", exact=True)
    field.fill("3600000")
    expect(page.get_by_text("1 unsaved change")).to_be_visible()
    window.button("Save").click()
    expect(page.get_by_text(f"1 setting of {made} changed.")).to_be_visible()
    page.reload()
    expect(field).to_have_value("3600000")
    window.button("Reset to default: retention.ms").click()
    window.button("Save").click()
    expect(window.button("Reset to default: retention.ms")).to_have_count(0)
    expect(field).to_have_value("604800000")


def test_a_setting_that_cannot_be_is_refused(window, made):
    window.expect_status(400)
    page = window.open(f"/topics/{made}?part=settings", made)
    page.get_by_label("retention.ms", exact=True).fill("long")
    window.button("Save").click()
    expect(page.get_by_role("alert")).to_contain_text("retention.ms")
    window.button("Discard").click()
    expect(page.get_by_text("unsaved change")).to_have_count(0)


def test_a_topic_grows(window, shop_broker, made):
    window.open(f"/topics/{made}", made)
    window.button("Add partitions").click()
    dialog = window.dialog(f"Add partitions to {made}")
    dialog.get_by_label("Partitions in all").fill("2")
    expect(dialog.get_by_role("button", name="Add partitions")).to_be_disabled()
    dialog.get_by_label("Partitions in all").fill("5")
    dialog.get_by_role("button", name="Add partitions").click()
    expect(window.page.get_by_text(f"{made} has 5 partitions now.")).to_be_visible()
    rows = window.page.get_by_role("table", name="Partitions").get_by_role("row")
    expect(rows).to_have_count(1 + 5)
    assert len(described(shop_broker, made).partitions) == 5


def test_what_is_in_the_log_becomes_segments(window):
    page = window.open("/topics/payments?part=segments", "payments")
    window.button("Flush").click()
    window.dialog("Flush payments").get_by_role("button", name="Flush").click()
    expect(page.get_by_text(re.compile("partitions? of payments flushed"))).to_be_visible()
    table = page.get_by_role("table", name="Segments")
    expect(table.get_by_role("row").nth(1)).to_be_visible()


def test_consumers_of_a_topic_lead_to_their_group(window):
    page = window.open("/topics/clicks?part=consumers", "clicks")
    row = window.row("Consumers", "analytics")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Show more").click()
    lags = page.get_by_role("table", name="Lag of analytics by partition")
    expect(lags.get_by_role("row")).to_have_count(1 + 12)
    row.get_by_role("link", name="analytics").click()
    expect(window.heading("analytics")).to_be_visible()


def test_a_topic_is_deleted_once_its_name_was_typed(window, shop_broker, made):
    window.expect_status(404)  # The page may look at the topic at that very moment.
    page = window.open(f"/topics/{made}", made)
    window.button("Delete").click()
    dialog = window.dialog(f"Delete {made}")
    confirm = dialog.get_by_role("button", name="Delete topic")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(made[:-1])
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(made)
    confirm.click()
    expect(window.heading("Topics")).to_be_visible()
    expect(page.get_by_text(f"Topic {made} is deleted.")).to_be_visible()
    expect(page.get_by_role("link", name=made)).to_have_count(0)
    topics = AdminClient({"bootstrap.servers": shop_broker.address}).list_topics(timeout=10).topics
    assert made not in topics


def test_a_topic_is_deleted_from_the_list_as_well(window, made):
    page = window.open(f"/topics?search={made}", "Topics")
    window.button(f"Delete {made}").click()
    dialog = window.dialog("Delete a topic")
    dialog.get_by_role("textbox").fill(made)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("link", name=made)).to_have_count(0)


def test_a_topic_that_is_not_there_is_said_to_be_so(window):
    window.expect_status(404)
    page = window.open("/topics/absent", "absent")
    expect(page.get_by_role("alert")).to_contain_text("absent")
    expect(window.button("Try again")).to_be_visible()
