"""The console's pages in a real browser, with a broker that has the topics of a shop.

All modules share a browser, a broker and a console, which take 15 seconds to start, and a test
removes what it created. Playwright keeps an event loop running in the thread meanwhile, so these
modules must not call `asyncio.run`, and are a package: its fixtures end before other tests begin.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser

from kafscale.console.http.static_files import DIRECTORY, INDEX
from kafscale.storage.objects.local.store import LocalObjectStore
from services import chromium, shop
from services.broker import BrokerProcess
from services.console import ConsoleProcess
from services.window import Window

OpenWindow = Callable[..., Window]
StartConsole = Callable[..., ConsoleProcess]

# ACLs are enabled, and anonymous clients are super users.
BROKER_SETTINGS = {
    "broker_id": "1",
    "group_initial_rebalance_delay_ms": "0",
    "authorization_enabled": "true",
    "authorization_super_users": "User:ANONYMOUS",
}


@pytest.fixture(scope="session")
def _pages() -> None:
    assert (DIRECTORY / INDEX).is_file(), "the console's pages are not built: run make web"


@pytest.fixture(scope="package")
def browser(_pages) -> Iterator[Browser]:
    if not chromium.is_available():
        pytest.skip("no Chromium here, and none to be had")
    with chromium.browser() as running:
        yield running


@pytest.fixture(scope="package")
def shop_broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    """A broker with the topics of a shop, which tests may extend but not change."""
    with BrokerProcess(tmp_path_factory.mktemp("shop"), **BROKER_SETTINGS) as broker:
        shop.stock(broker.address)
        objects = broker.data / "objects"
        shop.write_runs(lambda: LocalObjectStore(objects, fsync=False, shared=True))
        yield broker


@pytest.fixture(scope="package")
def console(shop_broker, tmp_path_factory) -> Iterator[ConsoleProcess]:
    with ConsoleProcess(tmp_path_factory.mktemp("console"), shop_broker) as running:
        yield running


@pytest.fixture
def topic(shop_broker, topic) -> Iterator[str]:
    """A unique topic name; the topic is deleted after the test."""
    yield topic
    admin = AdminClient({"bootstrap.servers": shop_broker.address})
    with suppress(KafkaException):
        admin.delete_topics([topic])[topic].result(timeout=20)


@pytest.fixture
def start_console(tmp_path) -> Iterator[StartConsole]:
    """Starts consoles for one test, with the given settings."""
    with ExitStack() as stack:

        def start(broker: BrokerProcess, **settings: str) -> ConsoleProcess:
            directory = tmp_path / f"console-{uuid4()}"
            return stack.enter_context(ConsoleProcess(directory, broker, **settings))

        yield start


@pytest.fixture
def open_window(browser, start_console) -> Iterator[OpenWindow]:  # noqa: ARG001
    """Opens windows on consoles; at the end, the browser must have logged no errors.

    Windows are closed before the consoles of the test, as they would log errors otherwise.
    """
    windows = []
    with ExitStack() as stack:

        def open_one(console: ConsoleProcess, **options: object) -> Window:
            windows.append(stack.enter_context(Window(browser, console.url, **options)))
            return windows[-1]

        yield open_one
    assert [error for window in windows for error in window.browser_errors] == []


@pytest.fixture(scope="package")
def _window_of(browser) -> Iterator[Callable[[str], Window]]:
    with ExitStack() as stack:
        yield cache(lambda url: stack.enter_context(Window(browser, url)))


@pytest.fixture
def window(_window_of, console) -> Iterator[Window]:
    """The window that all tests of a console share, signed in; a new one takes 2 CPU-seconds.

    The browser must have logged no errors.
    """
    shared = _window_of(console.url)
    yield shared.sign_in()
    assert shared.leave() == []
