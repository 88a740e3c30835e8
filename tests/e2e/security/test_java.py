"""Java clients by every mechanism, and Kafka's own tools for users and rules.

A JVM takes a second or two to start, so that one does all the logins.
"""


import pytest

from services import java
from services.certificates import make_certificates
from services.client_program import HOME

pytestmark = [
    pytest.mark.timeout(300),  # The first run fetches the tools.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

LOGINS = str(HOME / "java" / "Logins.java")


def test_java_comes_in_by_what_is_right_and_says_why_it_does_not(secured, own_topic, tmp_path):
    strangers = make_certificates(tmp_path / "strangers", "alice", name="another CA")
    tries = [
        (secured.plain("alice"), "ok"),
        (secured.scram("alice", "SHA-256"), "ok"),
        (secured.scram("alice", "SHA-512"), "ok"),
        (secured.inside("alice"), "ok"),
        (secured.token("alice"), "ok"),
        (secured.certificate("alice"), "ok"),
        (secured.certificate("bob"), "TopicAuthorizationException"),
        (secured.plain("alice").but(password="secret-of-nobody"), "SaslAuthenticationException"),
        (secured.scram("alice").but(user="nobody"), "SaslAuthenticationException"),
        (secured.inside("alice").but(mechanism="PLAIN"), "UnsupportedSaslMechanismException"),
        (secured.token("alice", lasts_s=-5), "SaslAuthenticationException"),
        (
            secured.certificate("alice").but(credential=strangers.users["alice"]),
            "SslAuthenticationException",
        ),
        (secured.certificate("alice").but(credential=None), "SslAuthenticationException"),
        (
            secured.plain("alice").but(truststore=strangers.truststore),
            "SslAuthenticationException",
        ),
    ]  # fmt: skip
    paths = [str(way.java(tmp_path)) for way, _ in tries]
    said = java.run(LOGINS, own_topic, "alice-", *paths).splitlines()
    print("\n".join(said))
    assert [line.partition(":")[0] for line in said] == [expected for _, expected in tries]
