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
def made(tmp_path):
    return create_dev_certificates(
        tmp_path / "certs", hosts=["broker-0.example.com"], users=["alice"], now=NOW, days=2
    )


def context(protocol, made, credential, **flags):
    built = ssl.SSLContext(protocol)
    built.load_cert_chain(credential.certificate, credential.key)
    built.load_verify_locations(made.authority)
    built.verify_mode = ssl.CERT_REQUIRED
    built.verify_flags |= ssl.VERIFY_X509_STRICT
    for name, value in flags.items():
        setattr(built, name, value)
    return built


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "broker-0.example.com"])
def test_certificates_pass_strict_verification(made, host):
    server = context(ssl.PROTOCOL_TLS_SERVER, made, made.server)
    client = context(ssl.PROTOCOL_TLS_CLIENT, made, made.users["alice"])
    assert exchange(shake_hands(client, server, host)) == b"hello"


def test_server_certificate_is_valid_for_clients_but_not_vice_versa(made):
    server = context(ssl.PROTOCOL_TLS_SERVER, made, made.server)
    shake_hands(context(ssl.PROTOCOL_TLS_CLIENT, made, made.server), server)
    posing = context(ssl.PROTOCOL_TLS_SERVER, made, made.users["alice"])
    client = context(ssl.PROTOCOL_TLS_CLIENT, made, made.users["alice"], check_hostname=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client, posing)


def test_certificates_are_valid_for_the_given_days(made):
    certificate = x509.load_pem_x509_certificate(made.server.certificate.read_bytes())
    assert certificate.not_valid_before_utc < NOW
    assert certificate.not_valid_after_utc == (NOW + dt.timedelta(days=2)).replace(microsecond=0)


def test_private_files_are_readable_by_the_owner_only(made):
    private = [made.authority_key, made.server.key, made.server.keystore]
    private += [made.users["alice"].key, made.users["alice"].keystore]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    assert set(made) >= set(private)


def test_pkcs12_files_contain_the_same_certificates(made):
    store = pkcs12.load_pkcs12(made.users["alice"].keystore.read_bytes(), PASSWORD.encode())
    issued = x509.load_pem_x509_certificate(made.users["alice"].certificate.read_bytes())
    assert store.cert is not None
    assert store.cert.certificate == issued
    assert store.key is not None
    trusted = pkcs12.load_pkcs12(made.truststore.read_bytes(), PASSWORD.encode())
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    assert [entry.certificate for entry in trusted.additional_certs] == [authority]


def test_existing_files_are_not_overwritten_by_default(made):
    directory, before = made.authority.parent, made.server.key.read_bytes()
    with pytest.raises(ConfigError, match=r"ca.crt exists"):
        create_dev_certificates(directory, users=["bob"], now=NOW, days=2)
    assert made.server.key.read_bytes() == before
    assert not (directory / "bob.crt").exists()
    create_dev_certificates(directory, users=["bob"], now=NOW, days=2, overwrites=True)
    assert made.server.key.read_bytes() != before
    assert made.server.key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("user", ["server", "ca"])
def test_reserved_user_name_is_rejected(tmp_path, user):
    with pytest.raises(ConfigError, match=f"cannot be named {user}"):
        create_dev_certificates(tmp_path, users=[user], now=NOW, days=2)
    assert list(tmp_path.iterdir()) == []
