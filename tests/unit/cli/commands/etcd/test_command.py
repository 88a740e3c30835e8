"""`kafscale etcd`: options and errors."""

import asyncio
import json
from pathlib import Path

import pytest

from kafscale.metadata.cluster.restore_marker import find_pending_restore
from kafscale.metadata.store.sqlite.store import METADATA_FILE, SqliteStore

RESTORE = ["restore", "--data-dir", "data"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["restore"], "Missing option '--data-dir'"),
        ([*RESTORE, "--if-empty", "--force"], "exclude each other"),
        (["restored", "--snapshot", "backup.db"], "name the time of the snapshot"),
        (["restored", "--snapshot", "backup.db", "--taken-at", "soon"], "is not a time"),
        (["snapshot", "--retain", "-1"], "--retain"),
    ],
)
def test_wrong_usage_exits_with_2(kafscale, arguments, message):
    result = kafscale("etcd", *arguments, COLUMNS="200")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["snapshot"],
        ["status"],
        ["defragment"],
        ["restored"],
        ["restored", "--snapshot", "20231114T221320Z-7.db"],
    ],
)
def test_missing_etcd_endpoints_are_reported(kafscale, arguments):
    result = kafscale("etcd", *arguments)
    assert result.exit_code == 1
    assert "set KAFSCALE_ETCD_ENDPOINTS" in result.stderr


def test_missing_bucket_is_reported(kafscale):
    result = kafscale("etcd", "snapshots")
    assert result.exit_code == 1
    assert "use --bucket or KAFSCALE_S3_BUCKET" in result.stderr


def test_missing_etcdutl_is_reported(kafscale):
    result = kafscale("etcd", *RESTORE, PATH="")
    assert result.exit_code == 1
    assert "etcdutl is not on the PATH: it comes with etcd" in result.stderr
    assert not Path("data").exists()


@pytest.mark.parametrize("output", ["table", "json"])
def test_restore_if_empty_keeps_existing_data(kafscale, output):
    Path("data/member/wal").mkdir(parents=True)
    Path("data/member/wal/0.wal").touch()
    result = kafscale("etcd", *RESTORE, "--if-empty", "-o", output, PATH="")
    assert result.exit_code == 0
    if output == "table":
        assert result.stdout == "data already contains data and was not changed\n"
    else:
        assert json.loads(result.stdout)["restored"] is False


@pytest.fixture
def with_etcdutl(tmp_path):
    """A PATH with a program on it that is never called."""
    program = tmp_path / "etcdutl"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return str(tmp_path)


def test_restore_does_not_search_the_bucket_for_a_missing_file(kafscale, with_etcdutl):
    result = kafscale("etcd", *RESTORE, "--snapshot", "./backup.db", PATH=with_etcdutl)
    assert (result.exit_code, result.stderr) == (1, "error: there is no file ./backup.db\n")


def test_restore_rejects_a_damaged_file(kafscale, with_etcdutl):
    Path("backup.db").write_text("nothing of the kind")
    result = kafscale("etcd", *RESTORE, "--snapshot", "backup.db", PATH=with_etcdutl)
    assert result.exit_code == 1
    assert "the snapshot is damaged" in result.stderr
    assert list(Path("data").iterdir()) == []


def test_metadata_of_a_single_broker_with_a_bucket_are_marked(kafscale):
    settings = {"KAFSCALE_S3_BUCKET": "records", "KAFSCALE_DATA_DIR": "data"}
    result = kafscale("etcd", "restored", "--cluster-id", "theirs", **settings)
    assert result.exit_code == 0, result.stderr

    async def marked():
        store = await SqliteStore.open(Path("data") / METADATA_FILE, lambda: 0)
        try:
            return await find_pending_restore(store)
        finally:
            await store.close()

    assert asyncio.run(marked()).info.cluster_id == "theirs"
