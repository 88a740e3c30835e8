"""Security settings of a client."""

import pickle
from pathlib import Path

import pytest

from kafscale.client.security import PLAINTEXT, Security
from kafscale.config import load
from kafscale.errors import ConfigError

SETTINGS = {
    "KAFSCALE_CLIENT_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFSCALE_CLIENT_SASL_MECHANISM": "PLAIN",
    "KAFSCALE_CLIENT_USERNAME": "alice",
    "KAFSCALE_CLIENT_PASSWORD": "hidden",
    "KAFSCALE_CLIENT_TLS_CA_FILE": "ca.pem",
    "KAFSCALE_CLIENT_TLS_VERIFY_HOSTNAME": "false",
}


def test_default_security_is_plaintext():
    assert Security.from_settings(load({}).client) == PLAINTEXT
    assert not PLAINTEXT.encrypts
    assert not PLAINTEXT.authenticates
    assert PLAINTEXT.context() is None


def test_security_is_picklable_and_hides_secrets():
    security = Security.from_settings(load(SETTINGS).client)
    assert (security.encrypts, security.authenticates) == (True, True)
    assert (security.mechanism, security.username, security.password) == (
        "PLAIN",
        "alice",
        "hidden",
    )
    assert security.tls.ca_file == str(Path.cwd() / "ca.pem")
    assert not security.tls.verify_hostname
    assert "hidden" not in repr(security)
    assert pickle.loads(pickle.dumps(security)) == security  # noqa: S301


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"username": "alice"}, "client.username and client.password"),
        ({"password": "hidden"}, "client.username and client.password"),
        ({"mechanism": "OAUTHBEARER", "username": "a", "password": "b"}, "client.tokenFile"),
    ],
)
def test_incomplete_credentials_are_rejected(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        Security(protocol="SASL_PLAINTEXT", **changes)
