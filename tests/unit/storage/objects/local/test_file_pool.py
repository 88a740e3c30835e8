"""The file pool: quarantine, limits, and correct contents of reused files."""

from pathlib import Path

import pytest

from kafscale.storage.objects.local import file_pool
from kafscale.storage.objects.local.file_pool import QUARANTINE_SECONDS, FilePool
from kafscale.storage.objects.local.files import FileTree


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> FilePool:
    (tmp_path / "kept").mkdir()
    return FilePool(str(tmp_path / "kept"), clock)


def test_file_is_reused_after_its_quarantine(tmp_path, kept, clock):
    """A reader that opened it under its old name must have finished before it is overwritten."""
    path = tmp_path / "old"
    path.write_bytes(b"12345")
    assert kept.release(str(path))
    assert not path.exists()
    assert kept.acquire() is None
    clock.now += QUARANTINE_SECONDS
    taken = kept.acquire()
    assert taken.size_bytes == 5
    assert Path(taken.path).read_bytes() == b"12345"
    assert kept.acquire() is None


def test_files_over_the_limits_are_not_pooled(tmp_path, kept):
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(file_pool.FILE_BYTES_MAX + 1)
    assert not kept.release(str(large))
    assert large.exists()
    count = 0
    while True:
        path = tmp_path / f"{count}"
        with path.open("wb") as file:
            file.truncate(file_pool.FILE_BYTES_MAX)
        if not kept.release(str(path)):
            break
        count += 1
    assert count == file_pool.TOTAL_BYTES_MAX // file_pool.FILE_BYTES_MAX


def test_missing_file_is_not_counted(tmp_path, kept, clock):
    with pytest.raises(FileNotFoundError):
        kept.release(str(tmp_path / "gone"))
    clock.now += QUARANTINE_SECONDS
    assert kept.acquire() is None


@pytest.mark.parametrize("lengths", [(9, 4), (4, 9), (5, 5)])
@pytest.mark.parametrize("create", [True, False])
def test_reused_file_contains_only_the_new_object(tmp_path, clock, lengths, create):
    old, new = lengths
    files = FileTree(str(tmp_path), fsync=False, recycles=lambda key: key.endswith(".kfw"))
    files._pool = FilePool(f"{tmp_path}/.tmp", clock)
    files.put("ns/old.kfw", [b"o" * old], create=True)
    inode = (tmp_path / "ns/old.kfw").stat().st_ino
    files.delete(["ns/old.kfw"])
    clock.now += QUARANTINE_SECONDS
    files.put("ns/segment.kfs", [b"s"], create=True)
    files.put("ns/new.kfw", [b"n" * new], create=create)
    assert files.get("ns/new.kfw", 0, None) == b"n" * new
    assert (tmp_path / "ns/new.kfw").stat().st_ino == inode, "the file was used again"
    assert [info.key for chunk in files.list("ns/") for info in chunk] == [
        "ns/new.kfw",
        "ns/segment.kfs",
    ]


def test_pool_is_removed_at_the_next_start(tmp_path):
    files = FileTree(str(tmp_path), fsync=False, recycles=lambda _key: True)
    files.put("ns/a", [b"a"], create=True)
    files.delete(["ns/a"])
    assert FileTree(str(tmp_path), fsync=False).remove_unfinished() == 1
