"""Checks settings that are valid individually but not in combination.

A combination is rejected if one setting shows the intention and another would silently do something
else, such as storing records in a directory instead of a bucket, or sending passwords unencrypted.
Unusual but sound combinations are accepted: a bucket with embedded metadata is a single broker with
a durable log.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from kafscale.config.model import DEFAULT, Config
from kafscale.net.address import is_ip, is_loopback


def validate(config: Config) -> list[str]:
    """Return an error message for every invalid combination."""
    checks = (
        _stores,
        _credentials,
        _etcd,
        _listeners,
        _clients,
        _control,
        _thresholds,
        _groups,
        _ui,
    )
    return [problem for check in checks for problem in check(config)]


def _stores(config: Config) -> Iterator[str]:
    s3 = config.s3
    if s3.use_memory and s3.bucket:
        yield (
            "s3.bucket and s3.useMemory are both set: records are stored in one place only; "
            "remove one of them"
        )
    if config.etcd.endpoints and not s3.bucket:
        yield (
            "etcd.endpoints is set, but s3.bucket is not: the brokers of a cluster share "
            "records through a bucket; set s3.bucket, or remove etcd.endpoints to run one "
            "embedded broker"
        )
    for path, url in {"s3.endpoint": s3.endpoint, "s3.readEndpoint": s3.read_endpoint}.items():
        if s3.path_style is False and is_ip(urlsplit(url).hostname or ""):
            yield (
                f"s3.pathStyle is false, but {path} is an IP address, which cannot contain the "
                "bucket's name; remove s3.pathStyle, or set a host name"
            )
    if s3.kms_key_arn and s3.server_side_encryption != "bucket":
        yield (
            f"s3.kmsKeyArn and s3.serverSideEncryption {s3.server_side_encryption} are both set: "
            "an object has one kind of encryption; remove one of them"
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
    yield from _required_together("s3.accessKey", s3.access_key, "s3.secretKey", s3.secret_key)
    if s3.session_token and not s3.access_key:
        yield "s3.sessionToken is set, but s3.accessKey is not: a token needs a key; set both"
    if s3.access_key and s3.credential_source != "env":
        yield (
            f"s3.accessKey is set, but s3.credentialSource is {s3.credential_source}, which has "
            "its own keys; set s3.credentialSource to env, or remove the keys"
        )
    for path, value in {"credentialsFile": s3.credentials_file, "profile": s3.profile}.items():
        if value and s3.credential_source != "file":
            yield (
                f"s3.{path} is set, but s3.credentialSource is {s3.credential_source}; set "
                f"s3.credentialSource to file, or remove s3.{path}"
            )


def _etcd(config: Config) -> Iterator[str]:
    etcd, tls = config.etcd, config.etcd.tls
    password = etcd.password or etcd.password_file
    yield from _required_together("etcd.username", etcd.username, "etcd.password", password)
    if etcd.password and etcd.password_file:
        yield "etcd.password and etcd.passwordFile are both set; remove one of them"
    yield from _required_together(
        "etcd.tls.certFile", tls.cert_file, "etcd.tls.keyFile", tls.key_file
    )
    if not etcd.endpoints and (etcd.username or tls.enabled):
        yield (
            "etcd.username or etcd.tls.enabled is set, but etcd.endpoints is not: metadata would "
            "stay on this machine; set etcd.endpoints, or remove the others"
        )
    if not tls.enabled and (tls.cert_file or tls.ca_file):
        yield (
            "files are set in etcd.tls, but etcd.tls.enabled is false: the connection would not be "
            "encrypted; set etcd.tls.enabled to true, or remove the files"
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


def _clients(config: Config) -> Iterator[str]:
    """What the protocols of listeners need; settings of single listeners are checked at start."""
    tls, protocols = config.tls, _protocols(config)
    encrypts = bool(protocols & {"SSL", "SASL_SSL"})
    if encrypts and not tls.cert_file:
        yield (
            "a listener uses TLS, but tls.certFile is not set; set it, or use PLAINTEXT or "
            "SASL_PLAINTEXT"
        )
    if encrypts and not tls.ca_file and any(not each.endswith("none") for each in tls.client_auth):
        yield (
            "tls.clientAuth requests client certificates, but tls.caFile is not set to verify "
            "them; set tls.caFile, or set tls.clientAuth to none"
        )
    if protocols & {"SASL_PLAINTEXT", "SASL_SSL"} and not config.sasl.enabled_mechanisms:
        yield (
            "a listener uses SASL, but sasl.enabledMechanisms is empty: no client could "
            "authenticate; set it, for example to SCRAM-SHA-512"
        )


def _protocols(config: Config) -> set[str]:
    broker = config.broker
    if not broker.listeners:
        return {broker.security_protocol}
    mapped = dict(entry.rsplit(":", 1) for entry in broker.listener_security_protocol_map)
    names = [entry.partition("://")[0] for entry in broker.listeners]
    return {mapped.get(name, name) for name in names}


def _control(config: Config) -> Iterator[str]:
    control, tls = config.control, config.control.tls
    files = {"certFile": tls.cert_file, "keyFile": tls.key_file, "caFile": tls.ca_file}
    if not tls.enabled:
        if control.allowed_subjects or any(files.values()):
            yield (
                "control.allowedSubjects or files in control.tls are set, but control.tls.enabled"
                " is false: the control plane would be open to all; set it to true, or remove the"
                " others"
            )
        if _authenticates(config) and not is_loopback(config.broker.control_host):
            yield (
                "clients have to authenticate, but the control plane, which drains and moves"
                f" partitions, is open to all on broker.controlHost {config.broker.control_host};"
                " set control.tls, or set broker.controlHost to 127.0.0.1"
            )
        return
    for key, path in files.items():
        if not path:
            yield (
                f"control.tls.enabled is true, but control.tls.{key} is not set: both sides of the "
                "control plane verify certificates; set it"
            )


def _authenticates(config: Config) -> bool:
    """Whether clients of some listener have to prove who they are, or are authorized."""
    protocols = _protocols(config)
    certificates = "SSL" in protocols and any(
        each.endswith("required") for each in config.tls.client_auth
    )
    return (
        config.authorization.enabled
        or certificates
        or bool(protocols & {"SASL_PLAINTEXT", "SASL_SSL"})
    )


def _thresholds(config: Config) -> Iterator[str]:
    s3 = config.s3
    if s3.latency_warn_ms > s3.latency_crit_ms:
        yield "s3.latencyWarnMs is above s3.latencyCritMs; set it to at most s3.latencyCritMs"
    if s3.error_rate_warn > s3.error_rate_crit:
        yield "s3.errorRateWarn is above s3.errorRateCrit; set it to at most s3.errorRateCrit"


def _groups(config: Config) -> Iterator[str]:
    consumer, group = config.consumer, config.group
    if consumer.heartbeat_interval_ms >= consumer.session_timeout_ms:
        yield (
            "consumer.heartbeatIntervalMs is not below consumer.sessionTimeoutMs; "
            "every session would expire before its first heartbeat"
        )
    if group.consumer_heartbeat_interval_ms >= group.consumer_session_timeout_ms:
        yield (
            "group.consumerHeartbeatIntervalMs is not below group.consumerSessionTimeoutMs; "
            "every session would expire before its first heartbeat"
        )
    if group.session_timeout_ms_min > group.session_timeout_ms_max:
        yield (
            "group.minSessionTimeoutMs is above group.maxSessionTimeoutMs; "
            "no session timeout would be valid"
        )
    for name, lowest, highest in (
        (
            "SessionTimeoutMs",
            group.consumer_session_timeout_ms_min,
            group.consumer_session_timeout_ms_max,
        ),
        (
            "HeartbeatIntervalMs",
            group.consumer_heartbeat_interval_ms_min,
            group.consumer_heartbeat_interval_ms_max,
        ),
    ):
        if lowest > highest:
            yield (
                f"group.consumerMin{name} is above group.consumerMax{name}; "
                "no value of a group would be valid"
            )


def _ui(config: Config) -> Iterator[str]:
    yield from _required_together(
        "ui.certFile", config.ui.cert_file, "ui.keyFile", config.ui.key_file
    )
    for name, value in {"username": config.ui.username, "password": config.ui.password}.items():
        variable = f"KAFSCALE_UI_{name.upper()}"
        if value and config.origin(f"ui.{name}") not in {DEFAULT, variable}:
            yield (
                f"ui.{name} is set in a file: console credentials are read from variables "
                f"only; remove it there, and set {variable}"
            )


def _required_together(path: str, value: str, other_path: str, other: str) -> Iterator[str]:
    """Two settings that are only valid as a pair."""
    if bool(value) != bool(other):
        given, missing = (path, other_path) if value else (other_path, path)
        yield f"{given} is set, but {missing} is not; set both or neither"
