"""Chromium, as the machine has it or else out of Debian's packages, driven by Playwright."""

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
    """A browser without a window, as long as the block lasts."""
    program, environment = shutil.which(PROGRAM), None
    if program is None:
        root = debian.unpacked(PROGRAM, PACKAGES, missing=True)
        program, environment = str(_binary(root)), debian.environment(root)
    with sync_playwright() as playwright:
        # Nobody's pages but ours are opened, and root cannot have a sandbox.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        opened = playwright.chromium.launch(
            executable_path=program, args=arguments, env=environment
        )
        try:
            yield opened
        finally:
            opened.close()


def _binary(root: Path) -> Path:
    return root / "usr" / "lib" / "chromium" / "chromium"
