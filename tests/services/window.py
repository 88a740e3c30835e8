"""A browser window on the console that records the errors that the browser logs.

    with chromium.browser() as browser, Window(browser, console.url) as window:
        window.sign_in()
        window.open("/topics")
        window.page.get_by_role("link", name="orders").click()
    assert window.browser_errors == []

A page that makes the browser log an error is broken: a script error, a violation of the content
security policy, an error response. A test declares the error responses that it causes on purpose by
their status: `window.expect_status(401)`.
"""

import re
from typing import Any, Self

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    expect,
)

from services.console import API, PASSWORD, USERNAME

WAIT_MS = 15_000
"""Timeout of waits, generous for machines under load."""
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}

FOLLOW = """path => {
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}"""

_STATUS = re.compile(r"the server responded with a status of (\d+)")

expect.set_options(timeout=WAIT_MS)


class Window:
    """One browser window with its own cookies."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        """`options` are those of `Browser.new_context`: a color scheme, a size."""
        options = {"viewport": DESKTOP, "reduced_motion": "reduce", "locale": "en-GB"} | options
        self.url = url
        self.context: BrowserContext = browser.new_context(base_url=url, **options)
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.browser_errors: list[str] = []
        self._expected: set[int] = set()
        self.page.on("console", self._record_message)
        self.page.on("pageerror", self._record_exception)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def sign_in(self) -> Self:
        """Log in by the API, without the login form."""
        response = self.context.request.post(
            f"{API}/session", data={"username": USERNAME, "password": PASSWORD}
        )
        assert response.ok, response.text()
        return self

    def open(self, path: str, heading: str | None = None) -> Page:
        """Open a path, and wait for the heading of the page."""
        self.page.goto(path)
        if heading is not None:
            self.heading(heading).wait_for()
        return self.page

    def follow(self, path: str, heading: str) -> Page:
        """Show a path without loading the page again, as a link in the page does."""
        if self.page.url == "about:blank":
            return self.open(path, heading)
        self.page.evaluate(FOLLOW, path)
        self.heading(heading).wait_for()
        return self.page

    def leave(self) -> list[str]:
        """Close the page and forget what it stored; return the errors that the browser logged."""
        if self.page.url != "about:blank":
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            self.page.goto("about:blank")
        errors, self.browser_errors, self._expected = self.browser_errors, [], set()
        return errors

    def heading(self, name: str) -> Locator:
        return self.page.get_by_role("heading", name=name, exact=True, level=1)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def dialog(self, name: str) -> Locator:
        return self.page.get_by_role("dialog", name=name)

    def row(self, table: str, text: str) -> Locator:
        """The rows of a table that contain the text."""
        rows = self.page.get_by_role("table", name=table, exact=True).get_by_role("row")
        return rows.filter(has_text=text)

    def expect_status(self, *statuses: int) -> None:
        """Declare error responses that the test causes on purpose."""
        self._expected.update(statuses)

    def ignore_errors(self, *texts: str) -> None:
        """Drop the recorded errors that contain one of these texts."""
        self.browser_errors = [
            each for each in self.browser_errors if not any(text in each for text in texts)
        ]

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        status = _STATUS.search(message.text)
        if status and int(status[1]) in self._expected:
            return
        self.browser_errors.append(f"{message.type} at {self.page.url}: {message.text}")

    def _record_exception(self, error: Error) -> None:
        self.browser_errors.append(f"exception at {self.page.url}: {error.stack or error.message}")
