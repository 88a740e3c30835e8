"""Settings that are right each by itself and wrong together.

The law: fail closed. Where one setting shows what was meant and another would quietly do something
else, records in a directory instead of a bucket, or passwords in the clear, the start is refused.
What is unusual but sound is let through: a bucket with embedded metadata is one broker with a
durable log.
"""

from collections.abc import Iterator

from kafscale.config.model import Config


def contradictions(config: Config) -> list[str]:
    """Every pair of settings that cannot both be meant, as sentences."""
    checks = (_stores, _credentials, _etcd, _listeners, _thresholds, _groups)
    return [problem for check in checks for problem in check(config)]


def _stores(config: Config) -> Iterator[str]:
    s3 = config.s3
    if s3.use_memory and s3.bucket:
        yield (
            "s3.bucket and s3.useMemory are both set: records can be kept in one place only; "
            "remove one of them"
        )
    if config.etcd.endpoints and not s3.bucket:
        yield (
            "etcd.endpoints is set, but s3.bucket is not: the brokers of a cluster share their "
            "records through a bucket; set s3.bucket, or remove etcd.endpoints to run one "
            "embedded broker"
        )
    only_with_bucket = {
        "s3.endpoint": s3.endpoint,
        "s3.kmsKeyArn": s3.kms_key_arn,
        "s3.roleArn": s3.role_arn,
        "s3.stsEndpoint": s3.sts_endpoint,
        "s3.accessKey": s3.access_key,
        "s3.credentialsFile": s3.credentials_file,
        "s3.profile": s3.profile,
        "s3.createBucket": s3.create_bucket,
        "s3.manageLifecycle": s3.manage_lifecycle,
        "s3.readBucket": s3.read_bucket,
        "s3.readEndpoint": s3.read_endpoint,
    }
    for path, value in only_with_bucket.items():
        if value and not s3.bucket:
            yield (
                f"{path} is set, but s3.bucket is not: records would stay on this machine; "
                f"set s3.bucket, or remove {path}"
            )


def _credentials(config: Config) -> Iterator[str]:
    s3 = config.s3
    yield from _together("s3.accessKey", s3.access_key, "s3.secretKey", s3.secret_key)
    if s3.session_token and not s3.access_key:
        yield "s3.sessionToken is set, but s3.accessKey is not: a token belongs to a key; set both"
    if s3.access_key and s3.credential_source != "env":
        yield (
            f"s3.accessKey is set, but s3.credentialSource is {s3.credential_source}, which brings "
            "keys of its own; set s3.credentialSource to env, or remove the keys"
        )
    for path, value in {"credentialsFile": s3.credentials_file, "profile": s3.profile}.items():
        if value and s3.credential_source != "file":
            yield (
                f"s3.{path} is set, but s3.credentialSource is {s3.credential_source}; set "
                f"s3.credentialSource to file, or remove s3.{path}"
            )


def _etcd(config: Config) -> Iterator[str]:
    etcd, tls = config.etcd, config.etcd.tls
    yield from _together("etcd.username", etcd.username, "etcd.password", etcd.password)
    yield from _together("etcd.tls.certFile", tls.cert_file, "etcd.tls.keyFile", tls.key_file)
    if not etcd.endpoints and (etcd.username or tls.enabled):
        yield (
            "etcd.username or etcd.tls.enabled is set, but etcd.endpoints is not: metadata would "
            "stay on this machine; set etcd.endpoints, or remove the others"
        )
    if not tls.enabled and (tls.cert_file or tls.ca_file):
        yield (
            "files are named in etcd.tls, but etcd.tls.enabled is false: the connection would not "
            "be encrypted; set etcd.tls.enabled to true, or remove the files"
        )
    wrong = "http://" if tls.enabled else "https://"
    for endpoint in etcd.endpoints:
        if endpoint.startswith(wrong):
            state = "true" if tls.enabled else "false"
            yield f"etcd.endpoints has {endpoint}, but etcd.tls.enabled is {state}; make them agree"


def _listeners(config: Config) -> Iterator[str]:
    broker = config.broker
    ports = {
        "broker.port": broker.port,
        "broker.metricsPort": broker.metrics_port,
        "broker.controlPort": broker.control_port,
    }
    first: dict[int | None, str] = {}
    for path, port in ports.items():
        if port and port in first:
            yield f"{first[port]} and {path} are both {port}; give each its own port"
        first.setdefault(port, path)


def _thresholds(config: Config) -> Iterator[str]:
    s3 = config.s3
    if s3.latency_warn_ms > s3.latency_crit_ms:
        yield "s3.latencyWarnMs is above s3.latencyCritMs; a warning has to come first"
    if s3.error_rate_warn > s3.error_rate_crit:
        yield "s3.errorRateWarn is above s3.errorRateCrit; a warning has to come first"


def _groups(config: Config) -> Iterator[str]:
    consumer, group = config.consumer, config.group
    if consumer.heartbeat_interval_ms >= consumer.session_timeout_ms:
        yield (
            "consumer.heartbeatIntervalMs is not below consumer.sessionTimeoutMs; "
            "every session would end before its first heartbeat"
        )
    if group.consumer_heartbeat_interval_ms >= group.consumer_session_timeout_ms:
        yield (
            "group.consumerHeartbeatIntervalMs is not below group.consumerSessionTimeoutMs; "
            "every session would end before its first heartbeat"
        )
    if group.session_timeout_ms_min > group.session_timeout_ms_max:
        yield (
            "group.minSessionTimeoutMs is above group.maxSessionTimeoutMs; "
            "no member could ask for a session that is allowed"
        )


def _together(path: str, value: str, other_path: str, other: str) -> Iterator[str]:
    """Two settings that mean something only as a pair."""
    if bool(value) != bool(other):
        given, missing = (path, other_path) if value else (other_path, path)
        yield f"{given} is set, but {missing} is not; set both or neither"
