"""All settings: names, defaults and descriptions."""

import dataclasses

import pytest

from kafscale.config import MASK, SETTINGS, VARIABLES, Config, load
from kafscale.config.schema import descriptions
from services.for_each import for_each

# Written down once more, by hand, so that no name and no default changes unnoticed.
NAMED = """
broker.id                     |              | KAFSCALE_BROKER_ID
broker.rack                   |              | KAFSCALE_BROKER_RACK
broker.leaseTtlMs             | 10000        | KAFSCALE_BROKER_LEASE_TTL_MS
broker.host                   |              | KAFSCALE_BROKER_HOST
broker.port                   | 9092         | KAFSCALE_BROKER_PORT
broker.advertisedHost         |              | KAFSCALE_BROKER_ADVERTISED_HOST
broker.advertisedPort         |              | KAFSCALE_BROKER_ADVERTISED_PORT
broker.securityProtocol       | PLAINTEXT    | KAFSCALE_BROKER_SECURITY_PROTOCOL
broker.listeners              |              | KAFSCALE_BROKER_LISTENERS
broker.advertisedListeners    |              | KAFSCALE_BROKER_ADVERTISED_LISTENERS
broker.listenerSecurityProtocolMap | | KAFSCALE_BROKER_LISTENER_SECURITY_PROTOCOL_MAP
broker.dataDir                | kafscale-data | KAFSCALE_DATA_DIR
broker.metricsHost            |              | KAFSCALE_BROKER_METRICS_HOST
broker.metricsPort            | 9093         | KAFSCALE_BROKER_METRICS_PORT
broker.controlHost            | 127.0.0.1    | KAFSCALE_BROKER_CONTROL_HOST
broker.controlPort            | 9095         | KAFSCALE_BROKER_CONTROL_PORT
broker.drainTimeoutSec        | 20           | KAFSCALE_BROKER_DRAIN_TIMEOUT_SEC
broker.allowAdminApis         | true         | KAFSCALE_ALLOW_ADMIN_APIS
broker.startupTimeoutSec      | 30           | KAFSCALE_STARTUP_TIMEOUT_SEC
network.maxConnections        | 10000        | KAFSCALE_NETWORK_MAX_CONNECTIONS
network.maxConnectionsPerIp   |              | KAFSCALE_NETWORK_MAX_CONNECTIONS_PER_IP
network.maxConnectionsPerIpOverrides | | KAFSCALE_NETWORK_MAX_CONNECTIONS_PER_IP_OVERRIDES
network.maxConnectionCreationRate |              | KAFSCALE_NETWORK_MAX_CONNECTION_CREATION_RATE
network.maxRequestSize        | 104857600    | KAFSCALE_NETWORK_MAX_REQUEST_SIZE
network.maxOtherRequestSize   | 2Mi          | KAFSCALE_NETWORK_MAX_OTHER_REQUEST_SIZE
network.socketSendBuffer      | 1048576      | KAFSCALE_NETWORK_SOCKET_SEND_BUFFER
network.socketReceiveBuffer   | 1048576      | KAFSCALE_NETWORK_SOCKET_RECEIVE_BUFFER
network.connectionTimeout     | 30s          | KAFSCALE_NETWORK_CONNECTION_TIMEOUT
network.idleTimeout           | 10m          | KAFSCALE_NETWORK_IDLE_TIMEOUT
network.maxInFlightRequests   | 64           | KAFSCALE_NETWORK_MAX_IN_FLIGHT_REQUESTS
network.maxFetchSize          | 55Mi         | KAFSCALE_NETWORK_MAX_FETCH_SIZE
network.maxUnsentBytes        | 256Mi        | KAFSCALE_NETWORK_MAX_UNSENT_BYTES
network.maxFetchSessions      | 1000         | KAFSCALE_NETWORK_MAX_FETCH_SESSIONS
network.requestTimeout        | 60s          | KAFSCALE_NETWORK_REQUEST_TIMEOUT
tls.certFile                  |              | KAFSCALE_TLS_CERT_FILE
tls.keyFile                   |              | KAFSCALE_TLS_KEY_FILE
tls.keyPassword               |              | KAFSCALE_TLS_KEY_PASSWORD
tls.caFile                    |              | KAFSCALE_TLS_CA_FILE
tls.crlFile                   |              | KAFSCALE_TLS_CRL_FILE
tls.clientAuth                | none         | KAFSCALE_TLS_CLIENT_AUTH
tls.minVersion                | 1.2          | KAFSCALE_TLS_MIN_VERSION
tls.ciphers                   |              | KAFSCALE_TLS_CIPHERS
tls.principalMappingRules     | DEFAULT      | KAFSCALE_TLS_PRINCIPAL_MAPPING_RULES
tls.reloadIntervalMs          | 10s          | KAFSCALE_TLS_RELOAD_INTERVAL_MS
sasl.enabledMechanisms        |              | KAFSCALE_SASL_ENABLED_MECHANISMS
sasl.plainUsers               |              | KAFSCALE_SASL_PLAIN_USERS
sasl.plainUsersFile           |              | KAFSCALE_SASL_PLAIN_USERS_FILE
sasl.oauthJwksFile            |              | KAFSCALE_SASL_OAUTH_JWKS_FILE
sasl.oauthJwksUrl             |              | KAFSCALE_SASL_OAUTH_JWKS_URL
sasl.oauthJwksRefreshMs       | 1h           | KAFSCALE_SASL_OAUTH_JWKS_REFRESH_MS
sasl.oauthExpectedIssuer      |              | KAFSCALE_SASL_OAUTH_EXPECTED_ISSUER
sasl.oauthExpectedAudience    |              | KAFSCALE_SASL_OAUTH_EXPECTED_AUDIENCE
sasl.oauthRequiredScopes      |              | KAFSCALE_SASL_OAUTH_REQUIRED_SCOPES
sasl.oauthPrincipalClaim      | sub          | KAFSCALE_SASL_OAUTH_PRINCIPAL_CLAIM
sasl.oauthScopeClaim          | scope        | KAFSCALE_SASL_OAUTH_SCOPE_CLAIM
sasl.oauthGroupsClaim         | groups       | KAFSCALE_SASL_OAUTH_GROUPS_CLAIM
sasl.oauthClockSkewSec        | 30s          | KAFSCALE_SASL_OAUTH_CLOCK_SKEW_SEC
sasl.connectionsMaxReauthMs   | 0            | KAFSCALE_SASL_CONNECTIONS_MAX_REAUTH_MS
sasl.serverMaxReceiveSize     | 512Ki        | KAFSCALE_SASL_SERVER_MAX_RECEIVE_SIZE
sasl.failedAuthenticationDelayMs | 100ms | KAFSCALE_SASL_FAILED_AUTHENTICATION_DELAY_MS
sasl.failedAuthenticationDelayMaxMs | 10s | KAFSCALE_SASL_FAILED_AUTHENTICATION_DELAY_MAX_MS
authorization.enabled         | false        | KAFSCALE_AUTHORIZATION_ENABLED
authorization.superUsers      |              | KAFSCALE_AUTHORIZATION_SUPER_USERS
authorization.allowEveryoneIfNoAclFound|false|KAFSCALE_AUTHORIZATION_ALLOW_EVERYONE_IF_NO_ACL_FOUND
control.tls.enabled           | false        | KAFSCALE_CONTROL_TLS_ENABLED
control.tls.certFile          |              | KAFSCALE_CONTROL_TLS_CERT_FILE
control.tls.keyFile           |              | KAFSCALE_CONTROL_TLS_KEY_FILE
control.tls.caFile            |              | KAFSCALE_CONTROL_TLS_CA_FILE
control.allowedSubjects       |              | KAFSCALE_CONTROL_ALLOWED_SUBJECTS
control.operatorAddress       |              | KAFSCALE_CONTROL_OPERATOR_ADDRESS
s3.bucket                     |              | KAFSCALE_S3_BUCKET
s3.region                     | us-east-1    | KAFSCALE_S3_REGION
s3.endpoint                   |              | KAFSCALE_S3_ENDPOINT
s3.pathStyle                  |              | KAFSCALE_S3_PATH_STYLE
s3.kmsKeyArn                  |              | KAFSCALE_S3_KMS_ARN
s3.serverSideEncryption       | bucket       | KAFSCALE_S3_SERVER_SIDE_ENCRYPTION
s3.storageClass               | STANDARD     | KAFSCALE_S3_STORAGE_CLASS
s3.createBucket               | false        | KAFSCALE_S3_CREATE_BUCKET
s3.manageLifecycle            | false        | KAFSCALE_S3_MANAGE_LIFECYCLE
s3.roleArn                    |              | KAFSCALE_S3_ROLE_ARN
s3.stsEndpoint                |              | KAFSCALE_S3_STS_ENDPOINT
s3.credentialSource           | env          | KAFSCALE_S3_CREDENTIAL_SOURCE
s3.credentialsFile            |              | KAFSCALE_S3_CREDENTIALS_FILE
s3.profile                    |              | KAFSCALE_S3_PROFILE
s3.accessKey                  |              | KAFSCALE_S3_ACCESS_KEY
s3.secretKey                  |              | KAFSCALE_S3_SECRET_KEY
s3.sessionToken               |              | KAFSCALE_S3_SESSION_TOKEN
s3.namespace                  | default      | KAFSCALE_S3_NAMESPACE
s3.partSize                   | 5242880      | KAFSCALE_S3_PART_SIZE
s3.concurrency                | 5            | KAFSCALE_S3_CONCURRENCY
s3.maxRequests                | 64           | KAFSCALE_S3_MAX_REQUESTS
s3.maxIdleConnections         | 100          | KAFSCALE_S3_MAX_IDLE_CONNECTIONS
s3.idleTimeout                | 1m30s        | KAFSCALE_S3_IDLE_TIMEOUT
s3.connectTimeout             | 5s           | KAFSCALE_S3_CONNECT_TIMEOUT
s3.requestTimeout             | 10s          | KAFSCALE_S3_REQUEST_TIMEOUT
s3.maxRetries                 | 3            | KAFSCALE_S3_MAX_RETRIES
s3.readBucket                 |              | KAFSCALE_S3_READ_BUCKET
s3.readRegion                 |              | KAFSCALE_S3_READ_REGION
s3.readEndpoint               |              | KAFSCALE_S3_READ_ENDPOINT
s3.useMemory                  | false        | KAFSCALE_USE_MEMORY_S3
s3.healthWindowSec            | 60           | KAFSCALE_S3_HEALTH_WINDOW_SEC
s3.latencyWarnMs              | 500          | KAFSCALE_S3_LATENCY_WARN_MS
s3.latencyCritMs              | 3000         | KAFSCALE_S3_LATENCY_CRIT_MS
s3.errorRateWarn              | 0.2          | KAFSCALE_S3_ERROR_RATE_WARN
s3.errorRateCrit              | 0.6          | KAFSCALE_S3_ERROR_RATE_CRIT
etcd.endpoints                |              | KAFSCALE_ETCD_ENDPOINTS
etcd.dialTimeout              | 5s           | KAFSCALE_ETCD_DIAL_TIMEOUT
etcd.requestTimeout           | 10s          | KAFSCALE_ETCD_REQUEST_TIMEOUT
etcd.quota                    | 2147483648   | KAFSCALE_ETCD_QUOTA
etcd.username                 |              | KAFSCALE_ETCD_USERNAME
etcd.password                 |              | KAFSCALE_ETCD_PASSWORD
etcd.passwordFile             |              | KAFSCALE_ETCD_PASSWORD_FILE
etcd.tls.enabled              | false        | KAFSCALE_ETCD_TLS_ENABLED
etcd.tls.certFile             |              | KAFSCALE_ETCD_TLS_CERT_FILE
etcd.tls.keyFile              |              | KAFSCALE_ETCD_TLS_KEY_FILE
etcd.tls.caFile               |              | KAFSCALE_ETCD_TLS_CA_FILE
storage.segmentBytes          | 104857600    | KAFSCALE_SEGMENT_BYTES
storage.segmentBufferBytes    | 4194304      | KAFSCALE_SEGMENT_BUFFER_BYTES
storage.indexIntervalBytes    | 4096         | KAFSCALE_STORAGE_INDEX_INTERVAL_BYTES
storage.flushIntervalMs       | 500          | KAFSCALE_FLUSH_INTERVAL_MS
storage.flushMessages         | 10000        | KAFSCALE_STORAGE_FLUSH_MESSAGES
storage.walPutsPerSecond      | 2.0          | KAFSCALE_STORAGE_WAL_PUTS_PER_SECOND
storage.walPutsBurst          | 4            | KAFSCALE_STORAGE_WAL_PUTS_BURST
storage.walIdleFlushBytes     | 1Mi          | KAFSCALE_STORAGE_WAL_IDLE_FLUSH_BYTES
storage.maxWalUploads         | 8            | KAFSCALE_STORAGE_MAX_WAL_UPLOADS
storage.maxWalBytes           | 1Gi          | KAFSCALE_STORAGE_MAX_WAL_BYTES
storage.maxBufferBytes        | 64Mi         | KAFSCALE_STORAGE_MAX_BUFFER_BYTES
storage.maxTailBytes          | 512Mi        | KAFSCALE_STORAGE_MAX_TAIL_BYTES
storage.maxSegmentAgeMs       | 10m          | KAFSCALE_STORAGE_MAX_SEGMENT_AGE_MS
storage.retentionCheckIntervalMs | 1m           | KAFSCALE_STORAGE_RETENTION_CHECK_INTERVAL_MS
storage.producerIdExpirationMs | 24h          | KAFSCALE_STORAGE_PRODUCER_ID_EXPIRATION_MS
storage.localFsync            | false        | KAFSCALE_LOCAL_FSYNC
storage.produceSyncFlush      | false        | KAFSCALE_PRODUCE_SYNC_FLUSH
cache.segmentCacheSize        | 2Gi          | KAFSCALE_CACHE_BYTES KAFSCALE_CACHE_SIZE
cache.indexCacheSize          | 256Mi        | KAFSCALE_CACHE_INDEX_CACHE_SIZE
cache.readAheadSegments       | 3            | KAFSCALE_READAHEAD_SEGMENTS
cache.readAheadBytes          | 12Mi         | KAFSCALE_CACHE_READ_AHEAD_BYTES
consumer.sessionTimeoutMs     | 30000        | KAFSCALE_CONSUMER_SESSION_TIMEOUT_MS
consumer.heartbeatIntervalMs  | 3000         | KAFSCALE_CONSUMER_HEARTBEAT_INTERVAL_MS
consumer.rebalanceTimeoutMs   | 60000        | KAFSCALE_CONSUMER_REBALANCE_TIMEOUT_MS
consumer.maxPollIntervalMs    | 300000       | KAFSCALE_CONSUMER_MAX_POLL_INTERVAL_MS
group.initialRebalanceDelayMs | 3000         | KAFSCALE_GROUP_INITIAL_REBALANCE_DELAY_MS
group.minSessionTimeoutMs     | 6000         | KAFSCALE_GROUP_MIN_SESSION_TIMEOUT_MS
group.maxSessionTimeoutMs     | 1800000      | KAFSCALE_GROUP_MAX_SESSION_TIMEOUT_MS
group.maxSize                 | 2147483647   | KAFSCALE_GROUP_MAX_SIZE
group.coordinatorAppendLingerMs | 5          | KAFSCALE_GROUP_COORDINATOR_APPEND_LINGER_MS
group.consumerSessionTimeoutMs | 45000       | KAFSCALE_GROUP_CONSUMER_SESSION_TIMEOUT_MS
group.consumerHeartbeatIntervalMs | 5000     | KAFSCALE_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS
group.consumerMinSessionTimeoutMs | 45000 | KAFSCALE_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS
group.consumerMaxSessionTimeoutMs | 60000 | KAFSCALE_GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS
group.consumerMinHeartbeatIntervalMs | 5000 | KAFSCALE_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS
group.consumerMaxHeartbeatIntervalMs | 15000 | KAFSCALE_GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS
group.consumerMaxSize         | 2147483647   | KAFSCALE_GROUP_CONSUMER_MAX_SIZE
group.consumerAssignors       | uniform,range | KAFSCALE_GROUP_CONSUMER_ASSIGNORS
group.consumerMigrationPolicy | bidirectional | KAFSCALE_GROUP_CONSUMER_MIGRATION_POLICY
offsets.retentionMinutes      | 10080        | KAFSCALE_OFFSETS_RETENTION_MINUTES
offsets.retentionCheckIntervalMs | 600000    | KAFSCALE_OFFSETS_RETENTION_CHECK_INTERVAL_MS
offsets.metadataMaxBytes      | 4096         | KAFSCALE_OFFSET_METADATA_MAX_BYTES
offsets.groupMetadataMaxBytes | 1048576      | KAFSCALE_OFFSETS_GROUP_METADATA_MAX_BYTES
offsets.userCommitBytesPerSecond | 2097152   | KAFSCALE_OFFSETS_USER_COMMIT_BYTES_PER_SECOND
offsets.groupCommitBytesPerSecond | 1048576  | KAFSCALE_OFFSETS_GROUP_COMMIT_BYTES_PER_SECOND
transaction.maxTimeoutMs      | 900000       | KAFSCALE_TRANSACTION_MAX_TIMEOUT_MS
transaction.idExpirationMs    | 604800000    | KAFSCALE_TRANSACTION_ID_EXPIRATION_MS
transaction.idExpirationCheckIntervalMs|3600000|KAFSCALE_TRANSACTION_ID_EXPIRATION_CHECK_INTERVAL_MS
transaction.idsMax            | 1000000      | KAFSCALE_TRANSACTION_IDS_MAX
transaction.partitionVerification | true     | KAFSCALE_TRANSACTION_PARTITION_VERIFICATION
topics.autoCreate             | true         | KAFSCALE_AUTO_CREATE_TOPICS
topics.autoCreatePartitions   | 1            | KAFSCALE_AUTO_CREATE_PARTITIONS
compression.type              | snappy       | KAFSCALE_COMPRESSION_TYPE
compaction.enabled            | true         | KAFSCALE_COMPACTION_ENABLED
compaction.intervalMs         | 15000        | KAFSCALE_COMPACTION_INTERVAL_MS
compaction.maxMemoryBytes     | 134217728    | KAFSCALE_COMPACTION_MAX_MEMORY_BYTES
compaction.bytesPerSecond     | 33554432     | KAFSCALE_COMPACTION_BYTES_PER_SECOND
logging.level                 | info         | KAFSCALE_LOG_LEVEL
logging.format                | json         | KAFSCALE_LOGGING_FORMAT
logging.auditFile             |              | KAFSCALE_LOGGING_AUDIT_FILE
tracing.endpoint              |              | KAFSCALE_TRACING_ENDPOINT
tracing.sampleRatio           | 0.01         | KAFSCALE_TRACING_SAMPLE_RATIO
tracing.serviceName           |              | KAFSCALE_TRACING_SERVICE_NAME
operator.namespaces           |              | KAFSCALE_OPERATOR_NAMESPACES
operator.namespace            | kafscale     | KAFSCALE_OPERATOR_NAMESPACE
operator.etcdEndpoints        |              | KAFSCALE_OPERATOR_ETCD_ENDPOINTS
operator.allowedBuckets       |              | KAFSCALE_OPERATOR_ALLOWED_BUCKETS
operator.allowedRoles         |              | KAFSCALE_OPERATOR_ALLOWED_ROLES
operator.allowedEndpoints     |              | KAFSCALE_OPERATOR_ALLOWED_ENDPOINTS
operator.allowKubeEtcd        | false        | KAFSCALE_OPERATOR_ALLOW_KUBE_ETCD
operator.brokerImage          | kafscale-broker:latest | KAFSCALE_OPERATOR_BROKER_IMAGE
operator.operatorImage        | kafscale-operator:latest | KAFSCALE_OPERATOR_OPERATOR_IMAGE
operator.etcdImage            | etcd:v3.6.16  | KAFSCALE_OPERATOR_ETCD_IMAGE
operator.imagePullSecrets     |              | KAFSCALE_OPERATOR_IMAGE_PULL_SECRETS
operator.clusterDomain        | cluster.local | KAFSCALE_OPERATOR_CLUSTER_DOMAIN
operator.resyncSec            | 30s          | KAFSCALE_OPERATOR_RESYNC_SEC
operator.leaseDurationSec     | 15s          | KAFSCALE_OPERATOR_LEASE_DURATION_SEC
operator.host                 | 0.0.0.0      | KAFSCALE_OPERATOR_HOST
operator.metricsPort          | 9093         | KAFSCALE_OPERATOR_METRICS_PORT
operator.controlPort          | 9094         | KAFSCALE_OPERATOR_CONTROL_PORT
operator.controlAddress       |              | KAFSCALE_OPERATOR_CONTROL_ADDRESS
ui.username                   |              | KAFSCALE_UI_USERNAME
ui.password                   |              | KAFSCALE_UI_PASSWORD
ui.host                       | 127.0.0.1    | KAFSCALE_UI_HOST
ui.port                       | 8080         | KAFSCALE_UI_PORT
ui.certFile                   |              | KAFSCALE_UI_CERT_FILE
ui.keyFile                    |              | KAFSCALE_UI_KEY_FILE
ui.tlsTerminatedUpstream      | false        | KAFSCALE_UI_TLS_TERMINATED_UPSTREAM
ui.trustedProxies             |              | KAFSCALE_UI_TRUSTED_PROXIES
ui.sessionHours               | 12           | KAFSCALE_UI_SESSION_HOURS
ui.sessionKey                 |              | KAFSCALE_UI_SESSION_KEY
ui.refreshIntervalMs          | 2s           | KAFSCALE_UI_REFRESH_INTERVAL_MS
ui.schemaRegistryUrl          |              | KAFSCALE_SCHEMA_REGISTRY_URL
mcp.allowWrites               | false        | KAFSCALE_MCP_ALLOW_WRITES
mcp.token                     |              | KAFSCALE_MCP_TOKEN
mcp.host                      | 127.0.0.1    | KAFSCALE_MCP_HOST
mcp.port                      | 8811         | KAFSCALE_MCP_PORT
client.bootstrapServers       | localhost:9092 | KAFSCALE_BOOTSTRAP_SERVERS
client.securityProtocol       | PLAINTEXT    | KAFSCALE_CLIENT_SECURITY_PROTOCOL
client.saslMechanism          | SCRAM-SHA-512 | KAFSCALE_CLIENT_SASL_MECHANISM
client.username               |              | KAFSCALE_CLIENT_USERNAME
client.password               |              | KAFSCALE_CLIENT_PASSWORD
client.tokenFile              |              | KAFSCALE_CLIENT_TOKEN_FILE
client.tls.caFile             |              | KAFSCALE_CLIENT_TLS_CA_FILE
client.tls.certFile           |              | KAFSCALE_CLIENT_TLS_CERT_FILE
client.tls.keyFile            |              | KAFSCALE_CLIENT_TLS_KEY_FILE
client.tls.verifyHostname     | true         | KAFSCALE_CLIENT_TLS_VERIFY_HOSTNAME
client.controlTls.enabled     | false        | KAFSCALE_CLIENT_CONTROL_TLS_ENABLED
client.controlTls.caFile      |              | KAFSCALE_CLIENT_CONTROL_TLS_CA_FILE
client.controlTls.certFile    |              | KAFSCALE_CLIENT_CONTROL_TLS_CERT_FILE
client.controlTls.keyFile     |              | KAFSCALE_CLIENT_CONTROL_TLS_KEY_FILE
client.controlServers         | localhost:9095 | KAFSCALE_CONTROL_SERVERS
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in NAMED.strip().splitlines()]


def test_list_of_settings_is_complete():
    assert [setting.path for setting in SETTINGS] == [path for path, _, _ in ROWS]


@for_each(ROWS)
def test_setting_has_default_and_variables(row):
    path, default, variables = row
    setting = next(setting for setting in SETTINGS if setting.path == path)
    assert setting.default == setting.read(default)
    assert setting.variables == tuple(variables.split())
    assert setting.value(Config()) == setting.default


def test_variables_are_unique():
    assert len(VARIABLES) == len(set(VARIABLES))
    assert {"KAFSCALE_CONFIG_FILE", "KAFSCALE_BROKER_ADDR", "KAFSCALE_CONTROL_ADDR"} < set(
        VARIABLES
    )


def test_secrets_are_marked():
    assert {setting.path for setting in SETTINGS if setting.secret} == {
        "tls.keyPassword",
        "sasl.plainUsers",
        "client.password",
        "s3.accessKey",
        "s3.secretKey",
        "s3.sessionToken",
        "etcd.password",
        "ui.password",
        "ui.sessionKey",
        "mcp.token",
    }


@for_each(SETTINGS, lambda setting: setting.path)
def test_every_setting_has_a_description(setting):
    description = setting.description
    assert description.count(". ") >= 1, (
        "say the meaning in one sentence and the default in another"
    )
    assert description.endswith(".")


def test_descriptions_are_read_by_field():
    class Group:
        """The docstring of the class is not that of its first field."""

        first: int = 1
        """The first. In
        two lines."""
        second: int = 2
        third: int = 3
        """The third."""

    assert descriptions(Group) == {"first": "The first. In two lines.", "third": "The third."}


def test_every_section_has_a_description():
    for setting in SETTINGS:
        assert setting.group.__doc__
        assert "(" not in setting.group.__doc__, (
            "a dataclass without a docstring shows its signature"
        )


def test_defaults_are_valid_values():
    for setting in SETTINGS:
        assert setting.read(setting.type.show(setting.default)) == setting.default


def test_configuration_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().broker.port = 1


SECRETS = {
    "KAFSCALE_S3_BUCKET": "records",
    "KAFSCALE_S3_ACCESS_KEY": "hunter2",
    "KAFSCALE_S3_SECRET_KEY": "hunter2",
    "KAFSCALE_S3_SESSION_TOKEN": "hunter2",
    "KAFSCALE_ETCD_ENDPOINTS": "etcd:2379",
    "KAFSCALE_ETCD_USERNAME": "kafscale",
    "KAFSCALE_ETCD_PASSWORD": "hunter2",
    "KAFSCALE_UI_USERNAME": "admin",
    "KAFSCALE_UI_PASSWORD": "hunter2",
    "KAFSCALE_UI_SESSION_KEY": "hunter2",
    "KAFSCALE_MCP_TOKEN": "hunter2",
}


def test_secrets_are_masked():
    config = load(SECRETS)
    assert config.etcd.password == SECRETS["KAFSCALE_ETCD_PASSWORD"]
    assert "hunter2" not in repr(config)
    assert "hunter2" not in str(config.effective())
    assert config.effective()["etcd"]["password"] == MASK
    assert all(setting.show(setting.value(config)) != "hunter2" for setting in SETTINGS)


def test_unset_secret_is_shown_as_empty():
    assert Config().effective()["s3"]["secretKey"] == ""


def test_effective_configuration_has_every_setting():
    effective = load({"KAFSCALE_ETCD_TLS_ENABLED": "false"}).effective()
    for setting in SETTINGS:
        branch = effective
        for key in setting.path.split("."):
            branch = branch[key]
        assert branch == setting.export(setting.default)
