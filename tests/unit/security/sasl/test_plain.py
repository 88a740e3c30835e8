"""PLAIN: the server, and its users from a setting, a file or a directory."""

import pytest
from aiokafka.conn import SaslPlainAuthenticator
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kafscale.errors import AuthenticationError, ConfigError
from kafscale.security.principal import Principal
from kafscale.security.sasl.client import PlainSaslClient
from kafscale.security.sasl.plain import (
    FILE_BYTES_MAX,
    TOKEN_BYTES_MAX,
    PlainSaslServer,
    PlainUsers,
)

USERS = {"alice": "secret", "päivi": "salasana: ä"}


def exchange():
    return PlainSaslServer(lambda user, password: USERS.get(user) == password)


@pytest.mark.parametrize("user", USERS)
def test_correct_password_is_accepted(user):
    client = PlainSaslClient(user, USERS[user])
    step = exchange().evaluate_response(client.initial_response())
    assert (step.token, step.principal) == (b"", Principal(f"User:{user}"))


def test_aiokafka_client_is_accepted():
    client = SaslPlainAuthenticator(
        loop=None, sasl_plain_username="alice", sasl_plain_password=USERS["alice"]
    )
    token, _ = next(client.authenticator_plain())
    assert exchange().evaluate_response(token).principal == Principal("User:alice")


def test_unknown_user_and_wrong_password_give_the_same_error():
    refusals = set()
    for token in (b"\0alice\0guessed", b"\0bob\0secret"):
        with pytest.raises(AuthenticationError) as refusal:
            exchange().evaluate_response(token)
        refusals.add(str(refusal.value))
    assert refusals == {"Authentication failed: Invalid username or password"}


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"root\0alice\0secret", "authorization id"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"alice\0secret", "expected"),
        (b"\0alice\0secret\0", "expected"),
        (b"\0alice\0\xff", "expected"),
        (b"\0alice\0" + b"x" * TOKEN_BYTES_MAX, "expected"),
    ],
)
def test_malformed_token_is_rejected(token, reason):
    with pytest.raises(AuthenticationError, match=reason):
        exchange().evaluate_response(token)


def test_other_authorization_id_does_not_reveal_the_password():
    with pytest.raises(AuthenticationError, match="Invalid username or password"):
        exchange().evaluate_response(b"root\0alice\0guessed")


@given(st.binary(max_size=100))
def test_random_bytes_are_rejected(token):
    with pytest.raises(AuthenticationError):
        exchange().evaluate_response(token)


class Clock:
    now_ms = 0

    def __call__(self):
        self.now_ms += 1000
        return self.now_ms


def users(setting="", file=""):
    return PlainUsers(setting, str(file), secret=b"secret", clock=Clock())


def test_users_of_the_setting_are_accepted():
    known = users("alice:secret,bob:with:colon")
    assert known.verify_password("alice", "secret")
    assert known.verify_password("bob", "with:colon")
    assert not known.verify_password("alice", "with:colon")
    assert not known.verify_password("alice", "")
    assert not known.verify_password("carol", "secret")


def test_users_of_a_file_are_accepted(tmp_path):
    file = tmp_path / "users"
    file.write_bytes("# People.\n\nalice:secret\r\n bob: with spaces \npäivi:#1\u2028".encode())
    known = users(file=file)
    assert known.verify_password("alice", "secret")
    assert known.verify_password("bob", " with spaces ")
    assert known.verify_password("päivi", "#1\u2028")
    assert not known.verify_password("# People.", "")


def test_users_of_a_mounted_secret_are_accepted(tmp_path):
    """It replaces all files at once, by pointing a link elsewhere."""

    def mount(version, passwords):
        (tmp_path / version).mkdir()
        for user, password in passwords.items():
            (tmp_path / version / user).write_text(password)
        (tmp_path / "..new").symlink_to(version)
        (tmp_path / "..new").replace(tmp_path / "..data")

    mount("..1", {"alice": "secret\n", "bob": "two\n\n"})
    for user in ("alice", "bob"):
        (tmp_path / user).symlink_to(f"..data/{user}")
    known = users(file=tmp_path)
    assert known.verify_password("alice", "secret")
    assert known.verify_password("bob", "two\n")
    assert not known.verify_password("..data", "secret")
    mount("..2", {"alice": "changed", "bob": "two\n\n"})
    assert known.verify_password("alice", "changed")
    assert not known.verify_password("alice", "secret")


def test_file_overrides_the_setting(tmp_path):
    (tmp_path / "users").write_text("alice:from the file")
    known = users("alice:from the setting,bob:secret", tmp_path / "users")
    assert known.verify_password("alice", "from the file")
    assert not known.verify_password("alice", "from the setting")
    assert known.verify_password("bob", "secret")


def test_changed_file_is_reloaded_unless_it_is_invalid(tmp_path):
    file = tmp_path / "users"
    file.write_text("alice:secret")
    known = users(file=file)
    file.write_text("alice:changed\nbob:new")
    assert known.verify_password("alice", "changed")
    file.write_text("this is s3cret nonsense")
    with capture_logs() as events:
        assert known.verify_password("bob", "new")
    assert events[0]["event"] == "file not reloaded"
    assert "s3cret" not in str(events)
    file.write_text("alice:changed")
    assert not known.verify_password("bob", "new")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("alice", "line 1 does not have the form user:password"),
        ("\nalice:", "line 2 does not have the form user:password"),
        (":s3cret", "line 1 does not have the form user:password"),
        ("# x\nalice:s3cret\nalice:other", "line 3 repeats a user"),
        ("\udcff", "is not UTF-8 text"),
        ("#" * (FILE_BYTES_MAX + 1), "is larger than"),
        ("", "there are no users"),
    ],
)
def test_invalid_file_fails_the_start(tmp_path, content, reason):
    (tmp_path / "users").write_text(content, errors="surrogateescape")
    with pytest.raises(ConfigError, match=reason) as refusal:
        users(file=tmp_path / "users")
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("setting", ["alice", "alice:secret,", "alice:s3cret,alice:other"])
def test_invalid_setting_fails_the_start(setting):
    with pytest.raises(ConfigError, match=r"^sasl\.plainUsers: entry \d ") as refusal:
        users(setting)
    assert "s3cret" not in str(refusal.value)


def test_missing_users_fail_the_start(tmp_path):
    with pytest.raises(ConfigError, match="there are no users"):
        users()
    with pytest.raises(ConfigError, match="there are no users"):
        users(file=tmp_path)
    with pytest.raises(ConfigError, match=r"sasl\.plainUsersFile: .*/none cannot be read"):
        users(file=tmp_path / "none")


def test_empty_password_file_fails_the_start(tmp_path):
    (tmp_path / "alice").write_text("\n")
    with pytest.raises(ConfigError, match="'alice' is empty"):
        users(file=tmp_path)


def test_passwords_are_not_kept(tmp_path):
    (tmp_path / "users").write_text("alice:s3cret")
    known = users("bob:s3cret", tmp_path / "users")
    assert "s3cret" not in str(vars(known)) + str(vars(known._file))
