"""Signed session cookies."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.console.http.sessions import REVOKED_MAX, Sessions, constant_time_equal, signing_key

KEY = signing_key(b"secret", "admin", "hunter2")
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ID = bytes(range(16))


@pytest.fixture
def sessions():
    return Sessions(KEY, 12 * HOUR_MS)


def test_cookie_is_valid_until_it_expires(sessions):
    session = sessions.issue("admin", NOW_MS, ID)
    cookie = sessions.cookie(session)
    assert sessions.read(cookie, NOW_MS) == session
    assert sessions.read(cookie, NOW_MS + 12 * HOUR_MS - 1) == session
    assert sessions.read(cookie, NOW_MS + 12 * HOUR_MS) is None


def test_shorter_lifetime_applies_to_issued_cookies(sessions):
    cookie = sessions.cookie(sessions.issue("admin", NOW_MS, ID))
    stricter = Sessions(KEY, HOUR_MS)
    assert stricter.read(cookie, NOW_MS + HOUR_MS - 1)
    assert stricter.read(cookie, NOW_MS + HOUR_MS) is None


@pytest.mark.parametrize(
    "other",
    [
        signing_key(b"secret", "admin", "hunter3"),
        signing_key(b"secret", "root", "hunter2"),
        signing_key(b"other", "admin", "hunter2"),
        signing_key(b"secret", "adminh", "unter2"),
    ],
)
def test_another_name_password_or_secret_ends_sessions(sessions, other):
    cookie = sessions.cookie(sessions.issue("admin", NOW_MS, ID))
    assert Sessions(other, 12 * HOUR_MS).read(cookie, NOW_MS) is None


@given(st.data())
def test_changed_cookie_is_invalid(data):
    sessions = Sessions(KEY, HOUR_MS)
    cookie = sessions.cookie(sessions.issue("admin", NOW_MS, ID))
    position = data.draw(st.integers(0, len(cookie) - 1))
    letter = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-_.=é"))
    changed = cookie[:position] + letter + cookie[position + 1 :]
    assert changed == cookie or sessions.read(changed, NOW_MS) is None


@given(st.text())
def test_any_text_can_be_read(text):
    assert Sessions(KEY, HOUR_MS).read(text, NOW_MS) is None


def test_revoked_session_stays_invalid(sessions):
    session = sessions.issue("admin", NOW_MS, ID)
    other = sessions.issue("admin", NOW_MS, ID[::-1])
    sessions.revoke(session, NOW_MS)
    assert sessions.read(sessions.cookie(session), NOW_MS) is None
    assert sessions.read(sessions.cookie(other), NOW_MS) == other


def test_revoked_sessions_are_bounded(sessions):
    first, session = (sessions.issue("admin", NOW_MS, bytes([number] * 16)) for number in (1, 2))
    sessions.revoke(first, NOW_MS)
    others = (number.to_bytes(16) for number in range(REVOKED_MAX - 1))
    sessions._revoked.update(dict.fromkeys(others, first.expires_at_ms))
    sessions.revoke(session, NOW_MS)
    assert first.id not in sessions._revoked, "the oldest is forgotten"
    assert len(sessions._revoked) == REVOKED_MAX
    assert sessions.read(sessions.cookie(session), NOW_MS) is None
    sessions.revoke(session, NOW_MS + 13 * HOUR_MS)
    assert len(sessions._revoked) == 1, "expired sessions are forgotten"


def test_each_session_has_its_own_csrf_token(sessions):
    tokens = {
        sessions.csrf_token(sessions.issue("admin", NOW_MS, number.to_bytes(16)))
        for number in range(10)
    }
    assert len(tokens) == 10
    assert not any(token in sessions.cookie(sessions.issue("a", 0, ID)) for token in tokens)


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [("", "", True), ("a", "a", True), ("a", "b", False), ("a", "aa", False), ("ü", "u", False)],
)
def test_constant_time_equal(one, other, are_same):
    assert constant_time_equal(one, other) is are_same


def test_key_is_not_in_repr(sessions):
    assert KEY.hex() not in repr(sessions)
    assert repr(KEY) not in repr(sessions)
