"""Every page, looked at in light and dark, on a desk and on a phone, by everybody."""

import pytest
from playwright.sync_api import expect

from services import axe
from services.window import PHONE

pytestmark = pytest.mark.timeout(120)

PAGES = {
    "/": "Overview",
    "/topics": "Topics",
    "/topics/orders": "orders",
    "/topics/orders/messages": "orders",
    "/topics/orders?part=segments": "orders",
    "/topics/orders?part=consumers": "orders",
    "/topics/orders?part=settings": "orders",
    "/groups": "Consumer groups",
    "/groups/analytics": "analytics",
    "/brokers": "Brokers",
    "/brokers/1": "Broker 1",
    "/pipeline": "Data pipeline",
    "/etcd": "Metadata",
    "/access": "Access",
    "/access?part=users": "Access",
    "/access?part=quotas": "Access",
    "/nowhere": "Not found",
}

OVERFLOWING = """() => [...document.querySelectorAll("body *")]
  .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    && !element.closest("[class*=ScrollContainer], [class*=ScrollArea], [style*=overflow], pre"))
  .map(element => element.outerHTML.slice(0, 200))"""


def settle(page):
    """Wait until nothing on the page is still to come."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    expect(page.get_by_label("Loading the page")).to_have_count(0)
    expect(page.get_by_label("Reading records")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_every_page(open_window, console, scheme):
    assert axe.is_available(), "axe-core is not installed: run make web"
    window = open_window(console, color_scheme=scheme, bypass_csp=True).sign_in()
    found = {}
    for path, heading in PAGES.items():
        page = window.open(path, heading)
        settle(page)
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


def test_no_page_is_wider_than_a_phone(open_window, console):
    window = open_window(console, viewport=PHONE).sign_in()
    found = {}
    for path, heading in PAGES.items():
        page = window.open(path, heading)
        settle(page)
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
