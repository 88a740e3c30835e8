"""Development certificates pass strict verification, and keys are private."""

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from kafscale.errors import ConfigError
from kafscale.security.tls.dev_ca import PASSWORD, create_dev_certificates
from unit.security.handshake import exchange, shake_hands

NOW = dt.datetime.now(dt.UTC)


@pytest.fixture
def certificates(tmp_path):
    return create_dev_certificates(
        tmp_path / "certs", hosts=["broker-0.example.com"], users=["alice"], now=NOW, days=2
    )


def context(protocol, certificates, credential, **flags):
    built = ssl.SSLContext(protocol)
    built.load_cert_chain(credential.certificate, credential.key)
    built.load_verify_locations(certificates.authority)
    built.verify_mode = ssl.CERT_REQUIRED
    built.verify_flags |= ssl.VERIFY_X509_STRICT
    for name, value in flags.items():
        setattr(built, name, value)
    return built


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "broker-0.example.com"])
def test_certificates_pass_strict_verification(certificates, host):
    server = context(ssl.PROTOCOL_TLS_SERVER, certificates, certificates.server)
    client = context(ssl.PROTOCOL_TLS_CLIENT, certificates, certificates.users["alice"])
    assert exchange(shake_hands(client, server, host)) == b"hello"


def test_server_certificate_is_valid_for_clients_but_not_vice_versa(certificates):
    server = context(ssl.PROTOCOL_TLS_SERVER, certificates, certificates.server)
    shake_hands(context(ssl.PROTOCOL_TLS_CLIENT, certificates, certificates.server), server)
    posing = context(ssl.PROTOCOL_TLS_SERVER, certificates, certificates.users["alice"])
    client = context(
        ssl.PROTOCOL_TLS_CLIENT, certificates, certificates.users["alice"], check_hostname=False
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client, posing)


def test_certificates_are_valid_for_the_given_days(certificates):
    certificate = x509.load_pem_x509_certificate(certificates.server.certificate.read_bytes())
    assert certificate.not_valid_before_utc < NOW
    assert certificate.not_valid_after_utc == (NOW + dt.timedelta(days=2)).replace(microsecond=0)


def test_private_files_are_readable_by_the_owner_only(certificates):
    private = [certificates.authority_key, certificates.server.key, certificates.server.keystore]
    private += [certificates.users["alice"].key, certificates.users["alice"].keystore]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    assert set(certificates) >= set(private)


def test_pkcs12_files_contain_the_same_certificates(certificates):
    store = pkcs12.load_pkcs12(certificates.users["alice"].keystore.read_bytes(), PASSWORD.encode())
    issued = x509.load_pem_x509_certificate(certificates.users["alice"].certificate.read_bytes())
    assert store.cert is not None
    assert store.cert.certificate == issued
    assert store.key is not None
    trusted = pkcs12.load_pkcs12(certificates.truststore.read_bytes(), PASSWORD.encode())
    authority = x509.load_pem_x509_certificate(certificates.authority.read_bytes())
    assert [entry.certificate for entry in trusted.additional_certs] == [authority]


def test_existing_files_are_not_overwritten_by_default(certificates):
    directory, before = certificates.authority.parent, certificates.server.key.read_bytes()
    with pytest.raises(ConfigError, match=r"ca.crt exists"):
        create_dev_certificates(directory, users=["bob"], now=NOW, days=2)
    assert certificates.server.key.read_bytes() == before
    assert not (directory / "bob.crt").exists()
    create_dev_certificates(directory, users=["bob"], now=NOW, days=2, overwrites=True)
    assert certificates.server.key.read_bytes() != before
    assert certificates.server.key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("user", ["server", "ca"])
def test_reserved_user_name_is_rejected(tmp_path, user):
    with pytest.raises(ConfigError, match=f"cannot be named {user}"):
        create_dev_certificates(tmp_path, users=[user], now=NOW, days=2)
    assert list(tmp_path.iterdir()) == []
