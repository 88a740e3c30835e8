"""Chromium, driven by Playwright: the installed one, or one from Debian packages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from services import debian

PACKAGES = ("chromium", "fonts-dejavu-core")
PROGRAM = "chromium"


def is_available() -> bool:
    return bool(shutil.which(PROGRAM)) or debian.is_available(PROGRAM, PACKAGES, missing=True)


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a headless browser."""
    program, environment = shutil.which(PROGRAM), None
    if program is None:
        root = debian.unpacked(PROGRAM, PACKAGES, missing=True)
        program, environment = str(_binary(root)), debian.environment(root)
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work as root; only pages of the tests are opened.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(
            executable_path=program, args=arguments, env=environment
        )
        try:
            yield browser
        finally:
            browser.close()


def _binary(root: Path) -> Path:
    return root / "usr" / "lib" / "chromium" / "chromium"
