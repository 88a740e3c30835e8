"""Shared options of Spark commands, and usage errors before Spark starts."""

import pytest
import typer

from kafscale.cli.commands.spark.options import read_segment_bytes, read_settings, read_time
from kafscale.spark.jobs.shared.segment_group import TARGET_BYTES_MAX

REPLAY = ["spark", "replay", "orders", "copy"]
RESTORE = ["spark", "restore", "orders", "copy"]
MIRROR = ["spark", "mirror", "--from", "kafka:9092"]
LAKE = ["spark", "lake", "orders", "--to", "lake"]
REGISTRY = ["--registry", "http://registry"]


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
        ([*MIRROR, "--topic", "orders", "--from-config", "sasl.password=x"], "--from-config-file"),
        ([*MIRROR, "--topic", "orders", "--to-config", "ssl.key.pem=x"], "--to-config-file"),
        ([*MIRROR, "--topic", "orders", "--to-config-file", "absent"], "absent"),
        ([*LAKE, "--conf", "spark.hadoop.fs.s3a.secret.key=x"], "spark-defaults.conf"),
        ([*LAKE, "--catalog-property", "credential=id:x"], "PYICEBERG_CATALOG__"),
        ([*LAKE, "-f", "avro", *REGISTRY, "--registry-token-file", "absent"], "absent"),
    ],
)
def test_wrong_usage_exits_with_2(kafscale, arguments, problem):
    result = kafscale(*arguments, COLUMNS="200")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""


def test_command_line_overrides_the_config_file(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("# security\n\nsasl.password = a=b \nsecurity.protocol=SASL_SSL\n")
    assert read_settings("--from-config", ["security.protocol=SSL"], file) == {
        "sasl.password": "a=b",
        "security.protocol": "SSL",
    }
    assert read_settings("--from-config", [], None) == {}


def test_time_is_absolute_or_a_duration_ago():
    assert read_time("--as-of", "") is None
    assert read_time("--as-of", "@1769860800000") == 1769860800000
    hour_ago, now = read_time("--as-of", "1h"), read_time("--as-of", "0s")
    assert 0 <= now - hour_ago - 3_600_000 < 60_000
    with pytest.raises(typer.BadParameter):
        read_time("--as-of", "soon")


def test_segment_bytes_are_parsed():
    assert read_segment_bytes("") == 0
    assert read_segment_bytes("500Mi") == 500 * 1024 * 1024
    assert read_segment_bytes("1Gi") == TARGET_BYTES_MAX


@pytest.mark.parametrize("text", ["large", "0", "2Gi", "-1"])
def test_invalid_segment_bytes_are_rejected(text):
    with pytest.raises(typer.BadParameter):
        read_segment_bytes(text)
