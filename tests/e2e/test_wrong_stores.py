"""A broker whose settings of S3 or etcd are wrong ends with one sentence that says what to change.

The servers are real ones. `tests/integration` has the same for single stores.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from services import s3_server
from services.broker import BrokerProcess
from services.certificates import Certificates, make_certificates
from services.etcd_server import PASSWORD, USERNAME, EtcdServer
from services.process import free_port
from services.s3_server import BUCKET, S3Server, broker_settings, key_variables

pytestmark = pytest.mark.timeout(600)  # The first run builds the S3 server.

STARTUP_SECONDS = 4
"""Enough to load botocore on a busy machine; brokers that retry take as long."""
EXIT_SECONDS_MAX = 30


@dataclass
class Servers:
    """One server of each kind, and a CA that none of them uses."""

    s3: S3Server
    s3_tls: S3Server
    etcd: EtcdServer
    etcd_tls: EtcdServer
    etcd_auth: EtcdServer
    certificates: Certificates
    other_ca: Path

    @property
    def values(self) -> dict[str, str]:
        """What the settings of the tests may refer to."""
        return {
            "s3": self.s3.bucket.endpoint.removeprefix("http://"),
            "s3_tls": self.s3_tls.bucket.endpoint.removeprefix("https://"),
            "etcd": self.etcd.members[0].endpoint,
            "etcd_tls": self.etcd_tls.members[0].endpoint,
            "etcd_auth": self.etcd_auth.members[0].endpoint,
            "ca": str(self.certificates.authority),
            "other_ca": str(self.other_ca),
            "closed": f"127.0.0.1:{free_port()}",
        }


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[Servers]:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    directories = {
        name: tmp_path_factory.mktemp(name)
        for name in ("ca", "other", "iam", "s3", "s3-tls", "etcd", "etcd-tls", "etcd-auth")
    }
    certificates = make_certificates(directories["ca"])
    with ExitStack() as stack:
        servers = Servers(
            stack.enter_context(
                S3Server(directories["s3"], options=["--iam-dir", directories["iam"]])
            ),
            stack.enter_context(S3Server(directories["s3-tls"], certificates=certificates)),
            stack.enter_context(EtcdServer(directories["etcd"])),
            stack.enter_context(EtcdServer(directories["etcd-tls"], certificates=certificates)),
            stack.enter_context(EtcdServer(directories["etcd-auth"])),
            certificates,
            make_certificates(directories["other"]).authority,
        )
        servers.s3.add_user("stranger", "stranger-key")
        servers.etcd_auth.control("user", "add", "reader:reader")
        servers.etcd_auth.control("role", "add", "reader")
        servers.etcd_auth.control("role", "grant-permission", "reader", "read", "/")
        servers.etcd_auth.control("user", "grant-role", "reader", "reader")
        servers.etcd_auth.enable_authentication()
        yield servers


USER = {"etcd_endpoints": "{etcd_auth}", "etcd_username": USERNAME, "etcd_password": PASSWORD}
TLS = {"etcd_endpoints": "{etcd_tls}", "etcd_tls_enabled": "true", "etcd_tls_ca_file": "{ca}"}


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"s3_endpoint": "http://no-such-host.invalid:9000"}, "check s3.endpoint"),
        ({"s3_endpoint": "http://{closed}"}, "Connection refused; check s3.endpoint"),
        ({"s3_endpoint": "http://127.0.0.1:99999"}, "s3.endpoint (KAFSCALE_S3_ENDPOINT): "),
        ({"s3_endpoint": "http://{s3}/" + BUCKET}, "s3.endpoint: it must be that of an S3 server"),
        ({"s3_endpoint": "http://{etcd}"}, "s3.endpoint: it must be that of an S3 server"),
        ({"s3_endpoint": "https://{s3}"}, "s3.endpoint must begin with http://"),
        ({"s3_endpoint": "http://{s3_tls}"}, "s3.endpoint must begin with https://"),
        ({"s3_endpoint": "https://{s3_tls}"}, "add its CA to those of the system"),
        ({"s3_path_style": "false"}, "remove s3.pathStyle"),
        ({"s3_region": "eu-west-1"}, "set s3.region to the bucket's"),
        ({"s3_bucket": "no-such-bucket"}, "correct s3.bucket"),
        ({"s3_access_key": "unknown"}, "check the credentials (s3.credentialSource"),
        ({"s3_secret_key": "wrong"}, "check the credentials (s3.credentialSource"),
        ({"s3_access_key": "", "s3_secret_key": ""}, "neither s3.accessKey nor AWS_ACCESS_KEY_ID"),
        (
            {"s3_access_key": "stranger", "s3_secret_key": "stranger-key"},
            "allow these credentials s3:ListBucket",
        ),
        (
            {"s3_role_arn": "arn:aws:iam::1:role/k", "s3_sts_endpoint": "http://{closed}"},
            "check s3.endpoint and s3.stsEndpoint",
        ),
        ({"etcd_endpoints": "no-such-host.invalid:2379"}, "check etcd.endpoints"),
        ({"etcd_endpoints": "{closed}"}, "Connection refused; check etcd.endpoints"),
        ({"etcd_endpoints": "{s3}"}, "it is not etcd; set etcd.endpoints"),
        ({"etcd_endpoints": "{etcd_auth}"}, "set etcd.username and etcd.password"),
        (USER | {"etcd_password": "wrong"}, "check etcd.username and etcd.password"),
        (USER | {"etcd_username": "unknown"}, "check etcd.username and etcd.password"),
        (
            USER | {"etcd_username": "reader", "etcd_password": "reader"},
            "let the user of etcd.username read and write",
        ),
        ({"etcd_endpoints": "{etcd_tls}"}, "set etcd.tls.enabled to true"),
        (TLS | {"etcd_endpoints": "{etcd}"}, "set etcd.tls.enabled to false"),
        (TLS | {"etcd_tls_ca_file": "{other_ca}"}, "not trusted (etcd.tls.caFile)"),
        (TLS | {"etcd_tls_ca_file": "/no/such/file"}, "etcd.tls.caFile: cannot read"),
        (TLS, "needs one (etcd.tls.certFile)"),
    ],
    ids=lambda value: ",".join(map("=".join, value.items())) if isinstance(value, dict) else "",
)
def test_broker_says_what_to_change(servers, tmp_path, settings, advice):
    wrong = {name: text.format(**servers.values) for name, text in settings.items()}
    broker = BrokerProcess(
        tmp_path / str(uuid4()),
        **{
            "broker_id": "0",
            "startup_timeout_sec": str(STARTUP_SECONDS),
            **broker_settings(servers.s3.bucket),
            **wrong,
        },
    )
    process = broker.launch()
    try:
        assert process.wait(EXIT_SECONDS_MAX) == 1
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    logged = broker.logged()
    assert "Traceback" not in logged
    assert "panicked" not in logged
    [error] = [line for line in logged.splitlines() if line.startswith("error: ")]
    assert advice in error


def test_custom_endpoint_needs_no_path_style(start_broker, servers, monkeypatch):
    """Neither with an IP address nor with a name; a CA of one's own is in SSL_CERT_FILE."""
    monkeypatch.setenv("SSL_CERT_FILE", str(servers.certificates.authority))
    keys = {
        name.removeprefix("KAFSCALE_").lower(): text
        for name, text in key_variables(servers.s3.bucket).items()
    }
    for endpoint in ("http://{s3}", "https://{s3_tls}"):
        url = endpoint.format(**servers.values)
        for address in (url, url.replace("127.0.0.1", "localhost")):
            broker = start_broker(
                s3_bucket=BUCKET, s3_endpoint=address, s3_namespace=str(uuid4()), **keys
            )
            broker.kill()
