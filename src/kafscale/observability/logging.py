"""Structured logs: one event a line, as JSON for programs or as text for people.

The law: an event is a constant phrase with its facts as key-values (`log.info("segment committed",
topic=...)`), and a fact whose name says that it is secret never leaves this room. The loggers of
libraries go the same way out. What is worth an event is left to those who see it happen.
"""

import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from kafscale.config import MASK, Config
from kafscale.observability import tracing

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_SECRET = re.compile(r"(^|_)(password|passphrase|secret|token|(access|secret|private)_key)$")
_SECRET_TEXT = re.compile(r"(^|_)authorization$")
"""A header of HTTP if it is text; a group of our settings otherwise."""


def configure(level: str, style: str, stream: TextIO | None = None) -> None:
    """Write every event of at least `level` to `stream` (standard error), as `json` or `text`."""
    stream = stream or sys.stderr
    named: list[Processor] = [structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*named, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _arrange,
            _mask_secrets,
            *_renderers(style, stream),
        ],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=_LEVELS[level], force=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _traced,
            *named,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
    )


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a module; it may be made before `configure` is called."""
    return cast("FilteringBoundLogger", structlog.get_logger(name))


def is_debugging() -> bool:
    """Whether events of level debug are written; asking is cheaper than making one in vain."""
    return logging.root.isEnabledFor(logging.DEBUG)


def log_configuration(config: Config) -> None:
    """Say at start what is in effect; secrets are masked by the configuration itself."""
    get_logger("kafscale.config").info("effective configuration", settings=config.effective())


def _renderers(style: str, stream: TextIO) -> list[Processor]:
    """The last steps of an event.

    Neither style shows the local variables of a traceback: they may be anything, secrets included.
    """
    if style == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    colors = stream.isatty() and not os.environ.get("NO_COLOR")
    plain = structlog.dev.plain_traceback
    return [
        _escape,
        structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False, exception_formatter=plain),
    ]


def _arrange(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Put what every event has first, in one order, so that lines can be read by eye."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = {"timestamp": now, "level": event.pop("level"), "logger": event.pop("logger")}
    return {**first, "event": event.pop("event"), **event}


def _traced(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Name the trace of the request that an event is about, where the collector hears of it."""
    span = tracing.current()
    if span is not None and span.is_sampled:
        event["trace_id"] = span.trace_id
    return event


def _escape(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Keep what strangers call themselves from giving orders to a terminal."""
    return {name: _printable(value) for name, value in event.items()}


def _printable(value: object) -> object:
    if isinstance(value, str) and not value.isprintable() and "\n" not in value:
        return repr(value)
    return value


def _mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: _masked(name, value) for name, value in event.items()}


def _masked(name: object, value: object) -> object:
    """`value` without secrets, at any depth; an empty secret may show that it is empty."""
    name_in_words = _snake_case(str(name))
    if value and _SECRET.search(name_in_words):
        return MASK
    if isinstance(value, str | bytes) and value and _SECRET_TEXT.search(name_in_words):
        return MASK
    if isinstance(value, dict):
        return {key: _masked(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", inner) for inner in value]
    return value


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
