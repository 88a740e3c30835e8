"""Which brokers a command asks, and how: by the options, or by the settings."""

import os

import pytest
import typer

from kafscale.cli.connection.kafka import chosen, secured
from kafscale.cli.main import app
from kafscale.client.security import PLAINTEXT


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KAFSCALE_")]:
        monkeypatch.delenv(name)


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(monkeypatch):
    assert chosen("") == [("localhost", 9092)]
    monkeypatch.setenv("KAFSCALE_BOOTSTRAP_SERVERS", "a:1,b:2")
    assert chosen("") == [("a", 1), ("b", 2)]
    assert chosen("c:3, d") == [("c", 3), ("d", 9092)]
    with pytest.raises(typer.BadParameter, match="expected host:port"):
        chosen("c:d")


def test_without_settings_commands_neither_encrypt_nor_log_in(monkeypatch):
    assert secured() == PLAINTEXT
    monkeypatch.setenv("KAFSCALE_CLIENT_SECURITY_PROTOCOL", "SSL")
    assert secured().encrypts


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), {option for each in command.params for option in each.opts}


def test_whoever_takes_servers_takes_a_file_as_well():
    found = dict(commands(typer.main.get_command(app)))
    asking = {path for path, options in found.items() if "--bootstrap-server" in options}
    told = {path for path, options in found.items() if "--command-config" in options}
    assert asking == told
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
    } <= told


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("security.protocol=TLS", "is not one of"),
        ("ssl.truststore.location=ca.jks", "PEM"),
        ("a=\\u1", "hexadecimal"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_cannot_be_understood_is_wrong_usage(kafscale, tmp_path, content, problem):
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_text(content)
    result = kafscale("topic", "list", "--command-config", str(file), COLUMNS="300")
    assert result.exit_code == 2
    assert "--command-config" in result.stderr
    assert problem in result.stderr


def test_a_file_says_how_to_log_in_and_holds_for_one_command(kafscale, tmp_path):
    """The one that lacks a password is refused before anybody is asked."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.username=alice\n")
    result = kafscale("topic", "list", "--command-config", str(file))
    assert result.exit_code == 1
    assert "needs a user and a password" in result.stderr
    assert secured() == PLAINTEXT
