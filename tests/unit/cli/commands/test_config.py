"""`kafscale config`: formats, masking and errors."""

import json
from pathlib import Path

import yaml

from kafscale.config import SETTINGS


def rows(stdout):
    return {line.split()[0]: line.split()[1:] for line in stdout.splitlines() if line[:1].isalpha()}


def test_show_prints_value_and_origin_of_every_setting(kafscale):
    Path("broker.yaml").write_text("storage:\n  segmentBytes: 64Mi\n")
    result = kafscale("config", "show", "--config", "broker.yaml", KAFSCALE_BROKER_PORT="1001")
    assert result.exit_code == 0
    shown = rows(result.stdout)
    assert shown["broker.port"] == ["1001", "KAFSCALE_BROKER_PORT"]
    assert shown["storage.segmentBytes"] == ["64Mi", "broker.yaml:2"]
    assert shown["s3.region"] == ["us-east-1", "default"]
    assert {setting.path for setting in SETTINGS} <= shown.keys()


def test_show_does_not_wrap_long_values_in_a_pipe(kafscale):
    endpoints = ",".join(
        f"etcd-{number}.etcd.kafscale.svc.cluster.local:2379" for number in range(9)
    )
    environ = {"KAFSCALE_ETCD_ENDPOINTS": endpoints, "KAFSCALE_S3_BUCKET": "records"}
    result = kafscale("config", "show", "etcd", **environ)
    assert rows(result.stdout)["etcd.endpoints"] == [endpoints, "KAFSCALE_ETCD_ENDPOINTS"]


def test_show_does_not_interpret_markup(kafscale):
    environ = {"KAFSCALE_UI_USERNAME": "[red]admin[/red]", "KAFSCALE_UI_PASSWORD": "secret"}
    assert "[red]admin[/red]" in kafscale("config", "show", "ui", **environ).stdout


def test_show_masks_secrets_in_every_format(kafscale):
    environ = {"KAFSCALE_UI_USERNAME": "admin", "KAFSCALE_UI_PASSWORD": "hunter2"}
    for form in (["-o", "table"], ["-o", "json"], ["-o", "yaml"], ["--describe"]):
        result = kafscale("config", "show", *form, **environ)
        assert result.exit_code == 0
        assert "********" in result.stdout
        assert "hunter2" not in result.output


def test_show_prints_the_same_as_json_and_yaml(kafscale):
    printed_json = json.loads(kafscale("config", "show", "-o", "json").stdout)
    printed_yaml = yaml.safe_load(kafscale("config", "show", "-o", "yaml").stdout)
    assert printed_json == printed_yaml
    assert [record["setting"] for record in printed_json] == [setting.path for setting in SETTINGS]
    assert {"setting": "broker.port", "value": 9092, "setBy": "default"} in printed_json


def test_show_selects_a_group_or_a_setting(kafscale):
    assert set(rows(kafscale("config", "show", "etcd.tls").stdout)) == {
        "setting",
        "etcd.tls.enabled",
        "etcd.tls.certFile",
        "etcd.tls.keyFile",
        "etcd.tls.caFile",
    }
    assert set(rows(kafscale("config", "show", "s3.bucket").stdout)) == {"setting", "s3.bucket"}
    result = kafscale("config", "show", "stor")
    assert result.exit_code == 2
    assert "storage" in result.stderr


def test_show_describes_settings(kafscale):
    result = kafscale("config", "show", "storage.segmentBytes", "--describe")
    assert result.stdout.startswith("storage.segmentBytes = 100Mi\n  The size at which a segment")
    assert "\n  variable: KAFSCALE_SEGMENT_BYTES\n" in result.stdout
    [record] = json.loads(kafscale("config", "show", "s3.bucket", "-d", "-o", "json").stdout)
    assert record["variables"] == ["KAFSCALE_S3_BUCKET"]
    assert record["description"].startswith("The bucket")


def test_check_accepts_valid_settings(kafscale):
    Path("broker.yaml").write_text("broker: {port: 1001}\n")
    result = kafscale("config", "check", "-c", "broker.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"ok: {len(SETTINGS)} settings, 1 of them set\n"


def test_check_prints_every_problem_and_exits_with_1(kafscale):
    Path("broker.yaml").write_text("broker:\n  port: many\n  prot: 1\n")
    result = kafscale("config", "check", KAFSCALE_CONFIG_FILE="broker.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "error: unknown setting broker.prot (broker.yaml:3): did you mean broker.port?",
        (
            'error: broker.port (broker.yaml:2): "many" is not a whole number; '
            "expected a whole number from 0 to 65535"
        ),
    ]
