"""A browser's window on the console, which writes down whatever the browser complains about.

    with chromium.browser() as browser, Window(browser, console.url) as window:
        window.sign_in()
        window.open("/topics")
        window.page.get_by_role("link", name="orders").click()
    assert window.complaints == []

The law: a page that makes the browser complain is broken, however it looks: an error of a script,
something that the content security policy refused, an answer that is an error. Answers that a test
provokes are named by it beforehand, by their status: `window.expect_status(401)`.
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
"""How long to wait for what takes a moment, on a machine that has other things to do."""
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}

_STATUS = re.compile(r"the server responded with a status of (\d+)")

expect.set_options(timeout=WAIT_MS)


class Window:
    """One window with cookies of its own."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        """`options` are those of `Browser.new_context`: a color scheme, a size."""
        options = {"viewport": DESK, "reduced_motion": "reduce", "locale": "en-GB"} | options
        self.url = url
        self.context: BrowserContext = browser.new_context(base_url=url, **options)
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self._expected: set[int] = set()
        self.page.on("console", self._said)
        self.page.on("pageerror", self._raised)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def sign_in(self) -> Self:
        """Without the form, which is for the tests of the form."""
        answer = self.context.request.post(
            f"{API}/session", data={"username": USERNAME, "password": PASSWORD}
        )
        assert answer.ok, answer.text()
        return self

    def open(self, path: str, heading: str | None = None) -> Page:
        """Go there, and wait for the page's own heading."""
        self.page.goto(path)
        if heading is not None:
            self.heading(heading).wait_for()
        return self.page

    def heading(self, name: str) -> Locator:
        return self.page.get_by_role("heading", name=name, exact=True, level=1)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def dialog(self, name: str) -> Locator:
        return self.page.get_by_role("dialog", name=name)

    def row(self, table: str, text: str) -> Locator:
        """The rows of a table in which the text stands."""
        rows = self.page.get_by_role("table", name=table, exact=True).get_by_role("row")
        return rows.filter(has_text=text)

    def expect_status(self, *statuses: int) -> None:
        """Answers that the test provokes on purpose."""
        self._expected.update(statuses)

    def forgive(self, *texts: str) -> None:
        """Forget complaints that the test has caused, each with one of these texts in it."""
        self.complaints = [
            each for each in self.complaints if not any(text in each for text in texts)
        ]

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        status = _STATUS.search(message.text)
        if status and int(status[1]) in self._expected:
            return
        self.complaints.append(f"{message.type} at {self.page.url}: {message.text}")

    def _raised(self, error: Error) -> None:
        self.complaints.append(f"exception at {self.page.url}: {error.stack or error.message}")
