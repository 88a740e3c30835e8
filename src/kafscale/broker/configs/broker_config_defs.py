"""The broker configs that stand for settings: names, settings and documentation.

Names are Kafka's where Kafka has the config, else they start with `kafscale`.
"""

from dataclasses import dataclass
from typing import Final

from kafscale.broker.configs.dynamic_configs import BY_PATH, PATHS
from kafscale.metadata.topics.config_types import ConfigType


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A setting under its config name."""

    name: str
    path: str
    type: ConfigType
    documentation: str


BROKER_CONFIGS: Final = (
    BrokerConfig(
        "auto.create.topics.enable",
        "topics.autoCreate",
        ConfigType.BOOLEAN,
        "Whether a missing topic is created when a client names it.",
    ),
    BrokerConfig(
        "delete.topic.enable",
        "broker.allowAdminApis",
        ConfigType.BOOLEAN,
        "Whether clients may create, change and delete topics.",
    ),
    BrokerConfig(
        "group.consumer.assignors",
        "group.consumerAssignors",
        ConfigType.LIST,
        "The server-side assignors; the first is the default for members that name none.",
    ),
    BrokerConfig(
        "group.consumer.heartbeat.interval.ms",
        "group.consumerHeartbeatIntervalMs",
        ConfigType.INT,
        "How often members of the consumer protocol send heartbeats.",
    ),
    BrokerConfig(
        "group.consumer.max.size",
        "group.consumerMaxSize",
        ConfigType.INT,
        "How many members a group of the consumer protocol may have.",
    ),
    BrokerConfig(
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumerMaxHeartbeatIntervalMs",
        ConfigType.INT,
        "The most that consumer.heartbeat.interval.ms of a single group may be.",
    ),
    BrokerConfig(
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumerMinHeartbeatIntervalMs",
        ConfigType.INT,
        "The least that consumer.heartbeat.interval.ms of a single group may be.",
    ),
    BrokerConfig(
        "group.consumer.max.session.timeout.ms",
        "group.consumerMaxSessionTimeoutMs",
        ConfigType.INT,
        "The most that consumer.session.timeout.ms of a single group may be.",
    ),
    BrokerConfig(
        "group.consumer.min.session.timeout.ms",
        "group.consumerMinSessionTimeoutMs",
        ConfigType.INT,
        "The least that consumer.session.timeout.ms of a single group may be.",
    ),
    BrokerConfig(
        "group.consumer.migration.policy",
        "group.consumerMigrationPolicy",
        ConfigType.STRING,
        "Whether a group with members may be upgraded or downgraded to the other protocol.",
    ),
    BrokerConfig(
        "group.consumer.session.timeout.ms",
        "group.consumerSessionTimeoutMs",
        ConfigType.INT,
        "How long a member of the consumer protocol may go without a heartbeat.",
    ),
    BrokerConfig(
        "group.coordinator.append.linger.ms",
        "group.coordinatorAppendLingerMs",
        ConfigType.INT,
        "How long a group's write waits for others, to be written in one transaction.",
    ),
    BrokerConfig(
        "group.initial.rebalance.delay.ms",
        "group.initialRebalanceDelayMs",
        ConfigType.INT,
        "How long the first rebalance of an empty group waits for further members.",
    ),
    BrokerConfig(
        "group.max.session.timeout.ms",
        "group.maxSessionTimeoutMs",
        ConfigType.INT,
        "The longest session timeout that a member may request.",
    ),
    BrokerConfig(
        "group.max.size",
        "group.maxSize",
        ConfigType.INT,
        "How many members a group of the classic protocol may have.",
    ),
    BrokerConfig(
        "group.min.session.timeout.ms",
        "group.minSessionTimeoutMs",
        ConfigType.INT,
        "The shortest session timeout that a member may request.",
    ),
    BrokerConfig(
        "kafscale.cache.bytes",
        "cache.segmentCacheSize",
        ConfigType.LONG,
        "How many bytes of segments are cached in memory.",
    ),
    BrokerConfig(
        "kafscale.flush.interval.ms",
        "storage.flushIntervalMs",
        ConfigType.LONG,
        "How long the first buffered record may wait before it is flushed.",
    ),
    BrokerConfig(
        "kafscale.readahead.segments",
        "cache.readAheadSegments",
        ConfigType.INT,
        "How many segments are read ahead of a sequential reader.",
    ),
    BrokerConfig(
        "kafscale.s3.bucket",
        "s3.bucket",
        ConfigType.STRING,
        "The bucket for records; empty means local files.",
    ),
    BrokerConfig(
        "kafscale.s3.endpoint",
        "s3.endpoint",
        ConfigType.STRING,
        "The address of the object store; empty means AWS.",
    ),
    BrokerConfig("kafscale.s3.region", "s3.region", ConfigType.STRING, "The region of the bucket."),
    BrokerConfig(
        "kafscale.segment.bytes",
        "storage.segmentBytes",
        ConfigType.INT,
        "The size at which a segment is complete.",
    ),
    BrokerConfig(
        "log.cleaner.backoff.ms",
        "compaction.intervalMs",
        ConfigType.LONG,
        "How long the broker waits until it checks again which logs to compact.",
    ),
    BrokerConfig(
        "log.cleaner.dedupe.buffer.size",
        "compaction.maxMemoryBytes",
        ConfigType.LONG,
        "The memory for the keys of the log that is compacted.",
    ),
    BrokerConfig(
        "log.cleaner.enable",
        "compaction.enabled",
        ConfigType.BOOLEAN,
        "Whether the broker compacts topics with cleanup.policy=compact.",
    ),
    BrokerConfig(
        "log.cleaner.io.max.bytes.per.second",
        "compaction.bytesPerSecond",
        ConfigType.DOUBLE,
        "How much the broker reads and writes for compaction.",
    ),
    BrokerConfig(
        "max.connections",
        "network.maxConnections",
        ConfigType.INT,
        "The maximum number of client connections.",
    ),
    BrokerConfig(
        "num.partitions",
        "topics.autoCreatePartitions",
        ConfigType.INT,
        "The number of partitions of a topic that is created without one.",
    ),
    BrokerConfig(
        "offset.metadata.max.bytes",
        "offsets.metadataMaxBytes",
        ConfigType.INT,
        "The maximum size of the metadata of a committed offset.",
    ),
    BrokerConfig(
        "offsets.retention.check.interval.ms",
        "offsets.retentionCheckIntervalMs",
        ConfigType.LONG,
        "How often expired offsets are checked for.",
    ),
    BrokerConfig(
        "offsets.retention.minutes",
        "offsets.retentionMinutes",
        ConfigType.INT,
        "How long offsets are kept after the group has no members that read them.",
    ),
    BrokerConfig(
        "producer.id.expiration.ms",
        "storage.producerIdExpirationMs",
        ConfigType.INT,
        "How long a producer without an open transaction is remembered after its last batch.",
    ),
    BrokerConfig(
        "socket.receive.buffer.bytes",
        "network.socketReceiveBuffer",
        ConfigType.INT,
        "The kernel's receive buffer of a connection.",
    ),
    BrokerConfig(
        "socket.request.max.bytes", "network.maxRequestSize", ConfigType.INT, "The largest request."
    ),
    BrokerConfig(
        "socket.send.buffer.bytes",
        "network.socketSendBuffer",
        ConfigType.INT,
        "The kernel's send buffer of a connection.",
    ),
    BrokerConfig(
        "transaction.max.timeout.ms",
        "transaction.maxTimeoutMs",
        ConfigType.INT,
        "The longest transaction timeout that a producer may request.",
    ),
    BrokerConfig(
        "transaction.partition.verification.enable",
        "transaction.partitionVerification",
        ConfigType.BOOLEAN,
        "Whether a leader asks the coordinator before it appends to a transaction.",
    ),
    BrokerConfig(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.idExpirationCheckIntervalMs",
        ConfigType.INT,
        "How often expired transactional ids are checked for.",
    ),
    BrokerConfig(
        "transactional.id.expiration.ms",
        "transaction.idExpirationMs",
        ConfigType.INT,
        "How long a transactional id is kept after its last transaction.",
    ),
    BrokerConfig(
        "allow.everyone.if.no.acl.found",
        "authorization.allowEveryoneIfNoAclFound",
        ConfigType.BOOLEAN,
        "Whether every principal may use a resource without ACLs.",
    ),
    BrokerConfig(
        "connections.max.reauth.ms",
        "sasl.connectionsMaxReauthMs",
        ConfigType.LONG,
        "After how long clients have to reauthenticate; 0 means never.",
    ),
    BrokerConfig(
        "listener.security.protocol.map",
        "broker.listenerSecurityProtocolMap",
        ConfigType.LIST,
        "The security protocol of each listener.",
    ),
    BrokerConfig(
        "max.connection.creation.rate",
        "network.maxConnectionCreationRate",
        ConfigType.INT,
        "How many new connections are accepted per second; empty means no limit.",
    ),
    BrokerConfig(
        "max.connections.per.ip",
        "network.maxConnectionsPerIp",
        ConfigType.INT,
        "The maximum number of connections of one address; empty means no limit.",
    ),
    BrokerConfig(
        "max.connections.per.ip.overrides",
        "network.maxConnectionsPerIpOverrides",
        ConfigType.STRING,
        "The maximum number of connections of single addresses, as address:count.",
    ),
    BrokerConfig(
        "sasl.enabled.mechanisms",
        "sasl.enabledMechanisms",
        ConfigType.LIST,
        "The enabled SASL mechanisms.",
    ),
    BrokerConfig(
        "sasl.server.max.receive.size",
        "sasl.serverMaxReceiveSize",
        ConfigType.INT,
        "The maximum size of a request before authentication.",
    ),
    BrokerConfig(
        "ssl.client.auth",
        "tls.clientAuth",
        ConfigType.LIST,
        "Whether clients may or must present a certificate.",
    ),
    BrokerConfig(
        "ssl.principal.mapping.rules",
        "tls.principalMappingRules",
        ConfigType.STRING,
        "The rules that map the distinguished name of a certificate to a principal.",
    ),
)

BY_NAME: Final = {each.name: each for each in BROKER_CONFIGS}

assert not any(BY_PATH[each.path].secret for each in BROKER_CONFIGS)
assert all(BY_NAME[name].path == path for name, path in PATHS.items())
