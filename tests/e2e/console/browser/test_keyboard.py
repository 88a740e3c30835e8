"""Keyboard navigation."""

import pytest
from playwright.sync_api import expect

# Component tests, and tests of the API, cover the same pages in every run.
pytestmark = [pytest.mark.long, pytest.mark.timeout(60)]


def test_shortcuts_open_pages_and_search(window):
    page = window.open("/", "Overview")
    for keys, heading in (("gt", "Topics"), ("gg", "Consumer groups"), ("gb", "Brokers")):
        for key in keys:
            page.keyboard.press(key)
        expect(window.heading(heading)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    search = page.get_by_role("searchbox", name="Search topics")
    expect(search).to_be_visible()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("gb pay")
    expect(search).to_have_value("gb pay")
    expect(window.heading("Topics")).to_be_visible()


def test_question_mark_shows_shortcuts_and_escape_closes_them(window):
    page = window.open("/topics", "Topics")
    page.keyboard.press("?")
    dialog = window.dialog("Keyboard shortcuts")
    expect(dialog).to_contain_text("Go to Topics")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(window.heading("Topics")).to_be_visible()
    window.button("Show keyboard shortcuts").click()
    expect(dialog).to_be_visible()


def test_dialog_traps_and_restores_focus(window):
    page = window.open("/topics", "Topics")
    create = window.button("Create a topic")
    create.focus()
    page.keyboard.press("Enter")
    dialog = window.dialog("Create a topic")
    expect(dialog.get_by_label("Name", exact=False).first).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        expect(dialog.locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(create).to_be_focused()


def test_arrows_move_through_rows_and_enter_opens_one(window):
    page = window.open("/topics", "Topics")
    rows = page.get_by_role("table", name="Topics").get_by_role("link")
    expect(rows).to_have_count(4)
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(rows.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(window.heading("clicks")).to_be_visible()


def test_first_tab_skips_the_navigation(window):
    page = window.open("/topics", "Topics")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(window.button("Create a topic")).to_be_focused()
