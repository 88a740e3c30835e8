"""Login and logout."""

import re

import pytest
from playwright.sync_api import expect

from services.console import PASSWORD, USERNAME

pytestmark = pytest.mark.timeout(90)


def password_field(page):
    return page.get_by_label(re.compile("^Password"))


def fill(page, username, password):
    page.get_by_label("User name").fill(username)
    password_field(page).fill(password)
    page.get_by_role("button", name="Log in").click()


def test_login_leads_to_the_requested_page(open_window, console):
    window = open_window(console)
    page = window.open("/topics?search=pay")
    expect(page).to_have_url(f"{console.url}/login")
    fill(page, USERNAME, PASSWORD)
    expect(window.heading("Topics")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search topics")).to_have_value("pay")
    expect(page.get_by_role("link", name="payments")).to_be_visible()
    expect(page.get_by_role("link", name="orders")).to_have_count(0)


def test_wrong_password_is_rejected_and_the_right_one_accepted(open_window, console):
    window = open_window(console)
    window.expect_status(401)
    page = window.open("/")
    fill(page, USERNAME, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("Wrong user name or password.")
    expect(password_field(page)).to_have_value("")
    fill(page, USERNAME, PASSWORD)
    expect(window.heading("Overview")).to_be_visible()


@pytest.mark.long
def test_login_after_failures_is_held_and_succeeds(open_window, start_console, shop_broker):
    window = open_window(start_console(shop_broker))
    window.expect_status(401)
    page = window.open("/login")
    for _ in range(5):
        fill(page, USERNAME, "wrong")
        expect(password_field(page)).to_have_value("")
        expect(page.get_by_role("alert")).to_contain_text("Wrong")
    fill(page, USERNAME, PASSWORD)
    expect(window.button("Log in")).to_be_disabled()
    expect(window.heading("Overview")).to_be_visible()


@pytest.mark.long
def test_login_is_disabled_without_a_password(open_window, start_console, shop_broker):
    window = open_window(start_console(shop_broker, ui_password=""))
    page = window.open("/")
    warning = page.get_by_role("alert").filter(has_text="Access is disabled")
    expect(warning).to_contain_text("KAFSCALE_UI_PASSWORD")
    expect(page.get_by_label("User name")).to_be_disabled()
    expect(window.button("Log in")).to_be_disabled()
    response = window.context.request.post(
        "/api/v1/session", data={"username": USERNAME, "password": ""}
    )
    assert response.status == 403
    assert window.context.request.get("/api/v1/topics").status == 403


def test_logout_ends_the_session(open_window, console):
    window = open_window(console).sign_in()
    window.expect_status(401)
    window.open("/topics", "Topics")
    page = window.open("/brokers", "Brokers")
    cookies = window.context.cookies()
    window.button("Log out").click()
    expect(window.button("Log in")).to_be_visible()
    page.go_back()
    expect(window.button("Log in")).to_be_visible()
    window.context.add_cookies(cookies)
    response = window.context.request.get("/api/v1/topics")
    assert response.status == 401, "a session cookie must be invalid after logout"


@pytest.mark.long
def test_expired_session_leads_to_the_login_and_back(open_window, console):
    window = open_window(console).sign_in()
    window.expect_status(401)
    page = window.open("/brokers", "Brokers")
    window.context.clear_cookies()
    expect(window.button("Log in")).to_be_visible()
    fill(page, USERNAME, PASSWORD)
    expect(window.heading("Brokers")).to_be_visible()
