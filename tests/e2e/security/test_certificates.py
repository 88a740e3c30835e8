"""Certificates are renewed while clients are connected."""

import ssl

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from services.certificates import make_certificates
from services.secured_broker import ADMIN, SecuredBroker
from services.secured_wire import SecuredWire
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(40)


@pytest.fixture
def broker(tmp_path):
    with SecuredBroker(tmp_path, tls_reload_interval_ms="200") as running:
        yield running


def server_certificate(config):
    """The server certificate that a new connection gets."""
    with SecuredWire(config) as wire:
        return wire.socket.getpeercert(binary_form=True)


def renew(files, new):
    for old, path in [
        (files.server_key, new.server_key),
        (files.server_certificate, new.server_certificate),
        (files.authority, new.authority),
    ]:
        old.write_bytes(path.read_bytes())


def test_new_certificates_apply_to_new_connections_only(broker, tmp_path):
    config = broker.certificate(ADMIN)
    new = make_certificates(tmp_path / "new", ADMIN, name="the next CA")
    new_config = config.with_changes(authority=new.authority, credential=new.users[ADMIN])
    with SecuredWire(config) as old_connection:
        before = server_certificate(config)
        assert old_connection.metadata().brokers
        renew(broker.certificates, new)

        def is_renewed():
            try:
                return server_certificate(new_config) != before
            except ssl.SSLError:  # The old certificate is not signed by the new CA.
                return False

        wait_until(is_renewed, "the new certificate", seconds_max=10)
        assert old_connection.metadata().brokers
        with SecuredWire(new_config) as new_connection:
            assert new_connection.metadata().brokers
        # Client certificates are verified with the new CA as well.
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            SecuredWire(new_config.with_changes(credential=config.credential)) as untrusted,
        ):
            untrusted.metadata()


def test_expiration_is_a_metric(broker):
    shown = {
        sample.labels["file"]: sample.value
        for family in text_string_to_metric_families(broker.http("/metrics")[1])
        for sample in family.samples
        if family.name == "kafscale_certificate_expiration_timestamp_seconds"
    }
    file = broker.certificates.server_certificate
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    assert shown == {str(file): certificate.not_valid_after_utc.timestamp()}


def test_invalid_certificate_file_is_ignored(broker):
    config = broker.certificate(ADMIN)
    before = server_certificate(config)
    broker.certificates.server_certificate.write_bytes(b"half of a certifica")
    wait_until(lambda: "certificate not reloaded" in broker.logged(), "a log line")
    assert server_certificate(config) == before
