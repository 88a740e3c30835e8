"""Broker configs, as DescribeConfigs returns them: all of them read-only.

Invariants: a Kafka config is listed only if the broker has a true value for it; a config without
meaning here is left out. Secrets are never listed. A broker is configured by its settings
(`config`), which appear here under Kafka's names, and under names of Kafscale's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kafscale.config import SETTINGS, Config
from kafscale.config.model import DEFAULT
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS, Effect
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig

_BY_PATH = {setting.path: setting for setting in SETTINGS}


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

assert not any(_BY_PATH[each.path].secret for each in _BROKER_CONFIGS)


def describe(
    config: Config, defaults: TopicDefaults, *, broker_id: int, advertised_listeners: str
) -> list[DescribedConfig]:
    """Every config of the broker, by name.

    The caller passes the id and the listeners, because the settings may leave them open: the id
    may come from the host name, a port of 0 from the system. Listeners are `PLAINTEXT://host:port`.
    """
    rows = [
        *_identity(config, broker_id, advertised_listeners),
        *(_describe_setting(config, each) for each in _BROKER_CONFIGS),
        *_topic_defaults(defaults),
    ]
    return sorted(rows, key=lambda row: row.name)


def _identity(
    config: Config, broker_id: int, advertised_listeners: str
) -> Iterator[DescribedConfig]:
    id_source = _source(config, "broker.id")
    for name in ("broker.id", "node.id"):
        yield _entry(name, str(broker_id), ConfigType.INT, id_source, "The id of this broker.")
    yield _entry(
        "advertised.listeners",
        advertised_listeners,
        ConfigType.LIST,
        ConfigSource.STATIC_BROKER,
        "The addresses that clients connect to.",
    )
    yield _entry(
        "default.replication.factor",
        "1",
        ConfigType.INT,
        ConfigSource.DEFAULT,
        "Always 1: the object store replicates records, brokers do not.",
    )


def _describe_setting(config: Config, described: _BrokerConfig) -> DescribedConfig:
    value = _format(_BY_PATH[described.path].value(config))
    source = _source(config, described.path)
    return _entry(described.name, value, described.type, source, described.documentation)


def _format(value: object) -> str:
    """A value in Kafka's notation."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return ""
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _topic_defaults(defaults: TopicDefaults) -> Iterator[DescribedConfig]:
    """The broker-wide defaults of the topic configs that have an effect."""
    for row in TOPIC_CONFIGS.values():
        if row.effect is Effect.APPLIED:
            static = row.name in defaults.static
            source = ConfigSource.STATIC_BROKER if static else ConfigSource.DEFAULT
            value = defaults.values[row.name]
            yield _entry(row.synonym, value, row.type.type, source, row.documentation)


def _source(config: Config, path: str) -> ConfigSource:
    return ConfigSource.DEFAULT if config.origin(path) == DEFAULT else ConfigSource.STATIC_BROKER


def _entry(
    name: str, value: str, type_: ConfigType, source: ConfigSource, documentation: str
) -> DescribedConfig:
    return DescribedConfig(
        name=name,
        value=value,
        read_only=True,
        is_default=source is ConfigSource.DEFAULT,
        source=source,
        synonyms=[ConfigSynonym(name, value, source)],
        type=type_,
        documentation=documentation,
    )
