"""Invalid combinations of settings are rejected, unusual ones are not."""

import pytest

from kafscale.config import load
from kafscale.errors import ConfigError

BUCKET = {"KAFSCALE_S3_BUCKET": "records"}
ETCD = {"KAFSCALE_ETCD_ENDPOINTS": "etcd-0:2379,etcd-1:2379"}
KEYS = {"KAFSCALE_S3_ACCESS_KEY": "key", "KAFSCALE_S3_SECRET_KEY": "secret"}

CONTROL = {
    "KAFSCALE_CONTROL_TLS_ENABLED": "true",
    "KAFSCALE_CONTROL_TLS_CERT_FILE": "/crt",
    "KAFSCALE_CONTROL_TLS_KEY_FILE": "/key",
    "KAFSCALE_CONTROL_TLS_CA_FILE": "/ca",
    "KAFSCALE_CONTROL_ADDR": ":9095",
}
SSL = {"KAFSCALE_BROKER_SECURITY_PROTOCOL": "SSL", "KAFSCALE_TLS_CERT_FILE": "/crt"}
SASL = {"KAFSCALE_BROKER_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
LISTENERS = {
    "KAFSCALE_BROKER_LISTENERS": "INSIDE://:9092,OUTSIDE://:9094",
    "KAFSCALE_BROKER_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
}
MECHANISMS = {"KAFSCALE_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-512"}


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        (ETCD, "etcd.endpoints is set, but s3.bucket is not"),
        (ETCD | {"KAFSCALE_USE_MEMORY_S3": "1"}, "etcd.endpoints is set, but s3.bucket is not"),
        (BUCKET | {"KAFSCALE_USE_MEMORY_S3": "1"}, "s3.bucket and s3.useMemory are both set"),
        ({"KAFSCALE_S3_ENDPOINT": "http://minio:9000"}, "s3.endpoint is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_KMS_ARN": "arn:aws:kms:x"}, "s3.kmsKeyArn is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_ROLE_ARN": "arn:aws:iam:x"}, "s3.roleArn is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_READ_BUCKET": "copies"}, "s3.readBucket is set, but s3.bucket is not"),
        (KEYS, "s3.accessKey is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_STS_ENDPOINT": "http://sts"}, "s3.stsEndpoint is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_CREATE_BUCKET": "true"}, "s3.createBucket is set, but s3.bucket is not"),
        ({"KAFSCALE_S3_MANAGE_LIFECYCLE": "1"}, "s3.manageLifecycle is set, but s3.bucket is not"),
        (
            BUCKET | {"KAFSCALE_S3_PROFILE": "p"},
            "s3.profile is set, but s3.credentialSource is env",
        ),
        (
            BUCKET | {"KAFSCALE_S3_CREDENTIALS_FILE": "/k", "KAFSCALE_S3_CREDENTIAL_SOURCE": "iam"},
            "s3.credentialsFile is set, but s3.credentialSource is iam",
        ),
        (BUCKET | {"KAFSCALE_S3_ACCESS_KEY": "key"}, "set, but s3.secretKey is not; set both"),
        (BUCKET | {"KAFSCALE_S3_SECRET_KEY": "key"}, "set, but s3.accessKey is not; set both"),
        (BUCKET | {"KAFSCALE_S3_SESSION_TOKEN": "t"}, "s3.sessionToken is set, but s3.accessKey"),
        (
            BUCKET | KEYS | {"KAFSCALE_S3_CREDENTIAL_SOURCE": "iam"},
            "s3.accessKey is set, but s3.credentialSource is iam",
        ),
        (
            BUCKET | ETCD | {"KAFSCALE_ETCD_USERNAME": "me"},
            "etcd.username is set, but etcd.password",
        ),
        (
            {"KAFSCALE_ETCD_USERNAME": "me", "KAFSCALE_ETCD_PASSWORD": "secret"},
            "etcd.username or etcd.tls.enabled is set, but etcd.endpoints is not",
        ),
        (
            BUCKET
            | {
                "KAFSCALE_S3_KMS_ARN": "arn:aws:kms",
                "KAFSCALE_S3_SERVER_SIDE_ENCRYPTION": "AES256",
            },
            "s3.kmsKeyArn and s3.serverSideEncryption AES256 are both set",
        ),
        *(
            (
                BUCKET | {variable: "http://10.0.0.1:9000", "KAFSCALE_S3_PATH_STYLE": "false"},
                f"s3.pathStyle is false, but {path} is an IP address",
            )
            for variable, path in {
                "KAFSCALE_S3_ENDPOINT": "s3.endpoint",
                "KAFSCALE_S3_READ_ENDPOINT": "s3.readEndpoint",
            }.items()
        ),
        ({"KAFSCALE_ETCD_TLS_ENABLED": "1"}, "etcd.tls.enabled is set, but etcd.endpoints is not"),
        (
            BUCKET | ETCD | {"KAFSCALE_ETCD_TLS_ENABLED": "1", "KAFSCALE_ETCD_TLS_CERT_FILE": "/c"},
            "etcd.tls.certFile is set, but etcd.tls.keyFile is not",
        ),
        (BUCKET | ETCD | {"KAFSCALE_ETCD_TLS_CA_FILE": "/ca"}, "but etcd.tls.enabled is false"),
        (
            BUCKET | {"KAFSCALE_ETCD_ENDPOINTS": "https://etcd:2379"},
            "etcd.endpoints has https://etcd:2379, but etcd.tls.enabled is false",
        ),
        (
            BUCKET
            | {"KAFSCALE_ETCD_ENDPOINTS": "http://etcd:2379", "KAFSCALE_ETCD_TLS_ENABLED": "1"},
            "etcd.endpoints has http://etcd:2379, but etcd.tls.enabled is true",
        ),
        ({"KAFSCALE_BROKER_PORT": "9093"}, "broker.port and broker.metricsPort are both 9093"),
        ({"KAFSCALE_CONTROL_ADDR": ":9093"}, "broker.metricsPort and broker.controlPort are both"),
        (
            {"KAFSCALE_BROKER_SECURITY_PROTOCOL": "SSL"},
            "a listener uses TLS, but tls.certFile is not set",
        ),
        (LISTENERS | MECHANISMS, "a listener uses TLS, but tls.certFile is not set"),
        (SSL | {"KAFSCALE_TLS_CLIENT_AUTH": "required"}, "but tls.caFile is not set"),
        (SSL | {"KAFSCALE_TLS_CLIENT_AUTH": "none,OUT=requested"}, "but tls.caFile is not set"),
        (SASL, "a listener uses SASL, but sasl.enabledMechanisms is empty"),
        (
            LISTENERS | {"KAFSCALE_TLS_CERT_FILE": "/crt"},
            "a listener uses SASL, but sasl.enabledMechanisms is empty",
        ),
        *(
            (CONTROL | {f"KAFSCALE_CONTROL_TLS_{name}_FILE": ""}, f"but control.tls.{key} is not")
            for name, key in {"CERT": "certFile", "KEY": "keyFile", "CA": "caFile"}.items()
        ),
        *(
            (
                secured | {"KAFSCALE_CONTROL_ADDR": ":9095"},
                "open to all on broker.controlHost 0.0.0.0",
            )
            for secured in (
                SASL | MECHANISMS,
                SSL | {"KAFSCALE_TLS_CLIENT_AUTH": "required", "KAFSCALE_TLS_CA_FILE": "/ca"},
                {"KAFSCALE_AUTHORIZATION_ENABLED": "true"},
            )
        ),
        (CONTROL | {"KAFSCALE_CONTROL_TLS_ENABLED": "0"}, "but control.tls.enabled is false"),
        ({"KAFSCALE_CONTROL_ALLOWED_SUBJECTS": "operator"}, "but control.tls.enabled is false"),
        ({"KAFSCALE_S3_LATENCY_WARN_MS": "3001"}, "s3.latencyWarnMs is above s3.latencyCritMs"),
        ({"KAFSCALE_S3_ERROR_RATE_CRIT": "0.1"}, "s3.errorRateWarn is above s3.errorRateCrit"),
        (
            {"KAFSCALE_CONSUMER_HEARTBEAT_INTERVAL_MS": "30s"},
            "consumer.heartbeatIntervalMs is not below consumer.sessionTimeoutMs",
        ),
        (
            {"KAFSCALE_GROUP_CONSUMER_SESSION_TIMEOUT_MS": "5s"},
            "group.consumerHeartbeatIntervalMs is not below group.consumerSessionTimeoutMs",
        ),
        (
            {"KAFSCALE_GROUP_MAX_SESSION_TIMEOUT_MS": "5999"},
            "group.minSessionTimeoutMs is above group.maxSessionTimeoutMs",
        ),
        ({"KAFSCALE_UI_CERT_FILE": "/crt"}, "ui.certFile is set, but ui.keyFile is not"),
    ],
)
def test_invalid_combination_is_rejected(environ, problem):
    with pytest.raises(ConfigError) as refused:
        load(environ)
    assert problem in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "environ",
    [
        BUCKET,  # one broker, its log in a bucket, its metadata beside it
        BUCKET | ETCD,
        BUCKET | KEYS | {"KAFSCALE_S3_SESSION_TOKEN": "token"},
        BUCKET | {"KAFSCALE_S3_ENDPOINT": "http://minio:9000", "KAFSCALE_S3_PATH_STYLE": "true"},
        BUCKET | {"KAFSCALE_S3_ROLE_ARN": "arn:aws:iam::1:role/k", "KAFSCALE_S3_READ_REGION": "eu"},
        BUCKET | {"KAFSCALE_S3_CREDENTIAL_SOURCE": "file", "KAFSCALE_S3_PROFILE": "records"},
        BUCKET | KEYS | {"KAFSCALE_S3_ROLE_ARN": "arn:aws:iam::1:role/k"},
        SASL | MECHANISMS,  # the control plane is on 127.0.0.1
        SASL | MECHANISMS | CONTROL,
        SSL | {"KAFSCALE_CONTROL_ADDR": ":9095"},  # no client has to authenticate
        {"KAFSCALE_USE_MEMORY_S3": "true"},
        {"KAFSCALE_S3_REGION": "eu-west-1"},
        {"KAFSCALE_BROKER_PORT": "0", "KAFSCALE_METRICS_ADDR": ":0", "KAFSCALE_CONTROL_ADDR": ":0"},
        {"KAFSCALE_SEGMENT_BYTES": "64Ki"},  # below the buffer: the smaller of the two decides
        BUCKET
        | {"KAFSCALE_ETCD_ENDPOINTS": "https://etcd:2379", "KAFSCALE_ETCD_TLS_ENABLED": "true"},
        {"KAFSCALE_UI_USERNAME": "admin", "KAFSCALE_UI_PASSWORD": "secret"},
        {"KAFSCALE_OPERATOR_ETCD_ENDPOINTS": "etcd:2379"},
        CONTROL | {"KAFSCALE_CONTROL_ALLOWED_SUBJECTS": "operator"},
        SSL | {"KAFSCALE_TLS_CLIENT_AUTH": "required", "KAFSCALE_TLS_CA_FILE": "/ca"},
        SASL | MECHANISMS | {"KAFSCALE_SASL_ENABLED_MECHANISMS": "PLAIN"},  # passwords in the clear
        LISTENERS | MECHANISMS | {"KAFSCALE_TLS_CERT_FILE": "OUTSIDE=/crt"},
        {"KAFSCALE_TLS_CERT_FILE": "/crt"},  # for a listener that is to come
        {"KAFSCALE_GROUP_MAX_SESSION_TIMEOUT_MS": "6000"},  # every session is as long
    ],
)
def test_valid_combination_is_accepted(environ):
    assert len(load(environ).origins) >= 1


@pytest.mark.parametrize("name", ["username", "password"])
def test_console_credentials_are_read_from_variables_only(tmp_path, name):
    file = tmp_path / "broker.yaml"
    file.write_text(f"ui: {{{name}: admin}}")
    with pytest.raises(ConfigError, match=f"set KAFSCALE_UI_{name.upper()}") as refused:
        load({}, file)
    assert "admin" not in str(refused.value)
    assert load({f"KAFSCALE_UI_{name.upper()}": "admin"}, file).ui
