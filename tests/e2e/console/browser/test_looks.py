"""Every page, looked at in light and dark, on a desk and on a phone, by everybody."""

from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from services import axe
from services.shop import PARTITION_COUNTS
from services.window import PHONE

pytestmark = pytest.mark.timeout(120)

TOPIC = {"Flush", "Add partitions", "Delete"}


class Look(NamedTuple):
    """A page: its heading, something that is seen once all is there, and what can be pressed."""

    heading: str
    seen: str
    buttons: set[str] = set()


PAGES = {
    "/": Look("Overview", "Furthest behind"),
    "/topics": Look(
        "Topics", "payments", {"Create a topic", *(f"Delete {name}" for name in PARTITION_COUNTS)}
    ),
    "/topics/orders": Look("orders", "High watermark", TOPIC),
    "/topics/orders/messages": Look(
        "orders",
        "order-399",
        TOPIC | {"Filters and formats", "Find", "Read again", "Write a record", "Load more"},
    ),
    "/topics/orders?part=segments": Look("orders", "WAL", TOPIC),
    "/topics/orders?part=consumers": Look("orders", "analytics", TOPIC | {"Show more"}),
    "/topics/orders?part=settings": Look("orders", "retention.ms", TOPIC),
    "/groups": Look("Consumer groups", "fraud-detection"),
    "/groups/analytics": Look(
        "analytics", "Nobody reads in this group", {"Move offsets", "Delete"}
    ),
    "/brokers": Look("Brokers", "ready", {"Rebalance"}),
    "/brokers/1": Look("Broker 1", "inventory", {"Flush", "Drain"}),
    "/pipeline": Look("Data pipeline", "Runs of merge", {"Show more"}),
    "/etcd": Look("Metadata", "the embedded default"),
    "/access": Look("Access", "There are no rules", {"Create rule"}),
    "/access?part=users": Look("Access", "There are no users", {"Create user"}),
    "/access?part=quotas": Look("Access", "There are no quotas", {"Set quota"}),
    "/nowhere": Look("Not found", "Go to the overview"),
}

OVERFLOWING = """() => [...document.querySelectorAll("body *")]
  .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 200))"""
BUTTONS = """() => [...document.querySelectorAll("#content button:not(th button, [role=tab])")]
  .filter(each => each.checkVisibility())
  .map(each => each.getAttribute("aria-label") || each.innerText.trim())"""


def show(window, path):
    """Open the page, and wait until nothing on it is still to come."""
    look = PAGES[path]
    page = window.open(path, look.heading)
    expect(page.locator("#content").get_by_text(look.seen).first).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_every_page(open_window, console, scheme):
    assert axe.is_available(), "axe-core is not installed: run make web"
    window = open_window(console, color_scheme=scheme, bypass_csp=True).sign_in()
    found = {}
    for path in PAGES:
        page = show(window, path)
        for violation in axe.violations(page):
            found.setdefault(violation, []).append(path)
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_log_in(open_window, console, scheme):
    window = open_window(console, color_scheme=scheme, bypass_csp=True)
    page = window.open("/login", "Kafscale")
    assert axe.violations(page) == []


DIALOGS = [
    ("/topics", "Topics", "Create a topic"),
    ("/topics/orders", "orders", "Flush"),
    ("/topics/orders", "orders", "Add partitions"),
    ("/topics/orders", "orders", "Delete"),
    ("/topics/orders/messages", "orders", "Write a record"),
    ("/groups/analytics", "analytics", "Move offsets"),
    ("/groups/analytics", "analytics", "Delete"),
    ("/brokers", "Brokers", "Rebalance"),
    ("/brokers/1", "Broker 1", "Flush"),
    ("/brokers/1", "Broker 1", "Drain"),
    ("/access", "Access", "Create rule"),
    ("/access?part=users", "Access", "Create user"),
    ("/access?part=quotas", "Access", "Set quota"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_every_dialog(open_window, console, scheme):
    window = open_window(console, color_scheme=scheme, bypass_csp=True).sign_in()
    found = {}
    for path, heading, button in DIALOGS:
        page = window.open(path, heading)
        window.button(button).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        expect(dialog.locator(":focus")).to_have_count(1)
        for violation in axe.violations(page):
            found.setdefault(violation, []).append((path, button))
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(window.button(button)).to_be_focused()
    assert found == {}


def test_no_page_has_a_button_that_nobody_knows(window):
    """Each of them is pressed by some test here: in the dialogs above, or where it belongs."""
    for path, look in PAGES.items():
        page = show(window, path)
        found = {name for name in page.evaluate(BUTTONS) if not name.startswith("Record ")}
        found.discard("Show as a table")  # Charts have it once there is something to draw.
        assert found == look.buttons, path


def test_no_page_is_wider_than_a_phone(open_window, console):
    window = open_window(console, viewport=PHONE).sign_in()
    found = {}
    for path in PAGES:
        page = show(window, path)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            found[path] = (width, page.evaluate(OVERFLOWING)[:5])
    assert found == {}


def test_the_navigation_of_a_phone_opens_and_closes(open_window, console):
    window = open_window(console, viewport=PHONE).sign_in()
    page = window.open("/", "Overview")
    topics = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Topics")
    expect(topics).not_to_be_in_viewport()
    window.button("Open the navigation").click()
    topics.click()
    expect(window.heading("Topics")).to_be_visible()
    expect(topics).not_to_be_in_viewport()


def test_one_turns_it_dark_and_it_stays_so(window):
    page = window.open("/", "Overview")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    window.button("Turn dark").click()
    expect(window.button("Turn light")).to_be_visible()
    dark = page.evaluate(ground)
    assert light != dark
    page.reload()
    expect(window.button("Turn light")).to_be_visible()
    assert page.evaluate(ground) == dark


def test_it_is_as_dark_as_the_machine_of_who_looks(open_window, console):
    window = open_window(console, color_scheme="dark").sign_in()
    window.open("/", "Overview")
    expect(window.button("Turn light")).to_be_visible()
