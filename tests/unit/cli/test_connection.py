"""Connections of commands to brokers and to the control plane."""

import os

import pytest
import typer

from kafscale.cli.connection import (
    bootstrap_addresses,
    client_security,
    control_addresses,
    control_tls,
)
from kafscale.cli.main import app
from kafscale.client.security import PLAINTEXT


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)


def test_bootstrap_option_overrides_the_settings(monkeypatch):
    assert bootstrap_addresses("") == [("localhost", 9092)]
    monkeypatch.setenv("KAFSCALE_BOOTSTRAP_SERVERS", "a:1,b:2")
    assert bootstrap_addresses("") == [("a", 1), ("b", 2)]
    assert bootstrap_addresses("c:3, d") == [("c", 3), ("d", 9092)]
    with pytest.raises(typer.BadParameter, match="expected host:port"):
        bootstrap_addresses("c:d")


def test_security_follows_the_settings(monkeypatch):
    assert client_security() == PLAINTEXT
    monkeypatch.setenv("KAFSCALE_CLIENT_SECURITY_PROTOCOL", "SSL")
    assert client_security().encrypts


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), {option for each in command.params for option in each.opts}


def test_all_commands_with_bootstrap_server_have_command_config():
    result = dict(commands(typer.main.get_command(app)))
    with_servers = {path for path, options in result.items() if "--bootstrap-server" in options}
    with_file = {path for path, options in result.items() if "--command-config" in options}
    assert with_servers == with_file
    assert {
        ("topic", "list"),
        ("group", "reset-offsets"),
        ("produce",),
        ("consume",),
        ("user", "list"),
        ("acl", "add"),
        ("quota", "set"),
        ("spark", "replay"),
        ("spark", "restore"),
    } <= with_file


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("security.protocol=TLS", "is not one of"),
        ("ssl.truststore.location=ca.jks", "PEM"),
        ("a=\\u1", "hexadecimal"),
        (None, "does not exist"),
    ],
)
def test_invalid_command_config_is_wrong_usage(kafscale, tmp_path, content, problem):
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_text(content)
    result = kafscale("topic", "list", "--command-config", str(file), COLUMNS="300")
    assert result.exit_code == 2
    assert "--command-config" in result.stderr
    assert problem in result.stderr


def test_command_config_applies_to_one_command(kafscale, tmp_path):
    """A file without a password is rejected before the command connects."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.username=alice\n")
    result = kafscale("topic", "list", "--command-config", str(file))
    assert result.exit_code == 1
    assert "needs a user name and a password" in result.stderr
    assert client_security() == PLAINTEXT


def test_control_plane_uses_the_files_of_kafka_clients_unless_it_has_its_own(monkeypatch):
    monkeypatch.setenv("KAFSCALE_CLIENT_TLS_CA_FILE", "ca")
    monkeypatch.setenv("KAFSCALE_CLIENT_TLS_CERT_FILE", "crt")
    monkeypatch.setenv("KAFSCALE_CLIENT_TLS_KEY_FILE", "key")
    assert control_tls() is None
    monkeypatch.setenv("KAFSCALE_CLIENT_CONTROL_TLS_ENABLED", "true")
    tls = control_tls()
    assert (tls.ca_file, tls.cert_file, tls.key_file) == ("ca", "crt", "key")
    # A certificate and a key are a pair: a key of the other certificate would not match.
    monkeypatch.setenv("KAFSCALE_CLIENT_CONTROL_TLS_CERT_FILE", "control.pem")
    tls = control_tls()
    assert (tls.ca_file, tls.cert_file, tls.key_file) == ("ca", "control.pem", "")


def test_control_option_overrides_the_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)
    assert control_addresses("") == [("localhost", 9095)]
    monkeypatch.setenv("KAFSCALE_CONTROL_SERVERS", "a:1,b")
    assert control_addresses("") == [("a", 1), ("b", 9095)]
    assert control_addresses("c:3, [::1]") == [("c", 3), ("::1", 9095)]
    with pytest.raises(typer.BadParameter, match="expected host:port"):
        control_addresses("c:d")
