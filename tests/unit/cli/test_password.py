"""How commands learn a password."""

import io
import sys

import pytest
import typer

from kafscale.cli.password import read_password


@pytest.mark.parametrize("written", ["open sesame", "open sesame\n", "open sesame\r\n"])
def test_it_is_read_from_a_file_without_the_end_of_its_line(tmp_path, written):
    file = tmp_path / "password"
    file.write_bytes(written.encode())
    assert read_password(str(file), "alice") == "open sesame"


@pytest.mark.parametrize("written", ["", "\n", "one\ntwo\n"])
def test_what_is_no_password_is_refused(tmp_path, written):
    file = tmp_path / "password"
    file.write_text(written)
    with pytest.raises(typer.BadParameter, match="one line, and not empty"):
        read_password(str(file), "alice")


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(typer.BadParameter, match="cannot be read"):
        read_password(str(tmp_path / "absent"), "alice")


def test_where_nobody_can_be_asked_a_file_is_needed(monkeypatch):
    monkeypatch.setitem(vars(sys), "stdin", io.StringIO("ignored\n"))
    with pytest.raises(typer.BadParameter, match="nobody can be asked"):
        read_password("", "alice")
    assert read_password("-", "alice") == "ignored"
