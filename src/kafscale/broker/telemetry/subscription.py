"""`Subscription`: which metrics which clients push, and how often (KIP-714). Pure.

Its configs have Kafka's names, defaults, limits and errors. Invariant: a stored subscription passed
`check`, so `Subscription.of` can read it. Patterns are RE2, which matches in linear time.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import re2  # type: ignore[import-untyped]

from kafscale.errors import InvalidConfigError, InvalidRequestError

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
ALL_METRICS: Final = "*"
INTERVAL_MS_DEFAULT: Final = 300_000
INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000
LENGTH_MAX: Final = 4_096
"""How long a name or a value may be, so that a subscription fits into the metadata store."""

ATTRIBUTES: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What a client can be matched by."""

DEFAULTS: Final = {INTERVAL: str(INTERVAL_MS_DEFAULT), MATCH: "", METRICS: ""}
"""All configs, by name."""


class Subscription(msgspec.Struct, frozen=True):
    """A subscription that can be matched with clients."""

    name: str
    metrics: tuple[str, ...]
    """Prefixes of metric names; `ALL_METRICS` stands for every metric."""
    interval_ms: int
    patterns: Mapping[str, str]
    """By attribute; all of them must match."""

    @classmethod
    def of(cls, name: str, configs: Mapping[str, str]) -> "Subscription":
        given = {**DEFAULTS, **configs}
        return cls(
            name, _split(given[METRICS]), int(given[INTERVAL]), _parse_patterns(given[MATCH])
        )

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Whether a client with these attributes pushes the metrics."""
        return all(
            re2.fullmatch(pattern, attributes.get(attribute, "")) is not None
            for attribute, pattern in self.patterns.items()
        )


def check(name: str, configs: Mapping[str, str]) -> None:
    """Raise Kafka's error for an invalid subscription."""
    if not name:
        raise InvalidRequestError("Subscription name can't be empty")
    if max(map(len, (name, *configs.values()))) > LENGTH_MAX:
        raise InvalidConfigError(f"A subscription has at most {LENGTH_MAX} characters per value.")
    for config, value in configs.items():
        if config not in DEFAULTS:
            raise InvalidRequestError(f"Unknown client metrics configuration: {config}")
        if config == INTERVAL:
            _check_interval(value)
    _parse_patterns(configs.get(MATCH, ""))


def _check_interval(text: str) -> None:
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 10:
        raise InvalidConfigError(
            f"Invalid value {text} for configuration {INTERVAL}: Not a number of type INT"
        )
    if not INTERVAL_MS_MIN <= int(text) <= INTERVAL_MS_MAX:
        raise InvalidRequestError(
            f"Invalid value {text} for {INTERVAL}, interval must be between"
            f" {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
        )


def _parse_patterns(text: str) -> dict[str, str]:
    patterns = {}
    for item in _split(text):
        attribute, equals, pattern = item.partition("=")
        if not equals or "=" in pattern or attribute.strip() not in ATTRIBUTES:
            raise InvalidConfigError(f"Illegal client matching pattern: {item}")
        try:
            re2.compile(pattern.strip(), _QUIET)
        except re2.error:
            raise InvalidConfigError(f"Illegal client matching pattern: {item}") from None
        patterns[attribute.strip()] = pattern.strip()
    return patterns


def _split(text: str) -> tuple[str, ...]:
    """The items of a list.

    >>> _split("a, b,,"), _split("")
    (('a', 'b'), ())
    """
    return tuple(item.strip() for item in text.split(",") if item.strip())


_QUIET: Final = re2.Options()
_QUIET.log_errors = False
