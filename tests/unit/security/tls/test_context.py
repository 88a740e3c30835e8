"""`ListenerTls`: certificates, client authentication and reloading."""

import datetime as dt
import shutil
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from structlog.testing import capture_logs

from kafscale.config.sections.security import ClientTls, Tls
from kafscale.errors import AuthenticationError, ConfigError
from kafscale.net import tls_files
from kafscale.security.principal import ANONYMOUS
from kafscale.security.tls.context import ListenerTls, client_context
from kafscale.security.tls.issuer import IssuedCertificate
from services.certificates import make_certificates
from unit.security.handshake import exchange, shake_hands


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"), "alice")


@pytest.fixture(scope="session")
def untrusted(tmp_path_factory):
    """Certificates of an untrusted CA."""
    return make_certificates(tmp_path_factory.mktemp("untrusted"))


def settings(certificates, **others):
    files = {
        "cert_file": (str(certificates.server_certificate),),
        "key_file": (str(certificates.server_key),),
        "ca_file": (str(certificates.authority),),
    }
    return Tls(**(files | others))


def listener(certificates, **others):
    return ListenerTls(settings(certificates, **others), "EXTERNAL")


def client(certificates, user=None, **others):
    shown = certificates.users[user] if user else None
    files = {"cert_file": str(shown.certificate), "key_file": str(shown.key)} if shown else {}
    return client_context(ClientTls(ca_file=str(certificates.authority), **files, **others))


def test_old_versions_and_weak_ciphers_are_rejected(certificates):
    context = listener(certificates).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    for option in (ssl.OP_NO_COMPRESSION, ssl.OP_NO_RENEGOTIATION):
        assert context.options & option
    names = [cipher["name"] for cipher in context.get_ciphers()]
    assert names
    assert all(name.startswith(("TLS_", "ECDHE-")) for name in names)
    assert not any("CBC" in name or "SHA1" in name for name in names)


def test_minimum_version_is_configurable(certificates):
    old = client(certificates)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert exchange(shake_hands(old, listener(certificates).context)) == b"hello"
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol|version"):
        shake_hands(old, listener(certificates, min_version="1.3").context)


def test_client_without_certificate_is_anonymous(certificates):
    for mode in ("none", "requested"):
        tls = listener(certificates, client_auth=(mode,))
        assert tls.principal(shake_hands(client(certificates), tls.context).server) is ANONYMOUS


def test_client_certificate_determines_the_principal(certificates):
    for mode in ("requested", "required"):
        tls = listener(certificates, client_auth=(mode,))
        pair = shake_hands(client(certificates, "alice"), tls.context)
        assert tls.principal(pair.server).full_name == "User:CN=alice"


def test_unrequested_certificate_is_ignored(certificates):
    tls = listener(certificates, client_auth=("none",))
    assert (
        tls.principal(shake_hands(client(certificates, "alice"), tls.context).server) is ANONYMOUS
    )


def test_mapping_rules_are_applied(certificates):
    rules = "RULE:^CN=(a.*)$/$1/U"
    tls = listener(certificates, client_auth=("required",), principal_mapping_rules=rules)
    pair = shake_hands(client(certificates, "alice"), tls.context)
    assert tls.principal(pair.server).full_name == "User:ALICE"
    pair = shake_hands(client(certificates, "client"), tls.context)
    with pytest.raises(AuthenticationError):
        tls.principal(pair.server)


def test_missing_required_certificate_is_rejected(certificates, untrusted):
    tls = listener(certificates, client_auth=("required",))
    with pytest.raises(ssl.SSLError, match="did not return a certificate"):
        shake_hands(client(certificates), tls.context)
    unknown = client_context(
        ClientTls(
            ca_file=str(certificates.authority),
            cert_file=str(untrusted.client_certificate),
            key_file=str(untrusted.client_key),
        )
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(unknown, tls.context)


def test_listeners_have_their_own_settings(certificates, untrusted):
    tls = Tls(
        cert_file=(
            str(untrusted.server_certificate),
            f"EXTERNAL={certificates.server_certificate}",
        ),
        key_file=(str(untrusted.server_key), f"EXTERNAL={certificates.server_key}"),
        ca_file=(str(certificates.authority),),
        client_auth=("required", "EXTERNAL=none"),
    )
    shake_hands(client(certificates), ListenerTls(tls, "EXTERNAL").context)
    with pytest.raises(ssl.SSLError):
        shake_hands(client(certificates), ListenerTls(tls, "INTERNAL").context)


def test_client_verifies_the_host_name(certificates, untrusted):
    tls = listener(certificates)
    with pytest.raises(ssl.SSLCertVerificationError, match="local issuer"):
        shake_hands(client(untrusted), tls.context)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(client(certificates), tls.context, "elsewhere.example.com")
    unnamed = client(certificates, verify_hostname=False)
    assert exchange(shake_hands(unnamed, tls.context, "elsewhere.example.com")) == b"hello"


def test_client_without_ca_uses_system_certificates(certificates):
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(ClientTls()), listener(certificates).context)


@pytest.fixture
def renewable(tmp_path):
    """Files of the test's own, that it may replace."""
    return make_certificates(tmp_path / "renewable")


def renew(renewable, other):
    for path in (renewable.server_certificate, renewable.server_key):
        shutil.copy(other.authority.parent / path.name, path)


def test_reloaded_files_apply_to_new_connections_only(renewable, certificates):
    tls = listener(renewable)
    before = tls.context
    old = shake_hands(client(renewable), tls.context)
    assert not tls.refresh()
    renew(renewable, certificates)
    with capture_logs() as logs:
        assert tls.refresh()
    assert tls.context is not before
    assert exchange(shake_hands(client(certificates), tls.context)) == b"hello"
    assert exchange(old) == b"hello"
    assert [line["event"] for line in logs] == ["certificate reloaded"]


def test_unusable_files_are_logged_once_and_the_previous_stay(renewable, certificates):
    tls = listener(renewable)
    before = tls.context
    shutil.copy(certificates.server_certificate, renewable.server_certificate)
    with capture_logs() as logs:
        assert not tls.refresh()
        assert not tls.refresh()
    assert tls.context is before
    [line] = logs
    assert (line["log_level"], line["event"]) == ("error", "certificate not reloaded")
    assert "does not match the certificate" in line["reason"]
    shutil.copy(certificates.server_key, renewable.server_key)
    assert tls.refresh()


def test_replaced_ca_is_no_longer_trusted(renewable, certificates):
    tls = listener(renewable, client_auth=("required",))
    shake_hands(client(renewable, "client"), tls.context)
    shutil.copy(certificates.authority, renewable.authority.with_name("new"))
    renewable.authority.with_name("new").rename(renewable.authority)
    assert tls.refresh()
    untrusted = client_context(
        ClientTls(
            ca_file=str(certificates.authority),
            cert_file=str(renewable.client_certificate),
            key_file=str(renewable.client_key),
            verify_hostname=False,
        )
    )
    untrusted.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(untrusted, tls.context)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"cert_file": ()}, "tls.certFile has no certificate for listener EXTERNAL"),
        ({"cert_file": ("absent.crt",)}, r"tls.certFile: cannot read absent.crt \(No such file"),
        ({"key_file": ("absent.key",)}, "tls.keyFile: cannot read absent.key"),
        ({"key_file": ()}, "tls.keyFile: .*server.crt contains no private key"),
        ({"ca_file": (), "client_auth": ("required",)}, "tls.caFile has no CA certificate"),
        ({"ca_file": (), "client_auth": ("requested",)}, "tls.caFile has no CA certificate"),
        ({"ca_file": ("absent",), "client_auth": ("required",)}, "tls.caFile: cannot read absent"),
        ({"ciphers": "NONSENSE"}, "tls.ciphers: OpenSSL supports no cipher of 'NONSENSE'"),
        ({"principal_mapping_rules": "NONSENSE"}, "tls.principalMappingRules"),
    ],
)
def test_invalid_settings_fail_the_start(certificates, others, message):
    with pytest.raises(ConfigError, match=message):
        listener(certificates, **others)


def test_key_of_another_certificate_is_rejected(certificates, untrusted):
    with pytest.raises(ConfigError, match=r"tls.keyFile: .* does not match"):
        listener(certificates, key_file=(str(untrusted.server_key),))


def test_malformed_pem_is_rejected(certificates, tmp_path):
    broken = tmp_path / "broken.crt"
    broken.write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    with pytest.raises(
        ConfigError, match=r"tls.certFile and tls.keyFile: OpenSSL cannot load .*broken.crt and"
    ):
        listener(certificates, cert_file=(str(broken),))
    with pytest.raises(ConfigError, match=r"client.tls.caFile: OpenSSL cannot load .*broken.crt"):
        client_context(ClientTls(ca_file=str(broken)))


def test_encrypted_key_needs_its_password(certificates, tmp_path):
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(certificates.server_key.read_bytes(), None)
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    files = {"key_file": (str(encrypted),)}
    server = listener(certificates, key_password="secret", **files)  # noqa: S106
    shake_hands(client(certificates), server.context)
    for wrong in ("", "other"):
        with pytest.raises(ConfigError, match="encrypted with another password") as caught:
            listener(certificates, key_password=wrong, **files)
        assert "secret" not in str(caught.value)


def test_certificate_and_key_may_share_a_file(certificates, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(
        certificates.server_certificate.read_bytes() + certificates.server_key.read_bytes()
    )
    tls = listener(certificates, cert_file=(str(both),), key_file=())
    shake_hands(client(certificates), tls.context)


def test_intermediate_ca_may_be_trusted(certificates):
    """As in Java: a CA certificate in the file is trusted, even if it is an intermediate one."""
    tls = listener(
        certificates, client_auth=("required",), ca_file=(str(certificates.client_certificate),)
    )
    assert shake_hands(client(certificates, "client"), tls.context)


# --- revocation and expiry ------------------------------------------------------------------------


def revoke(certificates, *users, lifetime=dt.timedelta(days=1), path):
    """Write the revocation list of the CA."""
    ca = certificates.authority
    issuer = IssuedCertificate.read(ca.read_bytes(), ca.with_suffix(".key").read_bytes())
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateRevocationListBuilder(
        issuer_name=issuer.certificate.subject,
        last_update=now - dt.timedelta(days=2),
        next_update=now + lifetime,
    )
    for user in users:
        pem = certificates.users[user].certificate.read_bytes()
        serial = x509.load_pem_x509_certificate(pem).serial_number
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder(serial, now - dt.timedelta(days=1)).build()
        )
    signed = builder.sign(issuer.key, hashes.SHA256())
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return path


def test_revoked_certificate_is_rejected_once_the_list_is_reloaded(certificates, tmp_path):
    crl = revoke(certificates, path=tmp_path / "ca.crl")
    tls = listener(certificates, client_auth=("required",), crl_file=(str(crl),))
    for user in ("alice", "client"):
        shake_hands(client(certificates, user), tls.context)
    revoke(certificates, "alice", path=crl)
    assert tls.refresh()
    shake_hands(client(certificates, "client"), tls.context)
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        shake_hands(client(certificates, "alice"), tls.context)


def test_expired_revocation_list_rejects_all_clients(certificates, tmp_path):
    crl = revoke(certificates, lifetime=-dt.timedelta(hours=1), path=tmp_path / "ca.crl")
    tls = listener(certificates, client_auth=("required",), crl_file=(str(crl),))
    with pytest.raises(ssl.SSLError, match="CRL has expired"):
        shake_hands(client(certificates, "client"), tls.context)
    assert tls_files.expiration_s(str(crl)) < time.time()


def test_revocation_list_must_be_one_and_needs_client_certificates(certificates, tmp_path):
    with pytest.raises(ConfigError, match="contains no certificate revocation list"):
        listener(
            certificates,
            client_auth=("required",),
            crl_file=(str(certificates.server_certificate),),
        )
    crl = revoke(certificates, path=tmp_path / "ca.crl")
    with pytest.raises(ConfigError, match="requests no client certificates"):
        listener(certificates, crl_file=(str(crl),))


def test_expiration_is_that_of_the_file(certificates, tmp_path):
    day_s = dt.timedelta(days=1).total_seconds()
    expires_s = tls_files.expiration_s(str(certificates.server_certificate))
    assert time.time() < expires_s <= time.time() + day_s
    assert tls_files.expiration_s(str(tmp_path / "missing")) == 0
    assert tls_files.expiration_s(str(certificates.server_key)) == 0
