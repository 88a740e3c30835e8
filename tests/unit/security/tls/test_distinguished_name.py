"""Names are written as Java writes them, so that rules and ACLs of Kafka hold here as well."""

import datetime as dt
import ssl

import pytest

from kafscale.security.tls.dev_ca import DevCa
from kafscale.security.tls.distinguished_name import format_name, subject
from unit.security.names import NAMES

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(("expected", "name"), NAMES.items(), ids=repr)
def test_a_name_is_written_as_java_writes_it(expected, name):
    assert format_name(name) == expected


@pytest.mark.parametrize("user", ["alice", "Tkac, Adam", "émile"])
def test_the_name_in_a_certificate_is_found(user):
    pem = DevCa.create(NOW, days=1).client(user).certificate_pem.decode()
    assert subject(ssl.PEM_cert_to_DER_cert(pem)) == "CN=" + user.replace(",", "\\,")
