"""The broker configs that can change without a restart, and the rules for their values.

Names are Kafka's. A config is one of three:

* The default of a topic config, for all topics that do not set it.
* A setting of the broker that the code reads at each use, or that `LiveSettings` applies.
* A kept config: one that Kafka can change without a restart and that has no meaning here. It is
  stored and shown, so that tools which set it work.

All other configs are read-only: of the broker's settings, and with Kafka's error.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kafscale.config import SETTINGS, Config, Setting
from kafscale.config.validation import validate
from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics.config_defs import NOT_USED, TOPIC_CONFIGS, TopicConfig
from kafscale.metadata.topics.config_types import INT_MAX, ConfigType, Integer
from kafscale.metadata.topics.config_validation import parse_value

BY_PATH: Final = {setting.path: setting for setting in SETTINGS}

TOPIC_DEFAULTS: Final[Mapping[str, TopicConfig]] = {
    row.synonym: row for row in TOPIC_CONFIGS.values() if row.synonym
}
"""Topic configs by the name of their broker-wide default."""

PATHS: Final = {
    "auto.create.topics.enable": "topics.autoCreate",
    "group.consumer.assignors": "group.consumerAssignors",
    "group.consumer.heartbeat.interval.ms": "group.consumerHeartbeatIntervalMs",
    "group.consumer.max.size": "group.consumerMaxSize",
    "group.consumer.migration.policy": "group.consumerMigrationPolicy",
    "group.consumer.session.timeout.ms": "group.consumerSessionTimeoutMs",
    "group.initial.rebalance.delay.ms": "group.initialRebalanceDelayMs",
    "group.max.session.timeout.ms": "group.maxSessionTimeoutMs",
    "group.max.size": "group.maxSize",
    "group.min.session.timeout.ms": "group.minSessionTimeoutMs",
    "max.connection.creation.rate": "network.maxConnectionCreationRate",
    "max.connections": "network.maxConnections",
    "max.connections.per.ip": "network.maxConnectionsPerIp",
    "max.connections.per.ip.overrides": "network.maxConnectionsPerIpOverrides",
    "num.partitions": "topics.autoCreatePartitions",
    "offset.metadata.max.bytes": "offsets.metadataMaxBytes",
    "offsets.retention.check.interval.ms": "offsets.retentionCheckIntervalMs",
    "offsets.retention.minutes": "offsets.retentionMinutes",
    "producer.id.expiration.ms": "storage.producerIdExpirationMs",
    "transaction.partition.verification.enable": "transaction.partitionVerification",
}
"""The settings that can change, by Kafka's name."""


@dataclass(frozen=True, slots=True)
class KeptConfig:
    """A config that is stored and shown, and not used."""

    type: Integer
    default: str
    documentation: str


_NO_REPLICATION: Final = f"{NOT_USED} Brokers do not replicate to each other."
_NO_THREADS: Final = f"{NOT_USED} A broker serves requests in one thread."
_RATE: Final = KeptConfig(Integer(0), str(2**63 - 1), _NO_REPLICATION)

KEPT: Final[Mapping[str, KeptConfig]] = {
    "background.threads": KeptConfig(Integer(1, INT_MAX), "10", _NO_THREADS),
    "follower.replication.throttled.rate": _RATE,
    "leader.replication.throttled.rate": _RATE,
    "num.io.threads": KeptConfig(Integer(1, INT_MAX), "8", _NO_THREADS),
    "num.network.threads": KeptConfig(Integer(1, INT_MAX), "3", _NO_THREADS),
    "num.recovery.threads.per.data.dir": KeptConfig(Integer(1, INT_MAX), "2", _NO_THREADS),
    "num.replica.fetchers": KeptConfig(Integer(1, INT_MAX), "1", _NO_REPLICATION),
    "replica.alter.log.dirs.io.max.bytes.per.second": _RATE,
}

NAMES: Final = frozenset({*TOPIC_DEFAULTS, *PATHS, *KEPT})

assert len(NAMES) == len(TOPIC_DEFAULTS) + len(PATHS) + len(KEPT)
assert all("." not in BY_PATH[path].attribute.partition(".")[2] for path in PATHS.values())

_NUMBER: Final = Integer(-INT_MAX - 1, INT_MAX)
"""The number of a setting, whose own type checks its bounds."""


def parse(name: str, text: str) -> str:
    """A value as it is stored; raises `InvalidConfigError`."""
    if row := TOPIC_DEFAULTS.get(name):
        return parse_value(name, row.type, text)
    if kept := KEPT.get(name):
        return parse_value(name, kept.type, text)
    return format_value(_read(name, BY_PATH[PATHS[name]], text))


def _read(name: str, setting: Setting, text: str) -> object:
    """A value of a setting, without the units that the configuration file allows."""
    is_number = isinstance(setting.default, int | None) and not isinstance(setting.default, bool)
    if is_number:
        text = parse_value(name, _NUMBER, text)
    try:
        return setting.read(text.strip())
    except ValueError as error:
        raise InvalidConfigError(
            f"Invalid value {text} for configuration {name}: it {error}; expected"
            f" {setting.type.takes}"
        ) from None


def overlaid(static: Config, configs: Mapping[str, str]) -> Config:
    """The settings with the values of dynamic configs, which are valid individually."""
    values = {}
    for name in configs.keys() & PATHS.keys():
        setting = BY_PATH[PATHS[name]]
        values[setting.attribute] = _read(name, setting, configs[name])
    return static.with_values(values)


def contradictions(static: Config, configs: Mapping[str, str]) -> list[str]:
    """What is wrong with settings in combination, because of dynamic configs."""
    before = validate(static)
    return [each for each in validate(overlaid(static, configs)) if each not in before]


class BrokerRules:
    """What the dynamic configs of a broker, or of all brokers, may be.

    The errors are INVALID_REQUEST, as in Kafka (KAFKA-13609).
    """

    def __init__(self, static: Config) -> None:
        self._static = static

    def inherited_list(self, name: str) -> str | None:
        if row := TOPIC_DEFAULTS.get(name):
            return row.default if row.type.type is ConfigType.LIST else None
        value = BY_PATH[PATHS[name]].value(self._static) if name in PATHS else None
        return ",".join(value) if isinstance(value, tuple) else None

    def not_a_list(self, name: str, operation: str) -> InvalidConfigError:
        return InvalidConfigError(
            f"Config value {operation.lower()} is not allowed for config key: {name}"
        )

    def checked(self, configs: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
        names = sorted(configs.keys() & named)
        if static := [name for name in names if name not in NAMES]:
            raise InvalidRequestError(
                f"Cannot update these configs dynamically: Set({', '.join(static)})"
            )
        try:
            values = {name: parse(name, configs[name]) for name in names}
        except InvalidConfigError as error:
            raise InvalidRequestError(str(error)) from None
        result = {**configs, **values}
        if problems := contradictions(self._static, valid(result)):
            raise InvalidRequestError("; ".join(problems))
        return result


def valid(configs: Mapping[str, str]) -> dict[str, str]:
    """Those of some stored configs that this version can apply."""
    result = {}
    for name in configs.keys() & NAMES:
        try:
            result[name] = parse(name, configs[name])
        except InvalidConfigError:
            continue
    return result


def format_value(value: object) -> str:
    """A value in Kafka's notation.

    >>> format_value(True), format_value(None), format_value(("a", "b"))
    ('true', '', 'a,b')
    """
    match value:
        case bool():
            return str(value).lower()
        case None:
            return ""
        case tuple():
            return ",".join(value)
        case _:
            return str(value)
