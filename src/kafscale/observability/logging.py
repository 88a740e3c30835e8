"""Structured logging: one event per line, as JSON or as text.

An event is a constant phrase with fields (`log.info("segment committed", topic=...)`). Fields whose
name indicates a secret are masked. Loggers of libraries use the same output. `RateLimitedLogger`
limits repeated events, such as those that clients can cause.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from typing import Any, Final, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from kafscale.aio.clock import clock
from kafscale.config import MASK, Config
from kafscale.errors import ConfigError
from kafscale.observability import tracing
from kafscale.text.formatting import format_time

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_SECRET = re.compile(r"(^|_)(password|passphrase|secret|token|(access|secret|private)_key)$")
_SECRET_TEXT = re.compile(r"(^|_)authorization$")
"""An HTTP header if it is text; otherwise a section of the settings."""

AUDIT: Final = "kafscale.audit"
"""The name of the logger of the audit log."""
ROOT: Final = "root"
"""Kafka's name of the root logger."""
KAFKA_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""In ascending order."""
_PACKAGE: Final = "kafscale"
LINES_PER_SECOND_MAX: Final = 10
_NAMED: Final[tuple[Processor, ...]] = (
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
)


def configure(
    level: str, style: str, stream: TextIO | None = None, *, audit_file: str = ""
) -> None:
    """Write events of at least `level` to `stream` (default: stderr), as `json` or `text`.

    The audit log is also written to `audit_file`; raises `ConfigError` if that is impossible.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    level_min = _LEVELS[level]
    handler.addFilter(lambda record: record.name != AUDIT or record.levelno >= level_min)
    handler.setFormatter(_formatter(style, stream))
    logging.basicConfig(handlers=[handler], level=level_min, force=True)
    audit = logging.getLogger(AUDIT)
    audit.setLevel(min(level_min, logging.INFO) if audit_file else level_min)
    if audit_file:
        audit.handlers = [_audit_handler(audit_file)]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _traced,
            *_NAMED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(_lowest_level()),
    )


# --- levels of single loggers ---------------------------------------------------------------------


def logger_names() -> set[str]:
    """The root logger, the packages of Kafscale, and all loggers that exist, also of libraries."""
    packages = {
        name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == _PACKAGE and hasattr(module, "__path__")
    }
    return {ROOT, *packages, *_loggers()}


def effective_level(name: str) -> str:
    """The level of a logger, its own or that of its parent, by Kafka's name."""
    level = _logger(name).getEffectiveLevel()
    return next(each for each, number in KAFKA_LEVELS.items() if number >= level)


def levels() -> dict[str, str]:
    """The loggers that have a level of their own."""
    own = {name for name, logger in _loggers().items() if logger.level}
    return {name: effective_level(name) for name in {ROOT, *own}}


def set_levels(levels: Mapping[str, str]) -> None:
    """Set the levels of some loggers; all others get that of their parent.

    The audit log keeps its level, whatever that of its parents is.
    """
    for name, logger in _loggers().items():
        if name not in levels:
            logger.setLevel(logging.NOTSET)
    for name, level in levels.items():
        _logger(name).setLevel(KAFKA_LEVELS[level])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_lowest_level()))


def _loggers() -> dict[str, logging.Logger]:
    """The loggers whose levels can change, without the root."""
    known = dict(logging.root.manager.loggerDict)
    known.pop(AUDIT, None)
    return {name: each for name, each in known.items() if isinstance(each, logging.Logger)}


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _lowest_level() -> int:
    """The lowest level of all loggers, as structlog knows it; events below are dropped at once."""
    own = [logger.level for logger in _loggers().values() if logger.level]
    lowest = min([logging.root.level, logging.getLogger(AUDIT).level, *own])
    return logging.NOTSET if lowest < logging.DEBUG else lowest


# --- output ---------------------------------------------------------------------------------------


def _formatter(style: str, stream: TextIO) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_NAMED, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _arrange,
            _mask_secrets,
            *_renderers(style, stream),
        ],
    )


def _audit_handler(path: str) -> logging.Handler:
    try:
        handler = _AuditFile(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"logging.auditFile: cannot write {path} ({error.strerror}); use a file that this"
            " process may write"
        ) from None
    handler.setFormatter(_formatter("json", sys.stderr))
    return handler


class _AuditFile(WatchedFileHandler):
    """A file that only its owner can read; if it is renamed, a new one is created.

    What cannot be written, because the disk is full for example, is an error in the log.
    """

    def __init__(self, path: str, *, encoding: str) -> None:
        self._failures = RateLimitedLogger(clock)
        super().__init__(path, encoding=encoding)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002 - of the base.
        if self._failures.allow():
            get_logger(__name__).error(
                "audit file not written", file=self.baseFilename, reason=str(sys.exc_info()[1])
            )

    def _open(self) -> TextIOWrapper:
        def create(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=create)


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a module; it may be created before `configure` is called."""
    return cast("FilteringBoundLogger", structlog.get_logger(name))


def is_debugging(name: str) -> bool:
    """True if a logger writes debug events; cheaper than creating an event that is dropped."""
    return logging.getLogger(name).isEnabledFor(logging.DEBUG)


def log_configuration(config: Config) -> None:
    """Log the effective configuration, in which secrets are masked."""
    get_logger("kafscale.config").info("effective configuration", settings=config.effective())


class RateLimitedLogger:
    """Allows a few events per second, and counts the suppressed ones."""

    __slots__ = ("_clock", "_remaining", "_second", "suppressed")

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` returns milliseconds."""
        self._clock = clock
        self._second = -1
        self._remaining = 0
        self.suppressed = 0
        """The number of events suppressed since the last one that was logged."""

    def allow(self) -> bool:
        second = self._clock() // 1000
        if second != self._second:
            self._second = second
            self._remaining = LINES_PER_SECOND_MAX
        if not self._remaining:
            self.suppressed += 1
            return False
        self._remaining -= 1
        return True

    def warn(self, log: FilteringBoundLogger, event: str, **fields: Any) -> None:
        """Log an event with the number of suppressed ones before it, or suppress it."""
        if self.allow():
            log.warning(event, **fields, suppressed=self.take_suppressed())

    def take_suppressed(self) -> int:
        """Return and reset the number of suppressed events."""
        suppressed, self.suppressed = self.suppressed, 0
        return suppressed


def _renderers(style: str, stream: TextIO) -> list[Processor]:
    """The last processors of an event.

    Neither style shows local variables in tracebacks, because they may contain secrets.
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
    """Put the common fields first, in a fixed order."""
    now = format_time(clock())
    first = {"timestamp": now, "level": event.pop("level"), "logger": event.pop("logger")}
    return {**first, "event": event.pop("event"), **event}


def _traced(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add the trace id of the current request if it is sampled."""
    span = tracing.current()
    if span is not None and span.is_sampled:
        event["trace_id"] = span.trace_id
    return event


def _escape(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters, so that names chosen by clients cannot control a terminal."""
    return {name: _printable(value) for name, value in event.items()}


def _printable(value: object) -> object:
    if isinstance(value, str) and not value.isprintable() and "\n" not in value:
        return repr(value)
    return value


def _mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: _masked(name, value) for name, value in event.items()}


def _masked(name: object, value: object) -> object:
    """The value without secrets, at any depth; an empty secret is not masked."""
    snake_case_name = _snake_case(str(name))
    if value and _SECRET.search(snake_case_name):
        return MASK
    if isinstance(value, str | bytes) and value and _SECRET_TEXT.search(snake_case_name):
        return MASK
    if isinstance(value, dict):
        return {key: _masked(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", inner) for inner in value]
    return value


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
