"""The root command: overview, help, version and errors."""

import json
import subprocess
import sys

import pytest

import kafscale as package


def test_overview_is_printed_without_a_command(kafscale):
    result = kafscale()
    assert result.exit_code == 0
    assert f"Kafscale {package.__version__}" in result.stdout
    assert "records    on this machine (embedded)" in result.stdout
    assert "kafscale config show" in result.stdout
    assert "kafscale broker" in result.stdout
    assert "\x1b" not in result.stdout


def test_overview_shows_the_effective_settings(kafscale):
    result = kafscale(
        KAFSCALE_S3_BUCKET="records", KAFSCALE_ETCD_ENDPOINTS="a:2379", KAFSCALE_BROKER_PORT="1001"
    )
    assert "records    in bucket records" in result.stdout
    assert "metadata   in etcd at a:2379" in result.stdout
    assert "clients 1001" in result.stdout
    assert "3 of " in result.stdout
    assert "in memory" in kafscale(KAFSCALE_USE_MEMORY_S3="1").stdout


def test_overview_logs_settings_with_masked_secrets(kafscale):
    keys = {"KAFSCALE_S3_ACCESS_KEY": "AKIA", "KAFSCALE_S3_SECRET_KEY": "hidden"}
    result = kafscale(KAFSCALE_S3_BUCKET="records", **keys)
    (line,) = result.stderr.splitlines()
    event = json.loads(line)
    assert event["event"] == "effective configuration"
    assert event["settings"]["s3"]["bucket"] == "records"
    assert event["settings"]["s3"]["secretKey"] == "********"
    assert "hidden" not in result.stderr
    assert kafscale(KAFSCALE_LOG_LEVEL="warn").stderr == ""


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version_is_printed(kafscale, arguments):
    result = kafscale(*arguments)
    assert (result.exit_code, result.stdout) == (0, f"kafscale {package.__version__}\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (
            [],
            [
                *("broker", "config", "consume", "group", "produce", "protocol"),
                *("segment", "topic"),
            ],
        ),
        (["broker"], ["--config"]),
        (["config"], ["show", "check"]),
        (["config", "show"], ["--describe", "--output", "--config"]),
        (["protocol"], ["list", "show"]),
        (["protocol", "show"], ["--source", "--output"]),
        (["segment"], ["list", "inspect", "verify"]),
        (["topic"], ["create", "list", "describe", "alter", "delete"]),
        (["topic", "create"], ["--partitions", "--config", "kafscale topic create orders -p 6"]),
        (["topic", "delete"], ["--yes", "--if-exists"]),
        (["group"], ["list", "describe", "offsets", "reset-offsets", "delete"]),
        (["group", "list"], ["--state", "--type", "--output"]),
        (["group", "describe"], ["--members", "--state", "--offsets"]),
        (["group", "reset-offsets"], ["--execute", "--shift-by", "-t orders:0,2 --shift-by -100"]),
        (["group", "delete"], ["--yes", "--if-exists"]),
        (["user"], ["list", "create", "password", "delete"]),
        (["user", "create"], ["--mechanism", "--password-file", "--command-config"]),
        (["acl"], ["list", "add", "remove"]),
        (["acl", "add"], ["--allow-principal", "--role", "kafscale acl add --deny-principal"]),
        (["produce"], ["--key-separator", "--compression", "kafscale produce users -K :"]),
        (["consume"], ["--from", "--no-follow", "--group", "kafscale consume orders --from"]),
    ],
)
def test_every_command_has_help(kafscale, commands, words, flag):
    result = kafscale(*commands, flag)
    assert result.exit_code == 0
    assert all(word in result.stdout for word in words)


def test_wrong_usage_exits_with_2(kafscale):
    assert kafscale("cofnig").exit_code == 2
    assert kafscale("config", "show", "--output", "xml").exit_code == 2


def test_errors_are_printed_on_standard_error(kafscale):
    result = kafscale(KAFSCALE_LOG_LEVEL="loud", KAFSCALE_LOG_LEVL="info")
    assert result.exit_code == 1
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first.startswith("error: unknown variable KAFSCALE_LOG_LEVL: did you mean")
    assert second.startswith('error: logging.level (KAFSCALE_LOG_LEVEL): "loud" is not one of')


def test_module_runs_like_the_command():
    command = [sys.executable, "-m", "kafscale", "version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert result.stdout == f"kafscale {package.__version__}\n"


def test_main_does_not_import_slow_modules():
    """Imports take most of the time of a short command."""
    slow = {
        "rich.console",
        "yaml",
        "structlog",
        "prometheus_client",
        "kafscale.protocol.codec.wire",
    }
    code = "import sys, kafscale.cli.main; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert slow.isdisjoint(result.stdout.split())
