"""`WatchedFiles`: every change is reported, once."""

import os

import pytest

from kafscale.config.watched_files import WatchedFiles


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_text("one")
    return tmp_path / "file"


def rewritten(path):
    path.write_text("another one")


def rewritten_with_same_size_and_time(path):
    """The same size and modification time."""
    seen = path.stat()
    path.write_text("two")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def replaced(path):
    other = path.with_suffix(".new")
    other.write_text("two")
    other.rename(path)


def removed(path):
    path.unlink()


def made_readable(path):
    path.chmod(0o604)


@pytest.mark.parametrize(
    "change", [rewritten, rewritten_with_same_size_and_time, replaced, removed, made_readable]
)
def test_change_is_reported_once(path, change):
    files = WatchedFiles([path, path.with_name("absent")])
    assert not files.changed()
    change(path)
    assert files.changed()
    assert not files.changed()


def test_new_file_is_a_change(tmp_path):
    files = WatchedFiles([str(tmp_path / "late")])
    assert not files.changed()
    (tmp_path / "late").touch()
    assert files.changed()


def test_changed_symlink_target_is_a_change(tmp_path):
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "tls.crt").write_text("same")
    current = tmp_path / "current"
    current.symlink_to("1")
    files = WatchedFiles([current / "tls.crt"])
    (tmp_path / "next").symlink_to("2")
    (tmp_path / "next").rename(current)
    assert files.changed()


def test_watched_directory_changes_with_its_names(tmp_path):
    files = WatchedFiles([tmp_path])
    (tmp_path / "alice").touch()
    assert files.changed()
