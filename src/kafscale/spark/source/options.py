"""The options of the data source: those of Spark's Kafka source, with its rules, and our own.

Invariants: option names are case-insensitive; an option that is unknown, or that only makes sense
for a Kafka consumer, is rejected by name, with what to use instead; parsed options are complete and
consistent, except for checks that need the offset map. Whether a query is a batch or a stream is
known only after parsing, so each has its own check: `batch_bounds` and `stream_start`.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import Columns
from kafscale.spark.plan import offset_bounds
from kafscale.spark.plan.offset_bounds import (
    EARLIEST,
    LATEST,
    Bound,
    GlobalOffset,
    GlobalTimestamp,
    Side,
    SpecificOffsets,
    SpecificTimestamps,
)
from kafscale.spark.read.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.text.topic_partition import TopicPartition
from kafscale.text.units import MIB, parse_size

NAMES: Final = frozenset(
    {
        "assign",
        "subscribe",
        "subscribePattern",
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "startingTimestamp",
        "startingOffsetsByTimestampStrategy",
        "endingOffsets",
        "endingOffsetsByTimestamp",
        "endingTimestamp",
        "failOnDataLoss",
        "includeHeaders",
        "isolationLevel",
        "minPartitions",
        "maxRecordsPerPartition",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "columns",
        "pushFilters",
        "taskBytes",
    }
    | Location.OPTIONS
)
"""All options."""

READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS: Final = (READ_COMMITTED, "read_uncommitted")

_CANONICAL: Final = {name.lower(): name for name in NAMES} | {
    "kafka.isolation.level": "isolationLevel"
}
"""Names by their lower case; one option of Kafka's consumers has a meaning here, too."""

_CONSUMER_OPTIONS: Final = frozenset(
    {
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
    }
)
_TASK_BYTES: Final = 128 * MIB
_TRIGGER_DELAY_MS_MAX: Final = 15 * 60_000
_DELAY: Final = re.compile(r"(\d{1,15})\s*(us|ms|s|m|min|h|d)?", re.ASCII)
_DELAY_UNITS_MS: Final = {
    "ms": 1.0,
    "us": 0.001,
    "s": 1e3,
    "m": 60e3,
    "min": 60e3,
    "h": 3600e3,
    "d": 86400e3,
}

_Value = TypeVar("_Value")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed options of a query."""

    subscription: Subscription
    location: Mapping[str, str]
    """The options of the location, for `SessionDefaults.resolve_location`."""
    columns: Columns
    starting: Bound | None
    ending: Bound | None
    starts_late: bool
    """Whether a starting timestamp after the last record means the latest offset."""
    fail_on_data_loss: bool
    is_committed: bool
    """Whether records of open and of aborted transactions are left out."""
    pushes_filters: bool
    """Whether filters are pushed down; see `data_source`."""
    task_bytes: int
    tasks_min: int
    records_per_task_max: int
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_ms_max: int

    @property
    def starting_side(self) -> Side:
        return Side("starting", needs_record=not self.starts_late, clips=not self.fail_on_data_loss)

    @property
    def ending_side(self) -> Side:
        return Side("ending", needs_record=False, clips=not self.fail_on_data_loss)

    def batch_bounds(self) -> tuple[Bound, Bound]:
        """Return the bounds of a batch, which cannot start at latest or end at earliest."""
        starting = self.starting or GlobalOffset(EARLIEST)
        ending = self.ending or GlobalOffset(LATEST)
        _reject_offset("startingOffsets", starting, LATEST, "latest (-1): the batch would be empty")
        _reject_offset("endingOffsets", ending, EARLIEST, "earliest (-2): the batch would be empty")
        return starting, ending

    def stream_start(self) -> Bound:
        """Return where a stream starts."""
        if self.ending is not None:
            raise InvalidRequestError(
                "endingOffsets, endingOffsetsByTimestamp and endingTimestamp are not supported for "
                "streams, which have no end"
            )
        return self.starting or GlobalOffset(LATEST)


def parse(options: Mapping[str, str]) -> Options:
    """Parse the options of a query."""
    raw = _RawOptions(_canonical(options))
    names = raw.text("columns")
    if names is not None:
        selected = columns.parse(names)
    elif raw.flag("includeHeaders", default=False):
        selected = columns.ALL_WITH_HEADERS
    else:
        selected = columns.ALL
    least, most = raw.count("minOffsetsPerTrigger"), raw.count("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise InvalidRequestError(
            f"minOffsetsPerTrigger ({least}) is greater than maxOffsetsPerTrigger ({most})"
        )
    isolation = (raw.text("isolationLevel") or READ_COMMITTED).strip().lower()
    if isolation not in ISOLATION_LEVELS:
        raise InvalidRequestError(
            f"isolationLevel must be {' or '.join(ISOLATION_LEVELS)}, not {isolation!r}"
        )
    strategy = (raw.text("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in {"error", "latest"}:
        raise InvalidRequestError(
            f"startingOffsetsByTimestampStrategy must be error or latest, not {strategy!r}"
        )
    return Options(
        subscription=_subscription(raw),
        location={name: raw.values[name] for name in Location.OPTIONS & raw.values.keys()},
        columns=selected,
        starting=_bound(raw, "starting"),
        ending=_bound(raw, "ending"),
        starts_late=strategy == "latest",
        fail_on_data_loss=raw.flag("failOnDataLoss", default=True),
        is_committed=isolation == READ_COMMITTED,
        pushes_filters=raw.flag("pushFilters", default=False),
        task_bytes=raw.parsed("taskBytes", _task_bytes) or _TASK_BYTES,
        tasks_min=raw.count("minPartitions") or 0,
        records_per_task_max=raw.count("maxRecordsPerPartition") or 0,
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_ms_max=raw.parsed("maxTriggerDelay", _delay_ms) or _TRIGGER_DELAY_MS_MAX,
    )


# --- names ----------------------------------------------------------------------------------------


def _canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options by their canonical names."""
    canonical: dict[str, str] = {}
    given: dict[str, str] = {}
    for name, value in options.items():
        known = _CANONICAL.get(name.lower())
        if known is None:
            raise InvalidRequestError(_unknown_option(name))
        first = given.setdefault(known, name)
        if _normal(canonical.setdefault(known, value)) != _normal(value):
            raise InvalidRequestError(
                f"{first} and {name} are the same option, with different values: set one of them"
            )
    return canonical


def _normal(value: str) -> str:
    return value.strip().lower()


def _unknown_option(name: str) -> str:
    if name.lower().startswith("kafka."):
        return (
            f"option {name} is not supported: records are read from the bucket, not from a broker; "
            "set path to s3://bucket/namespace or to a data directory instead"
        )
    if name.lower() in _CONSUMER_OPTIONS:
        return f"option {name} is not supported, because there is no consumer; remove it"
    near = get_close_matches(name.lower(), _CANONICAL, n=1)
    hint = f"did you mean {_CANONICAL[near[0]]}?" if near else f"known: {', '.join(sorted(NAMES))}"
    return f"unknown option {name}; {hint}"


# --- values ---------------------------------------------------------------------------------------


class _RawOptions(msgspec.Struct, frozen=True):
    """The given options, by canonical name."""

    values: Mapping[str, str]

    def text(self, name: str) -> str | None:
        return self.values.get(name)

    def parsed(self, name: str, parse_value: Callable[[str], _Value]) -> _Value | None:
        value = self.values.get(name)
        if value is None:
            return None
        try:
            return parse_value(value)
        except ValueError as error:
            raise InvalidRequestError(f"{name} {error}: {value!r}") from None

    def count(self, name: str) -> int | None:
        return self.parsed(name, _count)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.parsed(name, _flag)
        return default if value is None else value


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("must be an integer of at least 1")
    return int(text)


def _flag(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


def _task_bytes(text: str) -> int:
    size_bytes = parse_size(text)
    if size_bytes < 1:
        raise ValueError("must be a size of at least 1 byte")
    return size_bytes


def _timestamp_ms(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("must be a timestamp in milliseconds since 1970")
    return int(text)


def _delay_ms(text: str) -> int:
    match = _DELAY.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("must be a duration like 90s, 15m or 1h")
    return int(int(match[1]) * _DELAY_UNITS_MS[match[2] or "ms"])


def _subscription(raw: _RawOptions) -> Subscription:
    constructors = {
        "subscribe": Subscription.to_topics,
        "subscribePattern": Subscription.to_pattern,
        "assign": Subscription.to_partitions,
    }
    chosen = [name for name in constructors if name in raw.values]
    if len(chosen) != 1:
        raise InvalidRequestError(
            f"set exactly one of {', '.join(constructors)}, not {' and '.join(chosen) or 'none'}"
        )
    return constructors[chosen[0]](raw.values[chosen[0]])


def _bound(raw: _RawOptions, side: str) -> Bound | None:
    """Parse the bound of one side: a global timestamp precedes timestamps, and those offsets."""
    timestamp_ms = raw.parsed(f"{side}Timestamp", _timestamp_ms)
    if timestamp_ms is not None:
        return GlobalTimestamp(timestamp_ms)
    by_timestamp = f"{side}OffsetsByTimestamp"
    if by_timestamp in raw.values:
        times = offset_bounds.parse(by_timestamp, raw.values[by_timestamp])
        _reject_below(by_timestamp, times, 0)
        return SpecificTimestamps(times)
    option = f"{side}Offsets"
    text = raw.text(option)
    if text is None:
        return None
    word = text.strip().lower()
    if word in {"earliest", "latest"}:
        return GlobalOffset(EARLIEST if word == "earliest" else LATEST)
    if not word.startswith("{"):
        raise InvalidRequestError(f"{option} must be earliest, latest or JSON, not {text!r}")
    named = offset_bounds.parse(option, text)
    _reject_below(option, named, EARLIEST)
    return SpecificOffsets(named)


def _reject_below(option: str, numbers: Mapping[TopicPartition, int], least: int) -> None:
    for topic_partition, number in numbers.items():
        if number < least:
            name = offset_bounds.format_partitions([topic_partition])
            raise InvalidRequestError(f"{option}: {number} for {name} is below {least}")


def _reject_offset(option: str, bound: Bound, rejected: int, reason: str) -> None:
    match bound:
        case GlobalOffset(offset) if offset == rejected:
            raise InvalidRequestError(f"{option} cannot be {reason}")
        case SpecificOffsets(named) if rejected in named.values():
            partitions = [key for key, offset in named.items() if offset == rejected]
            names = offset_bounds.format_partitions(partitions)
            raise InvalidRequestError(f"{option} of {names} cannot be {reason}")
