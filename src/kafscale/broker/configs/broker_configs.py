"""Broker configs, as DescribeConfigs returns them.

Invariants: a Kafka config is listed only if the broker has a true value for it, or keeps one that
was set; another config without meaning here is left out. Secrets are never listed. A broker is
configured by its settings (`config`), which appear here under Kafka's names, and under names of
Kafscale's own, and by dynamic configs; the others are read-only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafscale.broker.configs import dynamic_configs
from kafscale.broker.configs.dynamic_configs import BY_PATH, KEPT, TOPIC_DEFAULTS, format_value
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.config import Config
from kafscale.config.model import DEFAULT
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.metadata.topics.config_validation import Layer
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig


@dataclass(frozen=True, slots=True)
class _BrokerConfig:
    """A setting under its config name."""

    name: str
    path: str
    type: ConfigType
    documentation: str


_BROKER_CONFIGS = (
    _BrokerConfig(
        "auto.create.topics.enable",
        "topics.autoCreate",
        ConfigType.BOOLEAN,
        "Whether a missing topic is created when a client names it.",
    ),
    _BrokerConfig(
        "delete.topic.enable",
        "broker.allowAdminApis",
        ConfigType.BOOLEAN,
        "Whether clients may create, change and delete topics.",
    ),
    _BrokerConfig(
        "group.consumer.assignors",
        "group.consumerAssignors",
        ConfigType.LIST,
        "The server-side assignors; the first is the default for members that name none.",
    ),
    _BrokerConfig(
        "group.consumer.heartbeat.interval.ms",
        "group.consumerHeartbeatIntervalMs",
        ConfigType.INT,
        "How often members of the consumer protocol send heartbeats.",
    ),
    _BrokerConfig(
        "group.consumer.max.size",
        "group.consumerMaxSize",
        ConfigType.INT,
        "How many members a group of the consumer protocol may have.",
    ),
    _BrokerConfig(
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumerMaxHeartbeatIntervalMs",
        ConfigType.INT,
        "The most that consumer.heartbeat.interval.ms of a single group may be.",
    ),
    _BrokerConfig(
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumerMinHeartbeatIntervalMs",
        ConfigType.INT,
        "The least that consumer.heartbeat.interval.ms of a single group may be.",
    ),
    _BrokerConfig(
        "group.consumer.max.session.timeout.ms",
        "group.consumerMaxSessionTimeoutMs",
        ConfigType.INT,
        "The most that consumer.session.timeout.ms of a single group may be.",
    ),
    _BrokerConfig(
        "group.consumer.min.session.timeout.ms",
        "group.consumerMinSessionTimeoutMs",
        ConfigType.INT,
        "The least that consumer.session.timeout.ms of a single group may be.",
    ),
    _BrokerConfig(
        "group.consumer.migration.policy",
        "group.consumerMigrationPolicy",
        ConfigType.STRING,
        "Whether a group with members may be upgraded or downgraded to the other protocol.",
    ),
    _BrokerConfig(
        "group.consumer.session.timeout.ms",
        "group.consumerSessionTimeoutMs",
        ConfigType.INT,
        "How long a member of the consumer protocol may go without a heartbeat.",
    ),
    _BrokerConfig(
        "group.coordinator.append.linger.ms",
        "group.coordinatorAppendLingerMs",
        ConfigType.INT,
        "How long a group's write waits for others, to be written in one transaction.",
    ),
    _BrokerConfig(
        "group.initial.rebalance.delay.ms",
        "group.initialRebalanceDelayMs",
        ConfigType.INT,
        "How long the first rebalance of an empty group waits for further members.",
    ),
    _BrokerConfig(
        "group.max.session.timeout.ms",
        "group.maxSessionTimeoutMs",
        ConfigType.INT,
        "The longest session timeout that a member may request.",
    ),
    _BrokerConfig(
        "group.max.size",
        "group.maxSize",
        ConfigType.INT,
        "How many members a group of the classic protocol may have.",
    ),
    _BrokerConfig(
        "group.min.session.timeout.ms",
        "group.minSessionTimeoutMs",
        ConfigType.INT,
        "The shortest session timeout that a member may request.",
    ),
    _BrokerConfig(
        "kafscale.cache.bytes",
        "cache.segmentCacheSize",
        ConfigType.LONG,
        "How many bytes of segments are cached in memory.",
    ),
    _BrokerConfig(
        "kafscale.flush.interval.ms",
        "storage.flushIntervalMs",
        ConfigType.LONG,
        "How long the first buffered record may wait before it is flushed.",
    ),
    _BrokerConfig(
        "kafscale.readahead.segments",
        "cache.readAheadSegments",
        ConfigType.INT,
        "How many segments are read ahead of a sequential reader.",
    ),
    _BrokerConfig(
        "kafscale.s3.bucket",
        "s3.bucket",
        ConfigType.STRING,
        "The bucket for records; empty means local files.",
    ),
    _BrokerConfig(
        "kafscale.s3.endpoint",
        "s3.endpoint",
        ConfigType.STRING,
        "The address of the object store; empty means AWS.",
    ),
    _BrokerConfig(
        "kafscale.s3.region", "s3.region", ConfigType.STRING, "The region of the bucket."
    ),
    _BrokerConfig(
        "kafscale.segment.bytes",
        "storage.segmentBytes",
        ConfigType.INT,
        "The size at which a segment is complete.",
    ),
    _BrokerConfig(
        "log.cleaner.backoff.ms",
        "compaction.intervalMs",
        ConfigType.LONG,
        "How long the broker waits until it checks again which logs to compact.",
    ),
    _BrokerConfig(
        "log.cleaner.dedupe.buffer.size",
        "compaction.maxMemoryBytes",
        ConfigType.LONG,
        "The memory for the keys of the log that is compacted.",
    ),
    _BrokerConfig(
        "log.cleaner.enable",
        "compaction.enabled",
        ConfigType.BOOLEAN,
        "Whether the broker compacts topics with cleanup.policy=compact.",
    ),
    _BrokerConfig(
        "log.cleaner.io.max.bytes.per.second",
        "compaction.bytesPerSecond",
        ConfigType.DOUBLE,
        "How much the broker reads and writes for compaction.",
    ),
    _BrokerConfig(
        "max.connections",
        "network.maxConnections",
        ConfigType.INT,
        "The maximum number of client connections.",
    ),
    _BrokerConfig(
        "num.partitions",
        "topics.autoCreatePartitions",
        ConfigType.INT,
        "The number of partitions of a topic that is created without one.",
    ),
    _BrokerConfig(
        "offset.metadata.max.bytes",
        "offsets.metadataMaxBytes",
        ConfigType.INT,
        "The maximum size of the metadata of a committed offset.",
    ),
    _BrokerConfig(
        "offsets.retention.check.interval.ms",
        "offsets.retentionCheckIntervalMs",
        ConfigType.LONG,
        "How often expired offsets are checked for.",
    ),
    _BrokerConfig(
        "offsets.retention.minutes",
        "offsets.retentionMinutes",
        ConfigType.INT,
        "How long offsets are kept after the group has no members that read them.",
    ),
    _BrokerConfig(
        "socket.receive.buffer.bytes",
        "network.socketReceiveBuffer",
        ConfigType.INT,
        "The kernel's receive buffer of a connection.",
    ),
    _BrokerConfig(
        "socket.request.max.bytes", "network.maxRequestSize", ConfigType.INT, "The largest request."
    ),
    _BrokerConfig(
        "socket.send.buffer.bytes",
        "network.socketSendBuffer",
        ConfigType.INT,
        "The kernel's send buffer of a connection.",
    ),
    _BrokerConfig(
        "allow.everyone.if.no.acl.found",
        "authorization.allowEveryoneIfNoAclFound",
        ConfigType.BOOLEAN,
        "Whether every principal may use a resource without ACLs.",
    ),
    _BrokerConfig(
        "connections.max.reauth.ms",
        "sasl.connectionsMaxReauthMs",
        ConfigType.LONG,
        "After how long clients have to reauthenticate; 0 means never.",
    ),
    _BrokerConfig(
        "listener.security.protocol.map",
        "broker.listenerSecurityProtocolMap",
        ConfigType.LIST,
        "The security protocol of each listener.",
    ),
    _BrokerConfig(
        "max.connection.creation.rate",
        "network.maxConnectionCreationRate",
        ConfigType.INT,
        "How many new connections are accepted per second; empty means no limit.",
    ),
    _BrokerConfig(
        "max.connections.per.ip",
        "network.maxConnectionsPerIp",
        ConfigType.INT,
        "The maximum number of connections of one address; empty means no limit.",
    ),
    _BrokerConfig(
        "max.connections.per.ip.overrides",
        "network.maxConnectionsPerIpOverrides",
        ConfigType.STRING,
        "The maximum number of connections of single addresses, as address:count.",
    ),
    _BrokerConfig(
        "sasl.enabled.mechanisms",
        "sasl.enabledMechanisms",
        ConfigType.LIST,
        "The enabled SASL mechanisms.",
    ),
    _BrokerConfig(
        "sasl.server.max.receive.size",
        "sasl.serverMaxReceiveSize",
        ConfigType.INT,
        "The maximum size of a request before authentication.",
    ),
    _BrokerConfig(
        "ssl.client.auth",
        "tls.clientAuth",
        ConfigType.LIST,
        "Whether clients may or must present a certificate.",
    ),
    _BrokerConfig(
        "ssl.principal.mapping.rules",
        "tls.principalMappingRules",
        ConfigType.STRING,
        "The rules that map the distinguished name of a certificate to a principal.",
    ),
)

_BY_NAME = {each.name: each for each in _BROKER_CONFIGS}

assert not any(BY_PATH[each.path].secret for each in _BROKER_CONFIGS)
assert all(_BY_NAME[name].path == path for name, path in dynamic_configs.PATHS.items())


def describe(
    settings: LiveSettings, *, broker_id: int, advertised_listeners: str
) -> list[DescribedConfig]:
    """Every config of the broker, by name.

    The caller passes the id and the listeners, because the settings may leave them open: the id
    may come from the host name, a port of 0 from the system. Listeners are `PLAINTEXT://host:port`.
    """
    static = settings.static
    rows = [
        *_identity(static, broker_id, advertised_listeners),
        *(_describe_setting(static, each, settings.layers) for each in _BROKER_CONFIGS),
        *_topic_defaults(settings),
        *_kept(settings.layers),
    ]
    return sorted(rows, key=lambda row: row.name)


def describe_dynamic(configs: Mapping[str, str], source: ConfigSource) -> list[DescribedConfig]:
    """The dynamic configs that all brokers have."""
    return [
        _entry(name, [(source, value)], _type(name), _documentation(name))
        for name, value in sorted(dynamic_configs.valid(configs).items())
    ]


def _identity(
    config: Config, broker_id: int, advertised_listeners: str
) -> Iterator[DescribedConfig]:
    id_source = _source(config, "broker.id")
    for name in ("broker.id", "node.id"):
        value = (id_source, str(broker_id))
        yield _entry(name, [value], ConfigType.INT, "The id of this broker.")
    yield _entry(
        "advertised.listeners",
        [(ConfigSource.STATIC_BROKER, advertised_listeners)],
        ConfigType.LIST,
        "The addresses that clients connect to.",
    )
    yield _entry(
        "default.replication.factor",
        [(ConfigSource.DEFAULT, "1")],
        ConfigType.INT,
        "Always 1: the object store replicates records, brokers do not.",
    )


def _describe_setting(
    static: Config, described: _BrokerConfig, layers: tuple[Layer, ...]
) -> DescribedConfig:
    setting = BY_PATH[described.path]
    values = _dynamic(described.name, layers)
    if (source := _source(static, described.path)) is not ConfigSource.DEFAULT:
        values.append((source, format_value(setting.value(static))))
        default = setting.default
    else:
        default = setting.value(static)
    values.append((ConfigSource.DEFAULT, format_value(default)))
    return _entry(described.name, values, described.type, described.documentation)


def _topic_defaults(settings: LiveSettings) -> Iterator[DescribedConfig]:
    """The broker-wide defaults of topic configs."""
    for name, row in TOPIC_DEFAULTS.items():
        layers = settings.topic_defaults.layers
        values = [(source, values[row.name]) for source, values in layers if row.name in values]
        yield _entry(name, values, row.type.type, row.full_documentation)


def _kept(layers: tuple[Layer, ...]) -> Iterator[DescribedConfig]:
    for name, kept in KEPT.items():
        values = [*_dynamic(name, layers), (ConfigSource.DEFAULT, kept.default)]
        yield _entry(name, values, kept.type.type, kept.documentation)


def _dynamic(name: str, layers: tuple[Layer, ...]) -> list[tuple[ConfigSource, str]]:
    return [(source, values[name]) for source, values in layers if name in values]


def _type(name: str) -> ConfigType:
    if row := TOPIC_DEFAULTS.get(name):
        return row.type.type
    return KEPT[name].type.type if name in KEPT else _BY_NAME[name].type


def _documentation(name: str) -> str:
    if row := TOPIC_DEFAULTS.get(name):
        return row.full_documentation
    return KEPT[name].documentation if name in KEPT else _BY_NAME[name].documentation


def _source(config: Config, path: str) -> ConfigSource:
    return ConfigSource.DEFAULT if config.origin(path) == DEFAULT else ConfigSource.STATIC_BROKER


def _entry(
    name: str, values: list[tuple[ConfigSource, str]], type_: ConfigType, documentation: str
) -> DescribedConfig:
    """A config with its values in order of precedence."""
    source, value = values[0]
    return DescribedConfig(
        name=name,
        value=value,
        read_only=name not in dynamic_configs.NAMES,
        is_default=source is ConfigSource.DEFAULT,
        source=source,
        synonyms=[ConfigSynonym(name, each, of) for of, each in values],
        type=type_,
        documentation=documentation,
    )
