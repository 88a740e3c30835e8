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
    """What is written to the log."""

    level: str = setting(
        "info", Choice(("debug", "info", "warn", "error")), variables=("KAFSCALE_LOG_LEVEL",)
    )
    """The least important events that are still written. `info` tells what a broker does, not what
    each request does."""

    format: str = setting("json", Choice(("json", "text")))
    """One JSON object a line, for programs, or text for people. `json`, because a broker's log is
    mostly collected and searched."""


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """Traces of requests and of what they wait for, sent to a collector of OpenTelemetry."""

    endpoint: str = setting("", _COLLECTOR)
    """The collector that takes traces, by OTLP over HTTP; where the URL has no path, /v1/traces is
    added. Empty, the default, is no tracing, which costs nothing."""

    sample_ratio: float = setting(0.01, Float())
    """Which share of the requests that come without a trace begins one. 0.01, one in a hundred, is
    enough to see where time goes, and too little to slow a broker down."""

    service_name: str = setting("", _SERVICE)
    """The name under which traces of this process are found. Empty, the default, is
    `kafscale-broker` or `kafscale-operator`, after what the process is."""
