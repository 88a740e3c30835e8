"""Certificates that are renewed while clients are there."""

import ssl

import pytest

from services.certificates import make_certificates
from services.secured_broker import ADMIN, SecuredBroker
from services.secured_wire import SecuredWire
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(40)


@pytest.fixture
def broker(tmp_path):
    with SecuredBroker(tmp_path, tls_reload_interval_ms="200") as running:
        yield running


def shown(way):
    """The certificate that a new connection is shown."""
    with SecuredWire(way) as wire:
        return wire.socket.getpeercert(binary_form=True)


def renew(files, new):
    for old, path in [
        (files.server_key, new.server_key),
        (files.server_certificate, new.server_certificate),
        (files.authority, new.authority),
    ]:
        old.write_bytes(path.read_bytes())


def test_new_certificates_hold_for_new_connections_and_old_connections_stay(broker, tmp_path):
    way = broker.certificate(ADMIN)
    new = make_certificates(tmp_path / "new", ADMIN, name="the next CA")
    new_way = way.but(authority=new.authority, credential=new.users[ADMIN])
    with SecuredWire(way) as staying:
        before = shown(way)
        assert staying.metadata().brokers
        renew(broker.certificates, new)

        def is_renewed():
            try:
                return shown(new_way) != before
            except ssl.SSLError:  # The old one is not from the next authority.
                return False

        wait_until(is_renewed, "the new certificate", seconds_max=10)
        assert staying.metadata().brokers
        with SecuredWire(new_way) as coming:
            assert coming.metadata().brokers
        # Certificates of clients are checked against the new authority as well.
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            SecuredWire(new_way.but(credential=way.credential)) as stranger,
        ):
            stranger.metadata()


def test_files_that_are_broken_change_nothing(broker):
    way = broker.certificate(ADMIN)
    before = shown(way)
    broker.certificates.server_certificate.write_bytes(b"half of a certifica")
    wait_until(lambda: "certificate not reloaded" in broker.logged(), "a complaint")
    assert shown(way) == before
