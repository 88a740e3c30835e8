"""Takes the screenshots of the console in the docs: `make screenshots`.

    python -m services.screenshots [directory]

A cluster with sample topics runs under load for a while, so that charts have data. Then each page
is opened in a browser. Pictures have few colors to keep the repository small.
"""

import io
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser

from kafscale.storage.objects.s3.store import S3ObjectStore
from services import chromium, shop
from services.cluster import Cluster
from services.console import ConsoleProcess
from services.s3_server import broker_settings
from services.window import DESKTOP, PHONE, Window

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LOAD_S = 60
"""How long the load runs before the first picture."""
SIZE_BYTES_MAX = 120_000
COLORS = (192, 96, 48)
"""Numbers of colors, tried until the file is small enough."""


class Shot(NamedTuple):
    """A screenshot of a page."""

    name: str
    path: str
    heading: str
    is_dark: bool = False
    is_phone: bool = False


SHOTS = (
    Shot("overview", "/", "Overview"),
    Shot("overview-dark", "/", "Overview", is_dark=True),
    Shot("overview-phone", "/", "Overview", is_phone=True),
    Shot("topics", "/topics", "Topics"),
    Shot("messages", "/topics/orders/messages?path=customer.city&equals=Oslo&limit=20", "orders"),
    Shot("group", "/groups/analytics", "analytics"),
    Shot("brokers", "/brokers", "Brokers"),
    Shot("pipeline", "/pipeline", "Data pipeline"),
)


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        _console(Path(scratch)) as console,
        chromium.browser() as browser,
    ):
        for shot in SHOTS:
            picture = _reduce(_take(browser, console, shot))
            (directory / f"console-{shot.name}.png").write_bytes(picture)
            print(f"console-{shot.name}.png  {len(picture)} bytes")  # noqa: T201


@contextmanager
def _console(scratch: Path) -> Iterator[ConsoleProcess]:
    with Cluster(scratch / "cluster", brokers=3, etcd_members=3, seed=0) as cluster:
        cluster.wait_until_serving()
        shop.stock(cluster.bootstrap)
        shop.write_runs(lambda: S3ObjectStore(cluster.s3.bucket))
        settings = broker_settings(cluster.s3.bucket) | cluster.console_settings()
        with ConsoleProcess(scratch / "console", **settings) as console:
            console_client = console.client()
            for topic in shop.PARTITION_COUNTS:
                console_client.post(f"/topics/{topic}/flush", {})
            with shop.trade(cluster.bootstrap):
                time.sleep(LOAD_S)
                yield console


def _take(browser: Browser, console: ConsoleProcess, shot: Shot) -> bytes:
    options = {
        "viewport": PHONE if shot.is_phone else DESKTOP,
        "color_scheme": "dark" if shot.is_dark else "light",
    }
    with Window(browser, console.url, **options) as window:
        window.sign_in()
        page = window.open(shot.path, shot.heading)
        page.get_by_text("Live", exact=True).wait_for()
        page.wait_for_timeout(2_500)  # Charts are animated.
        if shot.name == "messages":
            page.get_by_role("table", name="Records").get_by_role("button").first.click()
        picture = page.screenshot()
        assert window.browser_errors == [], window.browser_errors
    return picture


def _reduce(picture: bytes) -> bytes:
    """Reduce the colors until the file is small enough."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colors in COLORS:
        written = io.BytesIO()
        few = image.quantize(colors, dither=Image.Dither.NONE)
        few.save(written, "PNG", optimize=True)
        if written.tell() < SIZE_BYTES_MAX:
            return written.getvalue()
    raise ValueError(f"the picture is still larger than {SIZE_BYTES_MAX} bytes in {colors} colors")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
