"""Consumer groups in the pages: list, reset and delete."""

import re

import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import expect

from services import shop
from services.waiting import wait_until

# Component tests, and tests of the API, cover the same pages in every run.
pytestmark = [pytest.mark.long, pytest.mark.timeout(60)]


def committed(broker, group, topic):
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    partitions = [TopicPartition(topic, each) for each in range(shop.PARTITION_COUNTS[topic])]
    offsets = [each.offset for each in consumer.committed(partitions, timeout=20)]
    consumer.close()
    return offsets


def test_groups_are_listed_with_their_lag(window):
    page = window.open("/groups", "Consumer groups")
    row = page.get_by_role("row").filter(has_text=shop.ANALYTICS)
    expect(row).to_contain_text("Empty")
    page.get_by_role("searchbox").fill("fraud")
    expect(row).to_have_count(0)
    page.get_by_role("link", name=shop.FRAUD).click()
    expect(window.heading(shop.FRAUD)).to_be_visible()
    expect(page.get_by_role("table", name="Offsets").get_by_role("row")).to_have_count(1 + 3)


def test_offsets_are_reset_after_the_plan_was_shown(window, shop_broker):
    before = committed(shop_broker, shop.FRAUD, shop.PAYMENTS)
    assert any(before)
    page = window.open(f"/groups/{shop.FRAUD}", shop.FRAUD)
    window.button("Reset offsets").click()
    dialog = window.dialog(f"Reset offsets of {shop.FRAUD}")
    dialog.get_by_label("Reset to").select_option("earliest")
    execute = dialog.get_by_role("button", name="Reset 3 partitions")
    expect(execute).to_have_count(0)
    dialog.get_by_role("button", name="Preview").click()
    plan = dialog.get_by_role("table", name="Plan").get_by_role("row")
    expect(plan).to_have_count(1 + 3)
    expect(dialog.get_by_text("Nothing has been changed yet.")).to_be_visible()
    assert committed(shop_broker, shop.FRAUD, shop.PAYMENTS) == before

    dialog.get_by_label("Reset to").select_option("latest")
    expect(execute).to_have_count(0)
    dialog.get_by_label("Reset to").select_option("earliest")
    dialog.get_by_role("button", name="Preview").click()
    execute.click()
    expect(page.get_by_text(f"Offsets of {shop.FRAUD} reset in 3 partitions.")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert committed(shop_broker, shop.FRAUD, shop.PAYMENTS) == [0, 0, 0]


def test_group_with_members_cannot_be_reset(window, shop_broker):
    window.expect_status(409)
    settings = {"group.id": "readers", "client.id": "reader-1", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": shop_broker.address, **settings})
    consumer.subscribe([shop.ORDERS])
    try:
        wait_until(lambda: consumer.poll(0.1), "a record")
        consumer.commit(asynchronous=False)
        page = window.open("/groups/readers", "readers")
        expect(window.row("Members", "reader-1")).to_contain_text(re.compile("orders: 0.5"))
        window.button("Reset offsets").click()
        dialog = window.dialog("Reset offsets of readers")
        expect(dialog.get_by_role("note")).to_contain_text("Stop its consumers first")
        page.keyboard.press("Escape")
        window.button("Delete").click()
        dialog = window.dialog("Delete readers")
        dialog.get_by_role("textbox").fill("readers")
        dialog.get_by_role("button", name="Delete group").click()
        expect(dialog.get_by_role("alert")).to_contain_text("member")
    finally:
        consumer.close()


def test_group_is_deleted_after_confirmation(window, shop_broker):
    name = "a group/with & strange? söhne"
    consumer = Consumer({"bootstrap.servers": shop_broker.address, "group.id": name})
    consumer.commit(offsets=[TopicPartition(shop.ORDERS, 0, 1)], asynchronous=False)
    consumer.close()
    page = window.open("/groups", "Consumer groups")
    page.get_by_role("link", name=name).click()
    expect(window.heading(name)).to_be_visible()
    window.expect_status(404)  # The page may request the group meanwhile.
    window.button("Delete").click()
    dialog = window.dialog(f"Delete {name}")
    expect(dialog.get_by_role("button", name="Delete group")).to_be_disabled()
    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Delete group").click()
    expect(window.heading("Consumer groups")).to_be_visible()
    expect(page.get_by_role("link", name=name)).to_have_count(0)
    assert committed(shop_broker, name, shop.ORDERS)[0] < 0


def test_committed_offset_links_to_the_next_record(window):
    page = window.open(f"/groups/{shop.ANALYTICS}", shop.ANALYTICS)
    page.get_by_role("searchbox", name="Search offsets").fill(shop.CLICKS)
    rows = page.get_by_role("table", name="Offsets").get_by_role("row")
    expect(rows).to_have_count(1 + 12)
    cells = rows.nth(1).get_by_role("cell")
    partition, offset = cells.nth(2).inner_text(), cells.nth(3).inner_text()
    cells.nth(3).get_by_role("link").click()
    first = page.get_by_role("table", name="Records").get_by_role("button").first
    expect(first).to_have_accessible_name(f"Record {offset} of partition {partition}")
