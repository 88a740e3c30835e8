"""Logging: one event per line, also for loggers of libraries, without secrets."""

import contextlib
import io
import json
import logging
import re
import shutil

import pytest

from kafscale.config import MASK, load
from kafscale.errors import ConfigError
from kafscale.observability.logging import (
    AUDIT,
    LINES_PER_SECOND_MAX,
    ROOT,
    RateLimitedLogger,
    configure,
    effective_level,
    get_logger,
    is_debugging,
    log_configuration,
    logger_names,
    set_levels,
)


@pytest.fixture
def stream():
    """Where the log goes."""
    # An empty list keeps `force` from closing what the test runner has installed.
    logging.getLogger().handlers = []
    return io.StringIO()


def events(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_json_line_with_common_fields_first(stream):
    configure("info", "json", stream)
    get_logger("kafscale.storage").info("segment committed", topic="orders", base_offset=42)
    [event] = events(stream)
    assert list(event) == ["timestamp", "level", "logger", "event", "topic", "base_offset"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("timestamp"))
    assert event == {
        "level": "info",
        "logger": "kafscale.storage",
        "event": "segment committed",
        "topic": "orders",
        "base_offset": 42,
    }


def test_logger_created_before_configuration_uses_it(stream):
    log = get_logger("early")
    configure("info", "json", stream)
    log.info("hello")
    assert [event["event"] for event in events(stream)] == ["hello"]


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warn", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_events_below_the_level_are_dropped_for_all_loggers(stream, level, seen):
    configure(level, "json", stream)
    for log in (get_logger("ours"), logging.getLogger("theirs")):
        log.debug("event")
        log.info("event")
        log.warning("event")
        log.error("event")
    assert [event["level"] for event in events(stream)] == seen * 2


@pytest.fixture
def _levels():
    """Restores the levels of all loggers."""
    yield
    set_levels({ROOT: "WARN"})


@pytest.mark.usefixtures("_levels")
def test_single_loggers_have_levels_of_their_own(stream):
    configure("warn", "json", stream)
    set_levels({ROOT: "WARN", "kafscale.storage": "DEBUG", "kafscale.storage.wal": "ERROR"})
    names = ["kafscale.storage", "kafscale.storage.log", "kafscale.storage.wal.x", "kafscale.net"]
    for name in names:
        get_logger(name).debug("event")
        get_logger(name).warning("event")
    assert [(event["logger"], event["level"]) for event in events(stream)] == [
        ("kafscale.storage", "debug"),
        ("kafscale.storage", "warning"),
        ("kafscale.storage.log", "debug"),
        ("kafscale.storage.log", "warning"),
        ("kafscale.net", "warning"),
    ]
    assert {name: effective_level(name) for name in names} == dict(
        zip(names, ["DEBUG", "DEBUG", "ERROR", "WARN"], strict=True)
    )
    assert is_debugging("kafscale.storage.log")
    assert not is_debugging("kafscale.net")
    assert set(names) < logger_names()


@pytest.mark.usefixtures("_levels")
@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("TRACE", ["debug", "info", "error", "critical"]),
        ("INFO", ["info", "error", "critical"]),
        ("FATAL", ["critical"]),
    ],
)
def test_levels_change_while_running(stream, level, seen):
    configure("error", "json", stream)
    set_levels({ROOT: level})
    log = get_logger("ours")
    for method in (log.debug, log.info, log.error, log.critical):
        method("event")
    assert [event["level"] for event in events(stream)] == seen
    assert effective_level(ROOT) == level


def test_library_loggers_use_the_same_output(stream):
    configure("info", "json", stream)
    logging.getLogger("library").info("%d requests", 3, extra={"peer": "a", "token": "hunter2"})
    [event] = events(stream)
    assert (event["event"], event["logger"], event["peer"]) == ("3 requests", "library", "a")
    assert event["token"] == MASK


@pytest.mark.parametrize("style", ["json", "text"])
def test_traceback_has_no_local_variables(stream, style):
    configure("info", style, stream)
    local = f"hunter{2}"
    try:
        int(local[0])
    except ValueError:
        get_logger("ours").exception("it failed")
    assert "Traceback (most recent call last)" in stream.getvalue()
    assert "invalid literal for int()" in stream.getvalue()
    assert local not in stream.getvalue()
    assert style == "text" or len(events(stream)) == 1


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "etcd_password",
        "secret",
        "sessionToken",
        "access_key",
        "secretKey",
        "private-key",
    ],
)
@pytest.mark.parametrize("style", ["json", "text"])
def test_secret_fields_are_masked_at_any_depth(stream, style, name):
    configure("info", style, stream)
    facts = {name: "hunter2"}
    get_logger("ours").info("facts", **facts, nested={"list": [facts], "pair": (facts, 1)})
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("********") == 3


def test_similar_field_names_are_not_masked(stream):
    configure("info", "json", stream)
    facts = {"key": "orders", "token_count": 3, "keyFile": "/key.pem", "password": ""}
    get_logger("ours").info("facts", **facts)
    [event] = events(stream)
    assert {name: event[name] for name in facts} == facts


def test_text_style_has_no_colours_without_a_terminal(stream):
    configure("info", "text", stream)
    get_logger("kafscale.storage").info("segment committed", topic="orders")
    [line] = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert re.match(
        r"\d{4}-\d\d-\d\dT\S+Z \[info +\] segment committed +\[kafscale.storage\]", line
    )
    assert line.endswith("topic=orders")


def test_effective_configuration_is_logged_with_masked_secrets(stream):
    configure("info", "json", stream)
    environ = {
        "KAFSCALE_S3_BUCKET": "records",
        "KAFSCALE_S3_ACCESS_KEY": "hunter2",
        "KAFSCALE_S3_SECRET_KEY": "hunter2",
        "KAFSCALE_BROKER_PORT": "1001",
    }
    config = load(environ)
    log_configuration(config)
    [event] = events(stream)
    assert event["event"] == "effective configuration"
    assert event["settings"] == config.effective()
    assert event["settings"]["broker"]["port"] == 1001
    assert event["settings"]["s3"]["secretKey"] == "********"
    assert "hunter2" not in stream.getvalue()


def test_reconfiguration_replaces_handlers(stream):
    configure("info", "json", io.StringIO())
    configure("info", "json", stream)
    get_logger("ours").info("once")
    assert len(events(stream)) == 1


def test_rate_limited_logger_allows_a_few_lines_per_second_and_counts_the_rest():
    now_ms = 5_000
    limited = RateLimitedLogger(lambda: now_ms)
    allowed = sum(limited.allow() for _ in range(1_000))
    assert allowed == LINES_PER_SECOND_MAX
    now_ms = 6_000
    assert limited.allow()
    assert limited.take_suppressed() == 1_000 - LINES_PER_SECOND_MAX
    assert limited.take_suppressed() == 0


# --- the audit file -------------------------------------------------------------------------------


@pytest.fixture
def audit():
    """The audit logger; its handler is closed after the test."""
    yield get_logger("kafscale.audit")
    for handler in logging.getLogger("kafscale.audit").handlers:
        with contextlib.suppress(OSError):  # What a full disk did not take is still to be written.
            handler.close()
    logging.getLogger("kafscale.audit").handlers = []


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_audit_file_has_all_events_of_the_audit_log_and_no_others(stream, audit, tmp_path):
    path = tmp_path / "audit.log"
    configure("error", "text", stream, audit_file=str(path))
    audit.info("logged in", principal="User:alice")
    audit.warning("access denied", principal="User:bob", password="hidden")  # noqa: S106
    get_logger("kafscale.storage").error("something else")
    assert [(each["event"], each["principal"]) for each in read(path)] == [
        ("logged in", "User:alice"),
        ("access denied", "User:bob"),
    ]
    assert "hidden" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "logged in" not in stream.getvalue()
    assert "something else" in stream.getvalue()


def test_renamed_audit_file_is_created_again(stream, audit, tmp_path):
    path = tmp_path / "audit.log"
    configure("info", "json", stream, audit_file=str(path))
    audit.info("first")
    path.rename(tmp_path / "audit.log.1")
    audit.info("second")
    assert [each["event"] for each in read(path)] == ["second"]
    assert [each["event"] for each in events(stream)] == ["first", "second"]


def test_audit_file_that_cannot_be_written_is_an_error_in_the_log(stream, audit, tmp_path):
    directory = tmp_path / "audit"
    directory.mkdir()
    configure("info", "json", stream, audit_file=str(directory / "audit.log"))
    shutil.rmtree(directory)
    audit.info("logged in")
    assert [each["event"] for each in events(stream)] == ["audit file not written", "logged in"]
    with pytest.raises(ConfigError, match=r"logging.auditFile: cannot write .*audit"):
        configure("info", "json", stream, audit_file=str(directory / "audit.log"))


@pytest.mark.usefixtures("_levels")
@pytest.mark.parametrize("has_file", [False, True])
def test_audit_log_cannot_be_disabled(stream, audit, tmp_path, has_file):
    file = tmp_path / "audit.log"
    configure("info", "json", stream, audit_file=str(file) if has_file else "")
    set_levels({ROOT: "FATAL", "kafscale": "FATAL"})
    set_levels({ROOT: "FATAL"})
    assert AUDIT not in logger_names()
    audit.info("configs changed")
    assert [event["event"] for event in events(stream)] == ["configs changed"]
    assert not has_file or "configs changed" in file.read_text()


def test_full_disk_is_an_error_in_the_log(stream, audit):
    configure("info", "json", stream, audit_file="/dev/full")
    audit.info("logged in")
    assert [each["event"] for each in events(stream)] == ["audit file not written", "logged in"]
