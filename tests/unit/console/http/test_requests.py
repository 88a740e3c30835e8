"""The access check of API requests."""

import pytest

from kafscale.console.http import requests
from kafscale.console.http.requests import RequestInfo, check_access
from kafscale.console.http.sessions import COOKIE, Sessions

NOW_MS = 1_700_000_000_000
SESSIONS = Sessions(b"key", 3_600_000)
SESSION = SESSIONS.issue("admin", NOW_MS, bytes(16))
COOKIES = {COOKIE: SESSIONS.cookie(SESSION)}
TOKEN = {requests.CSRF_HEADER: SESSIONS.csrf_token(SESSION)}
CHANGES = ("POST", "PUT", "DELETE", "PATCH")


def check(method, headers=None, cookies=None, *, to_session=False, is_configured=True):
    request = RequestInfo(method, headers or {}, cookies or {}, to_session)
    return check_access(request, SESSIONS, is_configured=is_configured, now_ms=NOW_MS)


@pytest.mark.parametrize("method", ["GET", "HEAD", *CHANGES])
def test_unconfigured_console_rejects_all_requests(method):
    result = check(method, TOKEN, COOKIES, is_configured=False)
    assert result is requests.DISABLED


def test_unconfigured_console_returns_the_session():
    assert check("GET", to_session=True, is_configured=False) is None
    assert check("POST", to_session=True, is_configured=False) is requests.DISABLED


@pytest.mark.parametrize("method", ["GET", "HEAD", *CHANGES])
def test_without_session_only_the_session_resource_is_allowed(method):
    assert check(method) is requests.SIGNED_OUT
    assert check(method, to_session=True) is None


@pytest.mark.parametrize("method", CHANGES)
def test_unsafe_requests_need_the_csrf_token(method):
    assert check(method, {}, COOKIES) is requests.BAD_CSRF_TOKEN
    assert check(method, {requests.CSRF_HEADER: "x"}, COOKIES) is requests.BAD_CSRF_TOKEN
    assert check(method, TOKEN, COOKIES) == SESSION


def test_safe_requests_need_no_csrf_token():
    assert check("GET", {}, COOKIES) == SESSION
    assert check("HEAD", {}, COOKIES) == SESSION


def test_login_needs_no_csrf_token_but_logout_does():
    assert check("POST", {}, COOKIES, to_session=True) == SESSION
    assert check("DELETE", {}, COOKIES, to_session=True) is requests.BAD_CSRF_TOKEN


HOST = {"host": "console.example:8080"}


@pytest.mark.parametrize(
    ("headers", "is_cross_site"),
    [
        ({}, False),
        ({"origin": "https://console.example:8080"}, False),
        ({"origin": "https://CONSOLE.example:8080"}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        # A proxy may have changed the host; Sec-Fetch-Site takes precedence.
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
def test_unsafe_requests_must_be_same_origin(headers, is_cross_site, to_session):
    result = check("POST", HOST | TOKEN | headers, COOKIES, to_session=to_session)
    assert (result is requests.CROSS_SITE) is is_cross_site
    assert check("GET", HOST | headers, COOKIES) == SESSION, "browsers protect reads"
