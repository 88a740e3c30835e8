"""`kafka-features`: what it describes is what clients are promised, and nothing can be changed."""

import subprocess

import pytest

from services import java

pytestmark = [
    pytest.mark.timeout(300),  # The first run downloads the tools.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]


def features(broker, *arguments):
    done = subprocess.run(  # noqa: S603 - the command is this test's own.
        java.command(
            "org.apache.kafka.tools.FeatureCommand",
            "--bootstrap-server",
            broker.address,
            *arguments,
        ),
        capture_output=True,
        text=True,
        timeout=java.RUN_S_MAX,
        check=False,
    )
    return done.stdout + done.stderr


def test_features_are_described(broker):
    rows = [line.split("\t") for line in features(broker, "describe").splitlines()]
    assert [[row[0], *(cell.split(": ")[1] for cell in row[1:])] for row in rows] == [
        ["Feature: group.version", "1", "1", "1", "0"],
        ["Feature: metadata.version", "4.1-IV1", "4.1-IV1", "4.1-IV1", "0"],
        ["Feature: share.version", "0", "0", "0", "0"],
        ["Feature: transaction.version", "2", "2", "2", "0"],
    ]


def test_updates_succeed_only_for_the_present_level(broker):
    assert "group.version was upgraded to 1." in features(
        broker, "upgrade", "--feature", "group.version=1"
    )
    refused = features(broker, "downgrade", "--dry-run", "--feature", "transaction.version=1")
    assert "Can not downgrade transaction.version to 1." in refused
    assert "Local controller 0 only supports versions 2-2" in refused
