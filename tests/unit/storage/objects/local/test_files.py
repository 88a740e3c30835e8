"""Objects as files: partial writes, full disks, and concurrent pruning."""

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    StoreFullError,
    StoreUnavailableError,
)
from kafscale.storage.objects.local import files
from kafscale.storage.objects.local.files import FileTree


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@given(
    parts=st.lists(st.binary(max_size=40), min_size=1, max_size=12).filter(any),
    limits=st.lists(st.integers(1, 50), min_size=1),
)
def test_partial_writes_are_completed(tmp_path_factory, parts, limits):
    written = bytearray()
    turns = iter(limits * 500)

    def write(descriptor, buffers):
        taken = b"".join(buffers)[: next(turns)]
        written.extend(taken)
        return os.write(descriptor, taken)

    tree = FileTree(str(tmp_path_factory.mktemp("tree")), fsync=False, write=write)
    tree.put("ns/key", parts, create=True)
    assert tree.get("ns/key", 0, None) == b"".join(parts) == written


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_is_reported_and_leaves_no_file(tmp_path, reason):
    def write(descriptor, buffers):
        if os.fstat(descriptor).st_size:
            raise OSError(reason, os.strerror(reason))
        return os.write(descriptor, buffers[0][:3])

    tree = FileTree(str(tmp_path), fsync=False, write=write)
    with pytest.raises(StoreFullError, match="put ns/key: no space left on device"):
        tree.put("ns/key", [b"12345"], create=True)
    assert files_below(tmp_path) == set()


def test_disk_error_is_store_unavailable(tmp_path):
    def write(_descriptor, _buffers):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    tree = FileTree(str(tmp_path), fsync=False, write=write)
    with pytest.raises(StoreUnavailableError, match="Input/output error"):
        tree.put("ns/key", [b"12345"], create=True)


@pytest.mark.parametrize("create", [True, False])
def test_put_leaves_only_the_object(tmp_path, create):
    tree = FileTree(str(tmp_path), fsync=True)
    tree.put("ns/a/key", [b"x"], create=create)
    assert files_below(tmp_path) == {"ns/a/key"}


def test_put_of_an_existing_key_leaves_no_file(tmp_path):
    tree = FileTree(str(tmp_path), fsync=False)
    tree.put("ns/key", [b"x"], create=True)
    with pytest.raises(ObjectExistsError, match=r"^ns/key$"):
        tree.put("ns/key", [b"y"], create=True)
    assert files_below(tmp_path) == {"ns/key"}


def test_object_cannot_be_below_another(tmp_path):
    tree = FileTree(str(tmp_path), fsync=False)
    tree.put("ns/key", [b"x"], create=True)
    with pytest.raises(StoreUnavailableError):
        tree.put("ns/key/below", [b"y"], create=True)


def test_empty_directories_are_pruned_up_to_the_root(tmp_path):
    tree = FileTree(str(tmp_path), fsync=True)
    tree.put("ns/a/b/1", [b"x"], create=True)
    tree.put("ns/a/2", [b"x"], create=True)
    tree.delete(["ns/a/b/1"])
    assert sorted(path.name for path in (tmp_path / "ns" / "a").iterdir()) == ["2"]
    tree.delete(["ns/a/2"])
    assert [path.name for path in tmp_path.iterdir()] == [files.UNFINISHED]
    tree.put("ns/a/b/1", [b"y"], create=True)
    assert tree.get("ns/a/b/1", 0, None) == b"y"


@pytest.mark.parametrize("fsync", [True, False])
def test_concurrent_pruning_and_writing_lose_nothing(tmp_path, fsync):
    tree = FileTree(str(tmp_path), fsync=fsync)
    failures: list[Exception] = []

    def churn(writer: int) -> None:
        try:
            for number in range(150):
                key = f"ns/topic/{number % 2}/{writer}"
                tree.put(key, [b"%d" % number], create=True)
                assert tree.get(key, 0, None) == b"%d" % number
                tree.delete([key])
        except Exception as error:  # noqa: BLE001 - a thread hands over whatever it meets.
            failures.append(error)

    threads = [threading.Thread(target=churn, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize("is_deleted", [True, False])
def test_open_file_keeps_its_bytes(tmp_path, is_deleted):
    """Spark reads files that the broker deletes or replaces meanwhile."""
    tree = FileTree(str(tmp_path), fsync=False)
    tree.put("ns/old.kfw", [b"old bytes"], create=True)
    with (tmp_path / "ns" / "old.kfw").open("rb") as reader:
        if is_deleted:
            tree.delete(["ns/old.kfw"])
        for key in ("ns/old.kfw", "ns/new.kfw"):
            tree.put(key, [b"new bytes"], create=False)
        assert reader.read() == b"old bytes"


def test_foreign_files_are_neither_listed_nor_read(tmp_path):
    tree = FileTree(str(tmp_path), fsync=False)
    tree.put("ns/key", [b"x"], create=True)
    (tmp_path / "ns" / "no key").write_text("foreign")
    (tmp_path / "ns" / "empty").mkdir()
    (tmp_path / "ns" / "link").symlink_to(tmp_path)
    assert [info.key for chunk in tree.list("ns/") for info in chunk] == ["ns/key"]
    with pytest.raises(ObjectNotFoundError):
        tree.get("ns/empty", 0, None)
    with pytest.raises(ObjectNotFoundError):
        tree.head("ns/empty")


def test_file_deleted_during_a_listing_is_skipped(tmp_path):
    tree = FileTree(str(tmp_path), fsync=False)
    for number in range(files.PAGE_KEYS + 2):
        tree.put(f"ns/{number:05d}", [b"x"], create=True)
    chunks = tree.list("ns/")
    next(chunks)
    tree.delete([f"ns/{files.PAGE_KEYS:05d}"])
    assert [[info.key for info in chunk] for chunk in chunks] == [[f"ns/{files.PAGE_KEYS + 1:05d}"]]
