"""Subjects are formatted as in Java, for Kafka's mapping rules and ACLs."""

import datetime as dt
import ssl

import pytest

from kafscale.security.tls.distinguished_name import format_name, subject
from kafscale.security.tls.issuer import CertificateIssuer
from unit.security.certificate_names import NAMES

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(("expected", "name"), NAMES.items(), ids=repr)
def test_name_is_formatted_as_in_java(expected, name):
    assert format_name(name) == expected


@pytest.mark.parametrize("user", ["alice", "Tkac, Adam", "émile"])
def test_subject_of_a_certificate(user):
    pem = CertificateIssuer.create(NOW, 1, "CA").client(user).certificate_pem.decode()
    assert subject(ssl.PEM_cert_to_DER_cert(pem)) == "CN=" + user.replace(",", "\\,")
