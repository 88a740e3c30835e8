"""Accessibility and layout of every page, in light and dark, on desktop and phone."""

from typing import NamedTuple

import pytest
from playwright.sync_api import TimeoutError as PageTimeoutError
from playwright.sync_api import expect

from services import axe
from services.selection import long_except
from services.shop import PARTITION_COUNTS
from services.window import DESKTOP, PHONE

pytestmark = pytest.mark.timeout(120)

SCHEMES = long_except(["light", "dark"], "dark".__eq__)
TOPIC = {"Flush", "Add partitions", "Delete"}


class PageCase(NamedTuple):
    """A page: its heading, a text that appears once it is loaded, and its buttons."""

    heading: str
    seen: str
    buttons: set[str] = set()


PAGES = {
    "/": PageCase("Overview", "Highest consumer lag"),
    "/topics": PageCase(
        "Topics", "payments", {"Create a topic", *(f"Delete {name}" for name in PARTITION_COUNTS)}
    ),
    "/topics/orders": PageCase("orders", "High watermark", TOPIC),
    "/topics/orders/messages": PageCase(
        "orders",
        "order-399",
        TOPIC | {"Filters and formats", "Find", "Refresh", "Produce record", "Load more"},
    ),
    "/topics/orders?part=segments": PageCase("orders", "WAL", TOPIC),
    "/topics/orders?part=consumers": PageCase("orders", "analytics", TOPIC | {"Show more"}),
    "/topics/orders?part=producers": PageCase("orders", "No idempotent or transactional", TOPIC),
    "/topics/orders?part=configs": PageCase("orders", "retention.ms", TOPIC),
    "/groups": PageCase("Consumer groups", "fraud-detection"),
    "/groups/analytics": PageCase("analytics", "No active members", {"Reset offsets", "Delete"}),
    "/transactions": PageCase("Transactions", "There are no transactional ids"),
    "/brokers": PageCase("Brokers", "ready", {"Rebalance"}),
    "/brokers/1": PageCase("Broker 1", "inventory", {"Flush", "Drain"}),
    "/pipeline": PageCase("Data pipeline", "Runs of merge", {"Show more"}),
    "/etcd": PageCase("Metadata", "embedded metadata store"),
    "/access": PageCase("Access", "There are no ACLs", {"Create ACL"}),
    "/access?part=users": PageCase("Access", "There are no users", {"Create user"}),
    "/access?part=quotas": PageCase("Access", "There are no quotas", {"Set quota"}),
    "/nowhere": PageCase("Not found", "Go to Overview"),
}

FITS = "width => document.documentElement.scrollWidth <= width"
LAYOUT_MS_MAX = 5_000
OVERFLOWING = """() => [...document.querySelectorAll("body *")]
  .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 200))"""
BUTTONS = """() => [...document.querySelectorAll("#content button:not(th button, [role=tab])")]
  .filter(each => each.checkVisibility())
  .map(each => each.getAttribute("aria-label") || each.innerText.trim())"""


def show(window, path):
    """Open a page, and wait until it is loaded."""
    case = PAGES[path]
    page = window.follow(path, case.heading)
    expect(page.locator("#content").get_by_text(case.seen).first).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    return page


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_are_accessible_and_fit_a_phone(open_window, console, scheme):
    """Each button, too, is pressed by a test: in the dialogs below, or in its own test."""
    assert axe.is_available(), "axe-core is not installed: run make web"
    window = open_window(console, color_scheme=scheme, bypass_csp=True).sign_in()
    violations, buttons, overflowing = {}, {}, {}
    for path in PAGES:
        page = show(window, path)
        for violation in axe.violations(page):
            violations.setdefault(violation, []).append(path)
        names = {name for name in page.evaluate(BUTTONS) if not name.startswith("Record ")}
        buttons[path] = names - {"Show as a table"}  # Charts have it once there is data.
        page.set_viewport_size(PHONE)
        try:
            page.wait_for_function(FITS, arg=PHONE["width"], timeout=LAYOUT_MS_MAX)
        except PageTimeoutError:
            overflowing[path] = page.evaluate(OVERFLOWING)[:5]
        page.set_viewport_size(DESKTOP)
    assert violations == {}
    assert buttons == {path: case.buttons for path, case in PAGES.items()}
    assert overflowing == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_login_is_accessible(open_window, console, scheme):
    window = open_window(console, color_scheme=scheme, bypass_csp=True)
    page = window.open("/login", "Kafscale")
    assert axe.violations(page) == []


DIALOGS = [
    ("/topics", "Topics", "Create a topic"),
    ("/topics/orders", "orders", "Flush"),
    ("/topics/orders", "orders", "Add partitions"),
    ("/topics/orders", "orders", "Delete"),
    ("/topics/orders/messages", "orders", "Produce record"),
    ("/groups/analytics", "analytics", "Reset offsets"),
    ("/groups/analytics", "analytics", "Delete"),
    ("/brokers", "Brokers", "Rebalance"),
    ("/brokers/1", "Broker 1", "Flush"),
    ("/brokers/1", "Broker 1", "Drain"),
    ("/access", "Access", "Create ACL"),
    ("/access?part=users", "Access", "Create user"),
    ("/access?part=quotas", "Access", "Set quota"),
]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dialogs_are_accessible(open_window, console, scheme):
    window = open_window(console, color_scheme=scheme, bypass_csp=True).sign_in()
    violations = {}
    for path, heading, button in DIALOGS:
        page = window.follow(path, heading)
        window.button(button).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        expect(dialog.locator(":focus")).to_have_count(1)
        for violation in axe.violations(page, "[role=dialog]"):
            violations.setdefault(violation, []).append((path, button))
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(window.button(button)).to_be_focused()
    assert violations == {}


def test_phone_navigation_opens_and_closes(open_window, console):
    window = open_window(console, viewport=PHONE).sign_in()
    page = window.open("/", "Overview")
    topics = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Topics")
    expect(topics).not_to_be_in_viewport()
    window.button("Open navigation").click()
    topics.click()
    expect(window.heading("Topics")).to_be_visible()
    expect(topics).not_to_be_in_viewport()


def test_dark_mode_is_remembered(window):
    page = window.open("/", "Overview")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    window.button("Switch to dark mode").click()
    expect(window.button("Switch to light mode")).to_be_visible()
    dark = page.evaluate(ground)
    assert light != dark
    page.reload()
    expect(window.button("Switch to light mode")).to_be_visible()
    assert page.evaluate(ground) == dark


def test_colour_scheme_follows_the_system(open_window, console):
    window = open_window(console, color_scheme="dark").sign_in()
    window.open("/", "Overview")
    expect(window.button("Switch to light mode")).to_be_visible()
