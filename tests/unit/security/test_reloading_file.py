"""`ReloadingFile`: changed files are reloaded, failures keep the old value."""

import pytest
from structlog.testing import capture_logs

from kafscale.errors import ConfigError
from kafscale.security.reloading_file import CHECK_INTERVAL_MS, ReloadingFile


class Clock:
    def __init__(self):
        self.now_ms = 1_000_000

    def __call__(self):
        return self.now_ms

    def pass_interval(self):
        self.now_ms += CHECK_INTERVAL_MS


def read(path):
    try:
        return path.read_text()
    except OSError:
        raise ConfigError("unreadable") from None


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_text("one")
    return tmp_path / "file"


def test_change_is_visible_within_a_second(path, clock):
    source = ReloadingFile(path, read, clock)
    path.write_text("two!")
    assert source.value() == "one"
    clock.pass_interval()
    assert source.value() == "two!"


def test_unchanged_file_is_not_read_again(path, clock):
    reads = []
    source = ReloadingFile(path, reads.append, clock)
    for _ in range(3):
        clock.pass_interval()
        source.value()
    assert reads == [path]


def test_replaced_file_is_read(path, clock):
    source = ReloadingFile(path, read, clock)
    other = path.with_name("other")
    other.write_text("two")
    other.replace(path)
    clock.pass_interval()
    assert source.value() == "two"


def test_clock_set_back_does_not_stop_checks(path, clock):
    source = ReloadingFile(path, read, clock)
    path.write_text("two!")
    clock.now_ms -= 10_000_000
    assert source.value() == "two!"


def test_missing_file_keeps_the_value_and_is_logged_once(path, clock):
    source = ReloadingFile(path, read, clock)
    path.unlink()
    with capture_logs() as events:
        for _ in range(3):
            clock.pass_interval()
            assert source.value() == "one"
    assert [event["event"] for event in events] == ["file not reloaded"]
    path.write_text("back again")
    clock.pass_interval()
    assert source.value() == "back again"


def test_missing_file_fails_the_start(tmp_path, clock):
    with pytest.raises(ConfigError, match="unreadable"):
        ReloadingFile(tmp_path / "none", read, clock)


def test_directory_changes_with_its_files(tmp_path, path, clock):
    def joined(directory):
        return "".join(read(entry) for entry in sorted(directory.iterdir()))

    source = ReloadingFile(tmp_path, joined, clock)
    path.write_text("two!")
    clock.pass_interval()
    assert source.value() == "two!"
    (tmp_path / "later").write_text("three")
    clock.pass_interval()
    assert source.value() == "two!three"
    (tmp_path / "later").write_text("four")
    clock.pass_interval()
    assert source.value() == "two!four"
