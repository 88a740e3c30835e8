"""The options of the source: those of Spark's Kafka source, with its rules, and a few of our own.

The laws: names may be written in any case; an option that is unknown, or has no meaning where no
Kafka is asked, is refused by name, with what to write instead; what is parsed here is complete and
consistent, except for what only a look at the log can tell. Whether a query is a batch or a stream
is known later than its options, so each has a say of its own: `batch_bounds`, `stream_start`.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan import offsets
from kafscale.spark.plan.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    Everywhere,
    Named,
    Side,
    Since,
    SinceEach,
)
from kafscale.spark.source import columns
from kafscale.spark.source.columns import Columns
from kafscale.spark.source.location import Location
from kafscale.spark.source.subscription import Subscription
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
"""Every option there is."""

_SPELLED: Final = {name.lower(): name for name in NAMES}
_OF_CONSUMERS: Final = frozenset(
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
    """What a query asks for."""

    subscription: Subscription
    location: Mapping[str, str]
    """The options that say where the log is."""
    columns: Columns
    starting: Bound | None
    ending: Bound | None
    starts_late: bool
    """Whether a time that no record has reached yet is a place to start, the latest offset."""
    fail_on_data_loss: bool
    pushes_filters: bool
    """Whether conditions of a query narrow what is read; see `source`."""
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
        """Where a batch begins and ends: not at the latest offset, and not at the earliest."""
        starting = self.starting or Everywhere(EARLIEST)
        ending = self.ending or Everywhere(LATEST)
        _refuse_end("startingOffsets", starting, LATEST, "latest (-1): a batch would be empty")
        _refuse_end("endingOffsets", ending, EARLIEST, "earliest (-2): a batch would be empty")
        return starting, ending

    def stream_start(self) -> Bound:
        """Where a stream begins; it has no end."""
        if self.ending is not None:
            raise InvalidRequestError(
                "endingOffsets, endingOffsetsByTimestamp and endingTimestamp are for batches; "
                "a stream has no end"
            )
        return self.starting or Everywhere(LATEST)


def parse(options: Mapping[str, str]) -> Options:
    """The options of a query, however their names are written."""
    given = _Given(_spelled(options))
    asked = given.text("columns")
    if asked is not None:
        wanted = columns.parse(asked)
    elif given.flag("includeHeaders", default=False):
        wanted = columns.ALL_WITH_HEADERS
    else:
        wanted = columns.ALL
    least, most = given.count("minOffsetsPerTrigger"), given.count("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise InvalidRequestError(
            f"minOffsetsPerTrigger is {least}, which is more than maxOffsetsPerTrigger, {most}"
        )
    strategy = (given.text("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in {"error", "latest"}:
        raise InvalidRequestError(
            f"startingOffsetsByTimestampStrategy is error or latest, not {strategy!r}"
        )
    return Options(
        subscription=_subscription(given),
        location={name: given.values[name] for name in Location.OPTIONS & given.values.keys()},
        columns=wanted,
        starting=_bound(given, "starting"),
        ending=_bound(given, "ending"),
        starts_late=strategy == "latest",
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        pushes_filters=given.flag("pushFilters", default=False),
        task_bytes=given.parsed("taskBytes", _task_bytes) or _TASK_BYTES,
        tasks_min=given.count("minPartitions") or 0,
        records_per_task_max=given.count("maxRecordsPerPartition") or 0,
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_ms_max=given.parsed("maxTriggerDelay", _delay_ms) or _TRIGGER_DELAY_MS_MAX,
    )


# --- names ----------------------------------------------------------------------------------------


def _spelled(options: Mapping[str, str]) -> dict[str, str]:
    """The options by the names that we know them by."""
    spelled = {}
    for name, value in options.items():
        known = _SPELLED.get(name.lower())
        if known is None:
            raise InvalidRequestError(_refusal(name))
        spelled[known] = value
    return spelled


def _refusal(name: str) -> str:
    if name.lower().startswith("kafka."):
        return (
            f"option {name} has no meaning here: records are read from where they are kept, no "
            "broker is asked; give path instead, s3://bucket/namespace or a data directory"
        )
    if name.lower() in _OF_CONSUMERS:
        return f"option {name} has no meaning here, as there is no consumer; leave it out"
    near = get_close_matches(name.lower(), _SPELLED, n=1)
    hint = f"is it {_SPELLED[near[0]]}?" if near else f"there are {', '.join(sorted(NAMES))}"
    return f"unknown option {name}; {hint}"


# --- values ---------------------------------------------------------------------------------------


class _Given(msgspec.Struct, frozen=True):
    """The options that are there."""

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
        found = self.parsed(name, _flag)
        return default if found is None else found


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("is a number from 1 on")
    return int(text)


def _flag(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("is true or false")
    return text.strip().lower() == "true"


def _task_bytes(text: str) -> int:
    found = parse_size(text)
    if found < 1:
        raise ValueError("is a size from 1 byte on")
    return found


def _timestamp_ms(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("is a time in milliseconds since 1970")
    return int(text)


def _delay_ms(text: str) -> int:
    found = _DELAY.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError("is a time like 90s, 15m or 1h")
    return int(int(found[1]) * _DELAY_UNITS_MS[found[2] or "ms"])


def _subscription(given: _Given) -> Subscription:
    ways = {
        "subscribe": Subscription.to_topics,
        "subscribePattern": Subscription.to_pattern,
        "assign": Subscription.to_partitions,
    }
    chosen = [name for name in ways if name in given.values]
    if len(chosen) != 1:
        raise InvalidRequestError(
            f"exactly one of {', '.join(ways)} says what is read, "
            f"not {' and '.join(chosen) or 'none'}"
        )
    return ways[chosen[0]](given.values[chosen[0]])


def _bound(given: _Given, side: str) -> Bound | None:
    """What the options of one side say; a time for all wins over times, and those over offsets."""
    timestamp_ms = given.parsed(f"{side}Timestamp", _timestamp_ms)
    if timestamp_ms is not None:
        return Since(timestamp_ms)
    by_timestamp = f"{side}OffsetsByTimestamp"
    if by_timestamp in given.values:
        times = offsets.parse(by_timestamp, given.values[by_timestamp])
        _refuse_below(by_timestamp, times, 0)
        return SinceEach(times)
    option = f"{side}Offsets"
    text = given.text(option)
    if text is None:
        return None
    word = text.strip().lower()
    if word in {"earliest", "latest"}:
        return Everywhere(EARLIEST if word == "earliest" else LATEST)
    if not word.startswith("{"):
        raise InvalidRequestError(f"{option} is earliest, latest or JSON, not {text!r}")
    named = offsets.parse(option, text)
    _refuse_below(option, named, EARLIEST)
    return Named(named)


def _refuse_below(option: str, numbers: Mapping[tuple[str, int], int], least: int) -> None:
    for place, number in numbers.items():
        if number < least:
            raise InvalidRequestError(
                f"{option}: {number} for {offsets.show([place])} is below {least}"
            )


def _refuse_end(option: str, bound: Bound, refused: int, why: str) -> None:
    match bound:
        case Everywhere(offset) if offset == refused:
            raise InvalidRequestError(f"{option} cannot be {why}")
        case Named(named) if refused in named.values():
            places = [place for place, offset in named.items() if offset == refused]
            raise InvalidRequestError(f"{option} of {offsets.show(places)} cannot be {why}")
