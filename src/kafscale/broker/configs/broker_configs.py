"""The configs of a broker, as DescribeConfigs shows them: all of them read-only.

The law: a row stands here only where we have a true value for it; a setting of Kafka's that means
nothing to us is left out, rather than shown with a value that we do not keep. Secrets have no row.
A broker is configured by its settings (`config`), which this shows under the names that Kafka's
tools look for, and under those of Kafscale.
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
class _Shown:
    """A setting of ours under a name for clients."""

    name: str
    path: str
    type: ConfigType
    documentation: str


_SHOWN = (
    _Shown(
        "auto.create.topics.enable",
        "topics.autoCreate",
        ConfigType.BOOLEAN,
        "Whether a topic is created when a client first names it.",
    ),
    _Shown(
        "delete.topic.enable",
        "broker.allowAdminApis",
        ConfigType.BOOLEAN,
        "Whether clients may create, change and delete topics.",
    ),
    _Shown(
        "group.consumer.assignors",
        "group.consumerAssignors",
        ConfigType.LIST,
        "Who may assign partitions to members; the first does where members ask for none.",
    ),
    _Shown(
        "group.consumer.heartbeat.interval.ms",
        "group.consumerHeartbeatIntervalMs",
        ConfigType.INT,
        "How often members of the consumer protocol show that they are alive.",
    ),
    _Shown(
        "group.consumer.max.size",
        "group.consumerMaxSize",
        ConfigType.INT,
        "How many members a group of the consumer protocol may have.",
    ),
    _Shown(
        "group.consumer.migration.policy",
        "group.consumerMigrationPolicy",
        ConfigType.STRING,
        "Which way a group may change its protocol while it has members.",
    ),
    _Shown(
        "group.consumer.session.timeout.ms",
        "group.consumerSessionTimeoutMs",
        ConfigType.INT,
        "How long a member of the consumer protocol may be silent.",
    ),
    _Shown(
        "group.coordinator.append.linger.ms",
        "group.coordinatorAppendLingerMs",
        ConfigType.INT,
        "How long a change of a group waits for others, to be written together with them.",
    ),
    _Shown(
        "group.initial.rebalance.delay.ms",
        "group.initialRebalanceDelayMs",
        ConfigType.INT,
        "How long the first rebalance of an empty group waits for further members.",
    ),
    _Shown(
        "group.max.session.timeout.ms",
        "group.maxSessionTimeoutMs",
        ConfigType.INT,
        "The longest session that a member may ask for.",
    ),
    _Shown(
        "group.max.size",
        "group.maxSize",
        ConfigType.INT,
        "How many members a group of the classic protocol may have.",
    ),
    _Shown(
        "group.min.session.timeout.ms",
        "group.minSessionTimeoutMs",
        ConfigType.INT,
        "The shortest session that a member may ask for.",
    ),
    _Shown(
        "kafscale.cache.bytes",
        "cache.segmentCacheSize",
        ConfigType.LONG,
        "How many bytes of segments are kept in memory.",
    ),
    _Shown(
        "kafscale.flush.interval.ms",
        "storage.flushIntervalMs",
        ConfigType.LONG,
        "How long the first waiting record may wait before it is written out.",
    ),
    _Shown(
        "kafscale.readahead.segments",
        "cache.readAheadSegments",
        ConfigType.INT,
        "How many of the following segments are fetched while a reader moves forward.",
    ),
    _Shown(
        "kafscale.s3.bucket",
        "s3.bucket",
        ConfigType.STRING,
        "The bucket that records are kept in; empty keeps them in files.",
    ),
    _Shown(
        "kafscale.s3.endpoint",
        "s3.endpoint",
        ConfigType.STRING,
        "The address of the object store; empty is that of AWS.",
    ),
    _Shown("kafscale.s3.region", "s3.region", ConfigType.STRING, "The region of the bucket."),
    _Shown(
        "kafscale.segment.bytes",
        "storage.segmentBytes",
        ConfigType.INT,
        "The size at which a segment is complete.",
    ),
    _Shown(
        "max.connections",
        "network.maxConnections",
        ConfigType.INT,
        "The most client connections at once.",
    ),
    _Shown(
        "num.partitions",
        "topics.autoCreatePartitions",
        ConfigType.INT,
        "How many partitions a topic gets that is created without a number.",
    ),
    _Shown(
        "offset.metadata.max.bytes",
        "offsets.metadataMaxBytes",
        ConfigType.INT,
        "How much text a consumer may keep beside an offset.",
    ),
    _Shown(
        "offsets.retention.check.interval.ms",
        "offsets.retentionCheckIntervalMs",
        ConfigType.LONG,
        "How often offsets that may be forgotten are looked for.",
    ),
    _Shown(
        "offsets.retention.minutes",
        "offsets.retentionMinutes",
        ConfigType.INT,
        "How long offsets are kept once nobody in the group reads them.",
    ),
    _Shown(
        "socket.receive.buffer.bytes",
        "network.socketReceiveBuffer",
        ConfigType.INT,
        "The kernel's receive buffer of a connection.",
    ),
    _Shown(
        "socket.request.max.bytes", "network.maxRequestSize", ConfigType.INT, "The largest request."
    ),
    _Shown(
        "socket.send.buffer.bytes",
        "network.socketSendBuffer",
        ConfigType.INT,
        "The kernel's send buffer of a connection.",
    ),
    _Shown(
        "allow.everyone.if.no.acl.found",
        "authorization.allowEveryoneIfNoAclFound",
        ConfigType.BOOLEAN,
        "Whether anybody may use what no rule speaks of.",
    ),
    _Shown(
        "connections.max.reauth.ms",
        "sasl.connectionsMaxReauthMs",
        ConfigType.LONG,
        "After how long clients have to log in again; 0 is never.",
    ),
    _Shown(
        "listener.security.protocol.map",
        "broker.listenerSecurityProtocolMap",
        ConfigType.LIST,
        "How each of the listeners is served.",
    ),
    _Shown(
        "max.connection.creation.rate",
        "network.maxConnectionCreationRate",
        ConfigType.INT,
        "How many new connections are taken in a second; empty takes all.",
    ),
    _Shown(
        "max.connections.per.ip",
        "network.maxConnectionsPerIp",
        ConfigType.INT,
        "The most connections from one address; empty is any number.",
    ),
    _Shown(
        "sasl.enabled.mechanisms",
        "sasl.enabledMechanisms",
        ConfigType.LIST,
        "The ways to log in that are offered.",
    ),
    _Shown(
        "sasl.server.max.receive.size",
        "sasl.serverMaxReceiveSize",
        ConfigType.INT,
        "The largest request of somebody who has not logged in.",
    ),
    _Shown(
        "ssl.client.auth",
        "tls.clientAuth",
        ConfigType.LIST,
        "Whether clients are asked for a certificate.",
    ),
    _Shown(
        "ssl.principal.mapping.rules",
        "tls.principalMappingRules",
        ConfigType.STRING,
        "How the name in a certificate becomes a principal.",
    ),
)

assert not any(_BY_PATH[shown.path].secret for shown in _SHOWN)


def describe(
    config: Config, defaults: TopicDefaults, *, broker_id: int, advertised_listeners: str
) -> list[DescribedConfig]:
    """Every config of the broker, by name.

    Its id and its listeners are handed in, because they may have been found out at the start: the
    id from the host name, a port of 0 from the system. Listeners read `PLAINTEXT://host:port`.
    """
    rows = [
        *_identity(config, broker_id, advertised_listeners),
        *(_of_setting(config, shown) for shown in _SHOWN),
        *_of_topics(defaults),
    ]
    return sorted(rows, key=lambda row: row.name)


def _identity(
    config: Config, broker_id: int, advertised_listeners: str
) -> Iterator[DescribedConfig]:
    id_source = _source(config, "broker.id")
    for name in ("broker.id", "node.id"):
        yield _entry(
            name,
            str(broker_id),
            ConfigType.INT,
            id_source,
            "The number that clients and other brokers know this broker by.",
        )
    yield _entry(
        "advertised.listeners",
        advertised_listeners,
        ConfigType.LIST,
        ConfigSource.STATIC_BROKER,
        "Where clients are told to connect to.",
    )
    yield _entry(
        "default.replication.factor",
        "1",
        ConfigType.INT,
        ConfigSource.DEFAULT,
        "One: the store replicates records, brokers do not.",
    )


def _of_setting(config: Config, shown: _Shown) -> DescribedConfig:
    value = _text(_BY_PATH[shown.path].value(config))
    source = _source(config, shown.path)
    return _entry(shown.name, value, shown.type, source, shown.documentation)


def _text(value: object) -> str:
    """A value as Kafka writes it."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return ""
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _of_topics(defaults: TopicDefaults) -> Iterator[DescribedConfig]:
    """What holds for topics that do not say otherwise, where topics can say it at all."""
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
