"""Settings of logs and traces."""

from dataclasses import dataclass
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import Choice, Float, Text

_COLLECTOR: Final = Text(
    "a URL such as http://collector:4318", r"https?://[^\s/@?#]+(/[^\s@?#]*)?", optional=True
)
_SERVICE: Final = Text("a name", r"[0-9A-Za-z._-]{1,100}", optional=True)


@dataclass(frozen=True, kw_only=True)
class Logging:
    """The log."""

    level: str = setting(
        "info", Choice(("debug", "info", "warn", "error")), variables=("KAFSCALE_LOG_LEVEL",)
    )
    """The lowest level that is logged. `info` shows what a broker does, but not every request."""

    format: str = setting("json", Choice(("json", "text")))
    """`json` writes one JSON object per line, `text` is for people. `json` by default, because logs
    are usually collected."""

    audit_file: str = setting("", Text("a file", optional=True))
    """A file that gets the lines of the audit log as well, as JSON whatever `format` and `level`
    are. Only its owner can read it. If it is renamed, as by logrotate, a new one is created. Empty,
    the default, writes them to the log only."""


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """Traces of requests and of what they wait for, sent to an OpenTelemetry collector."""

    endpoint: str = setting("", _COLLECTOR)
    """The URL of the collector, for OTLP over HTTP; without a path, /v1/traces is added. Empty, the
    default, disables tracing, without any overhead."""

    sample_ratio: float = setting(0.01, Float())
    """The share of requests without a trace context that start a trace. 0.01 is one in a hundred,
    which shows where time is spent and causes little load."""

    service_name: str = setting("", _SERVICE)
    """The service name in traces. Empty, the default, is `kafscale-broker` or `kafscale-operator`,
    depending on the process."""
