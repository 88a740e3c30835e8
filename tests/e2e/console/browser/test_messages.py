"""Records in the pages: browse and produce."""

import json
import re
import time

import pytest
from playwright.sync_api import expect

from services import shop

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def records(window):
    """The records page of the orders topic, with its filters open."""
    window.open("/topics/orders/messages", "orders")
    window.button("Filters and formats").click()
    return Records(window)


class Records:
    """The records page of a topic."""

    def __init__(self, window):
        self.window = window
        self.page = window.page

    @property
    def rows(self):
        named = re.compile(r"Record \d+ of partition \d+")
        return self.page.get_by_role("table", name="Records").get_by_role("button", name=named)

    def set(self, label, text):
        self.page.get_by_label(label, exact=True).fill(text)

    def choose(self, label, option):
        self.page.get_by_label(label, exact=True).select_option(option)

    def find(self):
        self.window.button("Find").click()
        return self


def test_record_is_found_by_key(records):
    records.set("Key equals", "order-17")
    records.find()
    expect(records.rows).to_have_count(1)
    records.rows.click()
    value = records.page.get_by_label("Full value")
    expect(value).to_contain_text('"order": "order-17"')
    expect(records.page.get_by_role("table", name="Headers")).to_contain_text("source")


@pytest.mark.long
def test_records_are_found_by_text(records):
    records.set("Contains", "customer 7")
    records.find()
    expect(records.rows).to_have_count(shop.ORDER_COUNT // 40)
    expect(records.page).to_have_url(re.compile("text=customer"))


def test_records_are_found_by_json_field(records):
    records.set("JSON field", "customer.city")
    records.set("JSON field equals", "Oslo")
    records.choose("Limit", "500")
    records.find()
    cities = [shop.order(number)["customer"]["city"] for number in range(shop.ORDER_COUNT)]
    expect(records.rows).to_have_count(cities.count("Oslo"))


@pytest.mark.long
def test_records_from_an_offset(records):
    records.choose("Start", "offset")
    records.set("Offset", "3")
    records.page.get_by_role("combobox", name="Partitions").click()
    records.page.get_by_role("option", name="2", exact=True).click()
    records.page.keyboard.press("Escape")
    records.find()
    expect(records.rows.first).to_have_accessible_name("Record 3 of partition 2")
    expect(records.rows.nth(1)).to_have_accessible_name("Record 4 of partition 2")


@pytest.mark.long
def test_records_from_a_time(records):
    then = time.localtime(time.time() - 3600)
    records.choose("Start", "time")
    records.set("Time (local)", time.strftime("%Y-%m-%dT%H:%M:%S", then))
    records.choose("Limit", "500")
    records.find()
    expect(records.page).to_have_url(re.compile("from=time"))
    expect(records.rows.nth(10)).to_be_visible()
    count = records.rows.count()
    assert 10 < count < shop.ORDER_COUNT, "some are older than an hour, and some are not"


@pytest.mark.long
def test_no_match_is_reported(records):
    records.set("Key equals", "no such order")
    records.find()
    expect(records.page.get_by_text("No records match.")).to_be_visible()
    window = records.window
    window.button("Clear all").click()
    expect(records.rows.first).to_be_visible()


@pytest.mark.long
def test_more_records_are_loaded(records):
    records.choose("Limit", "20")
    records.find()
    expect(records.rows).to_have_count(20)
    records.window.button("Load more").click()
    expect(records.rows).to_have_count(40)


@pytest.mark.long
def test_new_records_are_loaded(window, console, topic):
    console_client = console.client()
    console_client.post("/topics", {"name": topic, "partitionCount": 1})
    page = window.open(f"/topics/{topic}/messages", topic)
    expect(page.get_by_text("No records found.")).to_be_visible()
    console_client.post(f"/topics/{topic}/messages", {"value": {"text": "hello", "format": "text"}})
    window.button("Refresh").click()
    expect(page.get_by_role("table", name="Records")).to_contain_text("hello")


def test_avro_is_decoded_with_a_pasted_schema(window):
    page = window.open("/topics/payments/messages", "payments")
    records = Records(window)
    window.button("Filters and formats").click()
    records.choose("Value format", "avro")
    page.get_by_label("Avro schema of the value").fill(json.dumps(shop.PAYMENT_SCHEMA))
    records.set("Key equals", "order-17")
    records.find()
    expect(records.rows).to_have_count(1)
    records.rows.click()
    value = page.get_by_label("Full value")
    expect(value).to_contain_text('"method": "CARD"')
    expect(value).to_contain_text(str(999 + 17))
    records.set("Key equals", "")
    records.set("JSON field", "cents")
    records.set("JSON field equals", str(999 + 42))
    records.find()
    expect(records.rows).to_have_count(1)


def test_record_is_produced_and_found(window, topic):
    console_page = window.open("/topics", "Topics")
    window.button("Create a topic").click()
    console_page.get_by_role("dialog").get_by_label("Name", exact=False).first.fill(topic)
    console_page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()
    window.heading(topic).wait_for()
    page = window.open(f"/topics/{topic}/messages", topic)
    expect(page.get_by_text("No records found.")).to_be_visible()

    window.button("Produce record").click()
    dialog = window.dialog(f"Produce a record to {topic}")
    dialog.get_by_label("Key", exact=True).fill("k-1")
    dialog.get_by_label("Value format").select_option("json")
    dialog.get_by_label("Value", exact=True).fill('{"price": ')
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.get_by_text("Invalid JSON")).to_be_visible()
    dialog.get_by_label("Value", exact=True).fill('{"price": 12}')
    dialog.get_by_role("button", name="Add header").click()
    dialog.get_by_label("Name of header 1").fill("trace-id")
    dialog.get_by_label("Value of header 1").fill("abc")
    dialog.get_by_role("button", name="Produce").click()
    expect(page.get_by_text(re.compile("Record produced at offset 0 of partition"))).to_be_visible()
    records = Records(window)
    expect(records.rows).to_have_count(1)
    records.rows.click()
    expect(page.get_by_label("Full value")).to_contain_text('"price": 12')
    expect(page.get_by_role("table", name="Headers")).to_contain_text("trace-id")

    window.button("Produce record").click()
    dialog.get_by_label("Key", exact=True).fill("k-1")
    dialog.get_by_label("Tombstone", exact=False).check()
    dialog.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("table", name="Records").get_by_text("tombstone")).to_be_visible()


@pytest.mark.long
def test_link_to_a_record_works_in_another_session(records, open_window, console):
    records.set("Key equals", "order-17")
    records.find()
    expect(records.rows).to_have_count(1)
    name = records.rows.get_attribute("aria-label")
    records.rows.click()
    records.window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    records.window.button("Copy link").click()
    expect(records.window.button("Copied")).to_be_visible()
    link = records.page.evaluate("navigator.clipboard.readText()")
    other = open_window(console).sign_in()
    page = other.open(link.removeprefix(console.url), "orders")
    expect(Records(other).rows.first).to_have_accessible_name(name)
    expect(page.get_by_label("Full value")).to_contain_text('"order": "order-17"')
