"""Who may ask the API for something."""

import pytest

from kafscale.console.http import csrf_and_access
from kafscale.console.http.csrf_and_access import Asked, judge
from kafscale.console.http.sessions import COOKIE, Sessions

NOW_MS = 1_700_000_000_000
SESSIONS = Sessions(b"key", 3_600_000)
SESSION = SESSIONS.issue("admin", NOW_MS, bytes(16))
COOKIES = {COOKIE: SESSIONS.cookie(SESSION)}
TOKEN = {csrf_and_access.CSRF_HEADER: SESSIONS.csrf_token(SESSION)}
CHANGES = ("POST", "PUT", "DELETE", "PATCH")


def judged(method, headers=None, cookies=None, *, to_session=False, is_configured=True):
    asked = Asked(method, headers or {}, cookies or {}, to_session)
    return judge(asked, SESSIONS, is_configured=is_configured, now_ms=NOW_MS)


@pytest.mark.parametrize("method", ["GET", "HEAD", *CHANGES])
def test_while_nothing_is_configured_nobody_may_anything(method):
    told = judged(method, TOKEN, COOKIES, is_configured=False)
    assert told is csrf_and_access.DISABLED


def test_while_nothing_is_configured_one_may_ask_whether_it_is():
    assert judged("GET", to_session=True, is_configured=False) is None
    assert judged("POST", to_session=True, is_configured=False) is csrf_and_access.DISABLED


@pytest.mark.parametrize("method", ["GET", "HEAD", *CHANGES])
def test_a_stranger_may_only_ask_about_the_session(method):
    assert judged(method) is csrf_and_access.SIGNED_OUT
    assert judged(method, to_session=True) is None


@pytest.mark.parametrize("method", CHANGES)
def test_a_change_needs_the_token(method):
    assert judged(method, {}, COOKIES) is csrf_and_access.UNPROVEN
    assert judged(method, {csrf_and_access.CSRF_HEADER: "x"}, COOKIES) is csrf_and_access.UNPROVEN
    assert judged(method, TOKEN, COOKIES) == SESSION


def test_reading_needs_no_token():
    assert judged("GET", {}, COOKIES) == SESSION
    assert judged("HEAD", {}, COOKIES) == SESSION


def test_signing_in_again_needs_no_token_but_signing_out_does():
    assert judged("POST", {}, COOKIES, to_session=True) == SESSION
    assert judged("DELETE", {}, COOKIES, to_session=True) is csrf_and_access.UNPROVEN


HERE = {"host": "console.example:8080"}


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"origin": "https://console.example:8080"}, False),
        ({"origin": "https://CONSOLE.example:8080"}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        # What stands in between may have changed the host; the browser knows better.
        ({"origin": "https://outside.example", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "https://console.example"}, True),
        ({"origin": "https://evil.example:8080"}, True),
        ({"origin": "https://console.example:8080.evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": ""}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": "https://console.example:8080", "sec-fetch-site": "cross-site"}, True),
    ],
)
@pytest.mark.parametrize("to_session", [False, True])
def test_what_changes_something_comes_from_here(headers, is_foreign, to_session):
    told = judged("POST", HERE | TOKEN | headers, COOKIES, to_session=to_session)
    assert (told is csrf_and_access.FOREIGN) is is_foreign
    assert judged("GET", HERE | headers, COOKIES) == SESSION, "reading is the browser's business"
