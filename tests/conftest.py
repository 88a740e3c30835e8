"""Options, fixtures and reports of all tests."""

import logging
import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

# A shared machine pauses at any time: pytest's timeout is the only time limit of tests. Every run
# has other examples; `make test-all` has more of them.
for profile, examples in (("kafscale", 50), ("thorough", 200)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kafscale"))

# A shell's background job, or nohup, ignores SIGINT, and child processes inherit that. Tests stop
# commands by SIGINT, so the default is restored here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOWEST_FAMILIES = 15
SLOW_FOLDERS = (
    "tests/chaos/",
    "tests/e2e/",
    "tests/integration/",
    "tests/conformance/groups/",
    "tests/conformance/transactions/",
)
"""Their tests start servers and wait."""
FOLDERS_OF_ONE_WORKER = (
    "tests/conformance/groups/",
    "tests/conformance/transactions/",
    "tests/e2e/console/browser/",
    "tests/integration/objects/",
)
"""Their tests share servers that are slow to start: Apache Kafka, a browser, S3 servers."""
STARTED_AT = time.monotonic()
FILES_MAX = 65536


def pytest_configure(config: pytest.Config) -> None:
    """Allow as many open files as the system permits; many brokers run side by side."""
    config.option.loadscopereorder = False  # xdist keeps the order of files.
    config.pluginmanager.register(DoctestFilter())
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, FILES_MAX), hard))


class DoctestFilter:
    """Looks for doctests only in files with examples: most have none, and pytest is slow to see."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Iterator[None]:
        collectors = yield
        if file_path.suffix == ".py" and ">>>" not in file_path.read_text():
            collectors = [each for each in collectors if type(each) is pytest.Module]
        return collectors


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which folders of tests took most of the time."""
    seconds: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                family = "/".join(report.nodeid.split("::")[0].split("/")[:3])
                seconds[family] += report.duration
                counts[family] += report.when == "call"
    if not seconds:
        return
    terminalreporter.section("time by folder")
    for family in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SLOWEST_FAMILIES]:
        terminalreporter.write_line(f"{seconds[family]:8.1f} s {counts[family]:6d} tests  {family}")


@pytest.fixture(autouse=True)
def _log_as_at_start() -> Iterator[None]:
    """Restore the log configuration, which every command changes, for the next test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first, so that all workers are busy until the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW_FOLDERS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let each worker run whole files, and some folders as if they were one file."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folders = (each for each in FOLDERS_OF_ONE_WORKER if nodeid.startswith(each))
            return next(folders, super()._split_scope(nodeid))

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start no test once the time is used up; a random order makes every run another share."""
    seconds_max = item.config.getoption("--stop-after")
    if seconds_max and time.monotonic() - STARTED_AT > seconds_max:
        pytest.skip(f"not started within {seconds_max} s")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stop-after", type=float, default=0, help="skip tests that start later, in seconds"
    )
    parser.addoption(
        "--simulation-runs", type=int, default=200, help="how many runs the simulation has"
    )
    parser.addoption(
        "--simulation-seed", type=int, default=0, help="the seed of the simulation's first run"
    )
    parser.addoption(
        "--on-kafka",
        action="store_true",
        help="run the tests of consumer groups on a real Kafka, to test the tests",
    )
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="rewrite the golden files with the current output; check the result with git diff",
    )
