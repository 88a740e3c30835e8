"""Listeners encrypt with the files that are named, and know their clients by certificates."""

import shutil
import ssl

import pytest
from structlog.testing import capture_logs

from kafscale.config.sections.security import ClientTls, Tls
from kafscale.errors import AuthenticationError, ConfigError
from kafscale.security.principal import ANONYMOUS
from kafscale.security.tls.context import ListenerTls, client_context
from services.certificates import make_certificates
from unit.security.handshake import exchange, shake_hands


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("made"), "alice")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """Of an authority that nobody knows."""
    return make_certificates(tmp_path_factory.mktemp("stranger"))


def settings(made, **others):
    files = {
        "cert_file": (str(made.server_certificate),),
        "key_file": (str(made.server_key),),
        "ca_file": (str(made.authority),),
    }
    return Tls(**(files | others))


def listener(made, **others):
    return ListenerTls(settings(made, **others), "EXTERNAL")


def client(made, user=None, **others):
    shown = made.users[user] if user else None
    files = {"cert_file": str(shown.certificate), "key_file": str(shown.key)} if shown else {}
    return client_context(ClientTls(ca_file=str(made.authority), **files, **others))


def test_nothing_old_or_weak_is_spoken(made):
    context = listener(made).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    for option in (ssl.OP_NO_COMPRESSION, ssl.OP_NO_RENEGOTIATION):
        assert context.options & option
    names = [cipher["name"] for cipher in context.get_ciphers()]
    assert names
    assert all(name.startswith(("TLS_", "ECDHE-")) for name in names)
    assert not any("CBC" in name or "SHA1" in name for name in names)


def test_only_the_newest_version_is_spoken_where_that_is_set(made):
    old = client(made)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert exchange(shake_hands(old, listener(made).context)) == b"hello"
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol|version"):
        shake_hands(old, listener(made, min_version="1.3").context)


def test_who_shows_no_certificate_is_nobody(made):
    for mode in ("none", "requested"):
        tls = listener(made, client_auth=(mode,))
        assert tls.principal(shake_hands(client(made), tls.context).server) is ANONYMOUS


def test_who_shows_a_certificate_is_known_by_its_name(made):
    for mode in ("requested", "required"):
        tls = listener(made, client_auth=(mode,))
        pair = shake_hands(client(made, "alice"), tls.context)
        assert tls.principal(pair.server).full_name == "User:CN=alice"


def test_a_certificate_that_is_not_asked_for_says_nothing(made):
    tls = listener(made, client_auth=("none",))
    assert tls.principal(shake_hands(client(made, "alice"), tls.context).server) is ANONYMOUS


def test_names_become_principals_by_the_rules(made):
    rules = "RULE:^CN=(a.*)$/$1/U"
    tls = listener(made, client_auth=("required",), principal_mapping_rules=rules)
    pair = shake_hands(client(made, "alice"), tls.context)
    assert tls.principal(pair.server).full_name == "User:ALICE"
    pair = shake_hands(client(made, "client"), tls.context)
    with pytest.raises(AuthenticationError):
        tls.principal(pair.server)


def test_who_has_to_show_a_certificate_and_does_not_is_refused(made, stranger):
    tls = listener(made, client_auth=("required",))
    with pytest.raises(ssl.SSLError, match="did not return a certificate"):
        shake_hands(client(made), tls.context)
    unknown = client_context(
        ClientTls(
            ca_file=str(made.authority),
            cert_file=str(stranger.client_certificate),
            key_file=str(stranger.client_key),
        )
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(unknown, tls.context)


def test_a_listener_has_its_own_files_and_ways(made, stranger):
    tls = Tls(
        cert_file=(str(stranger.server_certificate), f"EXTERNAL={made.server_certificate}"),
        key_file=(str(stranger.server_key), f"EXTERNAL={made.server_key}"),
        ca_file=(str(made.authority),),
        client_auth=("required", "EXTERNAL=none"),
    )
    shake_hands(client(made), ListenerTls(tls, "EXTERNAL").context)
    with pytest.raises(ssl.SSLError):
        shake_hands(client(made), ListenerTls(tls, "INTERNAL").context)


def test_a_client_checks_who_it_talks_to(made, stranger):
    tls = listener(made)
    with pytest.raises(ssl.SSLCertVerificationError, match="local issuer"):
        shake_hands(client(stranger), tls.context)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(client(made), tls.context, "elsewhere.example.com")
    unnamed = client(made, check_host=False)
    assert exchange(shake_hands(unnamed, tls.context, "elsewhere.example.com")) == b"hello"


def test_a_client_without_an_authority_trusts_those_of_the_system(made):
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(ClientTls()), listener(made).context)


@pytest.fixture
def renewable(tmp_path):
    """Files of the test's own, that it may replace."""
    return make_certificates(tmp_path / "renewable")


def renew(renewable, other):
    for path in (renewable.server_certificate, renewable.server_key):
        shutil.copy(other.authority.parent / path.name, path)


def test_new_files_are_for_new_connections_and_old_ones_stay(renewable, made):
    tls = listener(renewable)
    before = tls.context
    old = shake_hands(client(renewable), tls.context)
    assert not tls.refresh()
    renew(renewable, made)
    with capture_logs() as logs:
        assert tls.refresh()
    assert tls.context is not before
    assert exchange(shake_hands(client(made), tls.context)) == b"hello"
    assert exchange(old) == b"hello"
    assert [line["event"] for line in logs] == ["certificate reloaded"]


def test_files_of_no_use_are_told_once_and_the_former_stay_in_use(renewable, made):
    tls = listener(renewable)
    before = tls.context
    shutil.copy(made.server_certificate, renewable.server_certificate)
    with capture_logs() as logs:
        assert not tls.refresh()
        assert not tls.refresh()
    assert tls.context is before
    [line] = logs
    assert (line["log_level"], line["event"]) == ("error", "certificate not reloaded")
    assert "does not match the certificate" in line["reason"]
    shutil.copy(made.server_key, renewable.server_key)
    assert tls.refresh()


def test_an_authority_that_is_replaced_is_not_trusted_any_more(renewable, made):
    tls = listener(renewable, client_auth=("required",))
    shake_hands(client(renewable, "client"), tls.context)
    shutil.copy(made.authority, renewable.authority.with_name("new"))
    renewable.authority.with_name("new").rename(renewable.authority)
    assert tls.refresh()
    untrusted = client_context(
        ClientTls(
            ca_file=str(made.authority),
            cert_file=str(renewable.client_certificate),
            key_file=str(renewable.client_key),
            check_host=False,
        )
    )
    untrusted.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(untrusted, tls.context)


@pytest.mark.parametrize(
    ("others", "complaint"),
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
def test_a_start_with_settings_of_no_use_is_refused(made, others, complaint):
    with pytest.raises(ConfigError, match=complaint):
        listener(made, **others)


def test_a_key_of_another_certificate_is_refused(made, stranger):
    with pytest.raises(ConfigError, match=r"tls.keyFile: .* does not match"):
        listener(made, key_file=(str(stranger.server_key),))


def test_a_file_that_only_looks_right_is_refused(made, tmp_path):
    broken = tmp_path / "broken.crt"
    broken.write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    with pytest.raises(
        ConfigError, match=r"tls.certFile and tls.keyFile: OpenSSL cannot load .*broken.crt and"
    ):
        listener(made, cert_file=(str(broken),))
    with pytest.raises(ConfigError, match=r"client.tls.caFile: OpenSSL cannot load .*broken.crt"):
        client_context(ClientTls(ca_file=str(broken)))


def test_an_encrypted_key_needs_its_password(made, tmp_path):
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(made.server_key.read_bytes(), None)
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    files = {"key_file": (str(encrypted),)}
    shake_hands(client(made), listener(made, key_password="secret", **files).context)  # noqa: S106
    for wrong in ("", "other"):
        with pytest.raises(ConfigError, match="encrypted with another password") as caught:
            listener(made, key_password=wrong, **files)
        assert "secret" not in str(caught.value)


def test_a_certificate_and_its_key_may_share_a_file(made, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(made.server_certificate.read_bytes() + made.server_key.read_bytes())
    tls = listener(made, cert_file=(str(both),), key_file=())
    shake_hands(client(made), tls.context)


def test_an_authority_between_others_may_be_trusted_by_itself(made):
    """As in Java: who is named is trusted, whoever has certified them."""
    tls = listener(made, client_auth=("required",), ca_file=(str(made.client_certificate),))
    assert shake_hands(client(made, "client"), tls.context)
