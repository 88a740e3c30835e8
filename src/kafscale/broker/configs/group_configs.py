"""Configs of single groups (KIP-848, KIP-932): their rules, and their description.

Invariants: the names, values and errors are those of Kafka 4.1. The group coordinator uses the
configs of consumer groups; those of share and streams groups, which are not supported, are kept and
shown. A config that a group does not set has its value from the broker's settings.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kafscale.broker.configs import changes
from kafscale.broker.group_coordinator.group_registry import check_group_id
from kafscale.config import Config
from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.groups.group import GroupSettings
from kafscale.metadata.topics.config_defs import NOT_USED
from kafscale.metadata.topics.config_types import (
    INT_MAX,
    ConfigSource,
    ConfigType,
    Enum,
    Integer,
    InvalidValueError,
    ValueType,
)
from kafscale.metadata.topics.config_validation import parse_value
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
_SHARE: Final = f"{NOT_USED} Share groups are not supported."
_STREAMS: Final = f"{NOT_USED} Streams groups are not supported."
_DURATION: Final = re.compile(
    r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _OffsetReset:
    """Where a share group without offsets starts."""

    type = ConfigType.STRING

    def parse(self, text: str) -> str:
        value = text.strip()
        if value not in {"earliest", "latest"} and not _DURATION.fullmatch(value):
            raise InvalidValueError(
                value,
                f"Invalid value `{value}` for configuration share.auto.offset.reset. The value must"
                " be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            )
        return value


@dataclass(frozen=True, slots=True)
class _GroupConfig:
    name: str
    type: ValueType
    default: str
    documentation: str
    bounds: tuple[int, int] | None = None
    """The limits that brokers set, inclusive."""
    bound_names: tuple[str, str] = ("", "")
    """Kafka's names of these limits."""


def _bounded(
    name: str, default: int, lowest: int, highest: int, documentation: str, *, low: int = 1
) -> _GroupConfig:
    kind, _, rest = name.partition(".")
    return _GroupConfig(
        name,
        Integer(low, INT_MAX),
        str(default),
        documentation,
        (lowest, highest),
        (f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"),
    )


def _rows(config: Config) -> tuple[_GroupConfig, ...]:
    """All configs of groups, in the order in which Kafka checks them."""
    group = config.group
    return (
        _bounded(
            HEARTBEAT_INTERVAL,
            group.consumer_heartbeat_interval_ms,
            group.consumer_heartbeat_interval_ms_min,
            group.consumer_heartbeat_interval_ms_max,
            "The heartbeat interval of the members of a consumer group.",
        ),
        _bounded(
            SESSION_TIMEOUT,
            group.consumer_session_timeout_ms,
            group.consumer_session_timeout_ms_min,
            group.consumer_session_timeout_ms_max,
            "How long a member of a consumer group may miss heartbeats.",
        ),
        _bounded("share.heartbeat.interval.ms", 5000, 5000, 15_000, _SHARE),
        _bounded("share.session.timeout.ms", 45_000, 45_000, 60_000, _SHARE),
        _bounded("share.record.lock.duration.ms", 30_000, 15_000, 60_000, _SHARE, low=1000),
        _bounded("streams.heartbeat.interval.ms", 5000, 5000, 15_000, _STREAMS),
        _bounded("streams.session.timeout.ms", 45_000, 45_000, 60_000, _STREAMS),
        _GroupConfig(
            "streams.num.standby.replicas",
            Integer(0, INT_MAX),
            "0",
            _STREAMS,
            (0, 2),
            ("", "group.streams.max.standby.replicas"),
        ),
        _GroupConfig("share.auto.offset.reset", _OffsetReset(), "latest", _SHARE),
        _GroupConfig(
            "share.isolation.level",
            Enum(("read_committed", "read_uncommitted")),
            "read_uncommitted",
            _SHARE,
        ),
    )


class GroupRules:
    """What the configs of a group may be."""

    not_a_list = staticmethod(changes.not_a_list)

    def __init__(self, group_id: str, config: Config) -> None:
        self._group_id = group_id
        self._rows = {row.name: row for row in _rows(config)}

    def inherited_list(self, name: str) -> str | None:
        del name  # None of them is a list.
        return None

    def checked(self, configs: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
        if not self._group_id:
            raise InvalidRequestError("Default group resources are not allowed.")
        check_group_id(self._group_id)
        names = sorted(configs.keys() & named)
        if unknown := [name for name in names if name not in self._rows]:
            raise InvalidConfigError(f"Unknown group config name: {unknown[0]}")
        values = {name: parse_value(name, self._rows[name].type, configs[name]) for name in names}
        for row in self._rows.values():
            if row.name in values:
                _check_bounds(row, int(values[row.name]) if row.bounds else 0)
        result = {**configs, **values}
        for kind in ("consumer", "share", "streams"):
            self._check_session(kind, result)
        return result

    def _check_session(self, kind: str, configs: Mapping[str, str]) -> None:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if {session, heartbeat}.isdisjoint(configs):
            return
        values = [int(configs.get(name, self._rows[name].default)) for name in (session, heartbeat)]
        if values[0] <= values[1]:
            raise InvalidConfigError(f"{session} must be greater than {heartbeat}")


def _check_bounds(row: _GroupConfig, value: int) -> None:
    if row.bounds is None:
        return
    lowest, highest = row.bounds
    if value < lowest:
        raise InvalidConfigError(
            f"{row.name} must be greater than or equal to {row.bound_names[0]}"
        )
    if value > highest:
        raise InvalidConfigError(f"{row.name} must be less than or equal to {row.bound_names[1]}")


def overridden(configs: Mapping[str, str], settings: GroupSettings) -> GroupSettings:
    """The settings of a group with these configs.

    If those of the broker have changed so that sessions would expire before the first heartbeat,
    the group has the broker's.
    """
    session_ms = _stored(configs, SESSION_TIMEOUT, settings.consumer_session_timeout_ms)
    heartbeat_ms = _stored(configs, HEARTBEAT_INTERVAL, settings.consumer_heartbeat_interval_ms)
    if not configs or heartbeat_ms >= session_ms:
        return settings
    return msgspec.structs.replace(
        settings,
        consumer_session_timeout_ms=session_ms,
        consumer_heartbeat_interval_ms=heartbeat_ms,
    )


def _stored(configs: Mapping[str, str], name: str, default: int) -> int:
    """The value of a config; the default if another tool has stored something else there."""
    value = configs.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() else default


def describe(configs: Mapping[str, str], config: Config) -> list[DescribedConfig]:
    """Every config of a group, for DescribeConfigs."""
    return [_describe(row, configs.get(row.name)) for row in _rows(config)]


def _describe(row: _GroupConfig, own: str | None) -> DescribedConfig:
    source = ConfigSource.DEFAULT if own is None else ConfigSource.GROUP
    value = row.default if own is None else own
    return DescribedConfig(
        name=row.name,
        value=value,
        read_only=False,
        is_default=own is None,
        source=source,
        synonyms=[ConfigSynonym(row.name, value, source)],
        type=row.type.type,
        documentation=row.documentation,
    )
