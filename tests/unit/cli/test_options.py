"""Reading of passwords."""

import io
import sys

import pytest
import typer

from kafscale.cli.options import read_password


@pytest.mark.parametrize("written", ["open sesame", "open sesame\n", "open sesame\r\n"])
def test_password_file_is_read_without_the_newline(tmp_path, written):
    file = tmp_path / "password"
    file.write_bytes(written.encode())
    assert read_password(str(file), "alice") == "open sesame"


@pytest.mark.parametrize("written", ["", "\n", "one\ntwo\n"])
def test_invalid_password_is_rejected(tmp_path, written):
    file = tmp_path / "password"
    file.write_text(written)
    with pytest.raises(typer.BadParameter, match="one line and not empty"):
        read_password(str(file), "alice")


def test_unreadable_password_file_is_reported(tmp_path):
    with pytest.raises(typer.BadParameter, match="cannot read"):
        read_password(str(tmp_path / "absent"), "alice")


def test_password_file_is_required_without_a_terminal(monkeypatch):
    monkeypatch.setitem(vars(sys), "stdin", io.StringIO("ignored\n"))
    with pytest.raises(typer.BadParameter, match="cannot prompt"):
        read_password("", "alice")
    assert read_password("-", "alice") == "ignored"
