"""What `replay`, `restore` and `mirror` refuse before Spark is started, and the files they read."""

import pytest
import typer

from kafscale.cli.commands.spark.copy_options import read_settings, read_time

REPLAY = ["spark", "replay", "orders", "copy"]
RESTORE = ["spark", "restore", "orders", "copy"]
MIRROR = ["spark", "mirror", "--from", "kafka:9092"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["spark", "replay", "orders"], "TARGET"),
        ([*REPLAY, "--since", "soon"], "neither a time"),
        ([*REPLAY, "--partitioner", "random"], "--partitioner"),
        ([*REPLAY, "--partitions", "0"], "--partitions"),
        ([*REPLAY, "--topic-config", "retention.ms"], "key=value"),
        ([*REPLAY, "--bootstrap-server", "a:b"], "host:port"),
        (["spark", "restore", "orders"], "TARGET"),
        ([*RESTORE, "--as-of", "yesterday"], "neither a time"),
        ([*RESTORE, "--as-of", "1h", "--offsets", "{}"], "not both"),
        (["spark", "mirror", "--topic", "orders"], "--from"),
        (MIRROR, "name topics"),
        ([*MIRROR, "--topic", "orders", "--interval", "often"], "--interval"),
        ([*MIRROR, "--topic", "orders", "--from-config", "sasl.password"], "key=value"),
        ([*MIRROR, "--topic", "orders", "--to-config-file", "absent"], "absent"),
    ],
)
def test_wrong_usage_is_refused_with_what_is_wrong(kafscale, arguments, problem):
    result = kafscale(*arguments, COLUMNS="200")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""


def test_settings_come_from_a_file_and_the_command_line_wins(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("# security\n\nsasl.password = a=b \nsecurity.protocol=SASL_SSL\n")
    assert read_settings(["security.protocol=SSL"], file) == {
        "sasl.password": "a=b",
        "security.protocol": "SSL",
    }
    assert read_settings([], None) == {}


def test_a_time_is_a_time_or_how_long_ago():
    assert read_time("--as-of", "") is None
    assert read_time("--as-of", "@1769860800000") == 1769860800000
    hour_ago, now = read_time("--as-of", "1h"), read_time("--as-of", "0s")
    assert 0 <= now - hour_ago - 3_600_000 < 60_000
    with pytest.raises(typer.BadParameter):
        read_time("--as-of", "soon")
