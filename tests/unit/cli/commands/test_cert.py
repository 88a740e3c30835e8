"""`kafscale cert dev`: the created files and the printed settings."""

import json
import shlex

import pytest

from kafscale.config import load
from kafscale.security.tls.context import ListenerTls, client_context
from unit.security.handshake import shake_hands


@pytest.fixture
def created(kafscale, tmp_path):
    done = kafscale("cert", "dev", "--out", str(tmp_path / "a b"), "--user", "alice", "-o", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_printed_settings_work_unchanged(created):
    broker = load(created["brokerSettings"])
    [user] = created["users"]
    client = load(user["settings"]).client
    assert client.control_tls
    assert client.control_servers == (f"localhost:{broker.broker.control_port}",)
    listener = ListenerTls(broker.tls, "CLIENTS")
    pair = shake_hands(client_context(client.tls), listener.context)
    assert listener.principal(pair.server).full_name == user["principal"] == "User:CN=alice"


def test_printed_exports_can_be_copied(kafscale, tmp_path):
    done = kafscale("cert", "dev", "--out", str(tmp_path / "a b"))
    exports = dict(
        shlex.split(line)[1].split("=", 1)
        for line in done.stdout.splitlines()
        if line.strip().startswith("export ")
    )
    assert load(exports).tls.cert_file == (str(tmp_path / "a b" / "server.crt"),)
    assert load(exports).client.tls.cert_file == str(tmp_path / "a b" / "client.crt")
    assert "password changeit" in done.stdout
    assert "kcat -b localhost:9092 -L -X security.protocol=ssl" in done.stdout


def test_existing_files_are_overwritten_only_with_force(kafscale, tmp_path):
    again = ("cert", "dev", "--out", str(tmp_path))
    assert kafscale(*again).exit_code == 0
    refused = kafscale(*again)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "exists; it is not overwritten" in refused.stderr
    assert kafscale(*again, "--force").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("--user", "../alice"), ("--user", ""), ("--host", "a b"), ("--days", "0")]
)
def test_wrong_usage_exits_with_2(kafscale, tmp_path, arguments):
    done = kafscale("cert", "dev", "--out", str(tmp_path), *arguments)
    assert done.exit_code == 2
    assert arguments[0] in done.stderr
    assert list(tmp_path.iterdir()) == []
