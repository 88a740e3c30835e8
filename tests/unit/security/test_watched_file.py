"""Changes of files are seen once each, whichever way a file comes to be another one."""

import os

import pytest

from kafscale.security.reloading_file import WatchedFiles


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "server.crt"
    file.write_text("one")
    return file


def rewritten(path):
    path.write_text("another one")


def written_alike(path):
    """As long as before, and with the time that it had."""
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


@pytest.mark.parametrize("change", [rewritten, written_alike, replaced, removed, made_readable])
def test_a_change_is_told_once(path, change):
    files = WatchedFiles([path, path.with_name("absent")])
    assert not files.changed()
    change(path)
    assert files.changed()
    assert not files.changed()


def test_a_file_that_appears_is_a_change(tmp_path):
    files = WatchedFiles([str(tmp_path / "late")])
    assert not files.changed()
    (tmp_path / "late").touch()
    assert files.changed()


def test_a_mounted_secret_changes_when_its_link_leads_elsewhere(tmp_path):
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "tls.crt").write_text("same")
    current = tmp_path / "current"
    current.symlink_to("1")
    files = WatchedFiles([current / "tls.crt"])
    (tmp_path / "next").symlink_to("2")
    (tmp_path / "next").rename(current)
    assert files.changed()


def test_a_directory_changes_with_the_names_in_it(tmp_path):
    files = WatchedFiles([tmp_path])
    (tmp_path / "alice").touch()
    assert files.changed()
