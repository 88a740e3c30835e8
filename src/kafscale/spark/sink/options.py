"""The options of the sink: those of Spark's Kafka sink, with its names, and our own.

Invariants: option names are case-insensitive; an unknown option is rejected by name, and so is a
producer setting that the sink fixes. Security settings are not options, because Spark shows options
in plans; see `security`.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec

from kafscale.client.blocking import parse_addresses
from kafscale.errors import InvalidRequestError
from kafscale.net.address import Address
from kafscale.records import Codec

NAMES: Final = frozenset(
    {
        "kafka.bootstrap.servers",
        "kafka.compression.type",
        "kafka.transaction.timeout.ms",
        "topic",
        "includeHeaders",
        "transactionalIdPrefix",
    }
)
"""All options."""

_OF_SPARK: Final = frozenset({"checkpointlocation"})
"""Options of every stream, which Spark passes on."""

_SECURITY: Final = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
_CANONICAL: Final = {name.lower(): name for name in NAMES}

_PREFIX: Final = "kafscale-spark"
_PREFIX_BYTES_MAX: Final = 1024 - len("-00000000-0000-0000-0000-000000000000")
"""Kafscale's brokers limit transactional ids and groups to 1 KiB; the id of a query is a UUID."""

_TIMEOUT_MS: Final = 120_000
_TIMEOUT_MS_MAX: Final = (1 << 31) - 1
"""The protocol has 32 bits for it; brokers limit it to their `transaction.max.timeout.ms`."""

_Value = TypeVar("_Value")


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed options of a sink."""

    bootstrap: tuple[Address, ...]
    topic: str
    """The topic of all rows; if it is empty, each row names its own."""
    codec: Codec
    timeout_ms: int
    """How long the coordinator lets a transaction stay open after the driver has died."""
    prefix: str
    """Of transactional ids and of groups."""


def parse(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of a sink."""
    values = _canonical(options)
    servers = values.get("kafka.bootstrap.servers")
    if servers is None:
        raise InvalidRequestError("set kafka.bootstrap.servers to the brokers of the topic")
    topic = values.get("topic", "").strip()
    if not topic and "topic" in values:
        raise InvalidRequestError("topic is empty")
    return SinkOptions(
        bootstrap=parse_addresses(servers),
        topic=topic,
        codec=_parsed(values, "kafka.compression.type", _codec, Codec.LZ4),
        timeout_ms=_parsed(values, "kafka.transaction.timeout.ms", _timeout_ms, _TIMEOUT_MS),
        prefix=_parsed(values, "transactionalIdPrefix", _prefix, _PREFIX),
    )


def _canonical(options: Mapping[str, str]) -> dict[str, str]:
    canonical = {}
    for name, value in options.items():
        if name.lower() in _OF_SPARK:
            continue
        known = _CANONICAL.get(name.lower())
        if known is None:
            raise InvalidRequestError(_unknown_option(name))
        canonical[known] = value
    return canonical


def _unknown_option(name: str) -> str:
    lower = name.lower()
    if lower == "path":
        return "option path is not supported: the sink writes to brokers; set topic instead"
    if lower.startswith(_SECURITY):
        return (
            f"option {name} is not supported, because Spark shows options: set"
            " spark.kafscale.client.securityProtocol, .username and so on in the session"
        )
    near = get_close_matches(lower, _CANONICAL, n=1, cutoff=0.8)
    if near:
        return f"unknown option {name}; did you mean {_CANONICAL[near[0]]}?"
    if lower.startswith("kafka."):
        return f"option {name} is not supported: the sink fixes this setting of its producer"
    return f"unknown option {name}; known: {', '.join(sorted(NAMES))}"


def _parsed(
    values: Mapping[str, str], name: str, parse_value: Callable[[str], _Value], default: _Value
) -> _Value:
    text = values.get(name)
    if text is None:
        return default
    try:
        return parse_value(text.strip())
    except ValueError as error:
        raise InvalidRequestError(f"{name} {error}: {text!r}") from None


def _codec(text: str) -> Codec:
    by_name = {codec.name.lower(): codec for codec in Codec}
    if text.lower() not in by_name:
        raise ValueError(f"must be one of {', '.join(by_name)}")
    return by_name[text.lower()]


def _timeout_ms(text: str) -> int:
    is_number = text.isascii() and text.isdecimal()
    if not (is_number and 1 <= int(text) <= _TIMEOUT_MS_MAX):
        raise ValueError(f"must be a number of milliseconds, from 1 to {_TIMEOUT_MS_MAX}")
    return int(text)


def _prefix(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    if len(text.encode()) > _PREFIX_BYTES_MAX:
        raise ValueError(f"must not have more than {_PREFIX_BYTES_MAX} bytes")
    return text
