"""Authentication of the console: login, sessions, CSRF and security headers."""

import ssl
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafscale.console.app import ALL_ROUTES
from kafscale.console.http.login_throttle import FAILURES_MAX, HOLD_SECONDS_MAX, TURN_SECONDS
from services.broker import BrokerProcess
from services.certificates import make_certificates
from services.console import PASSWORD, USERNAME, ConsoleProcess

pytestmark = pytest.mark.timeout(120)

WRONG = "guess"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def console(tmp_path_factory, broker):
    with ConsoleProcess(tmp_path_factory.mktemp("console"), broker) as console:
        yield console


@pytest.fixture
def own_console(tmp_path, broker):
    """For tests whose failed logins would affect others."""
    with ConsoleProcess(tmp_path, broker) as console:
        yield console


def test_session_without_login_says_only_that_login_is_possible(console):
    session = console.anonymous_client().get("/session")
    assert session["isConfigured"]
    assert session["username"] is None
    assert session["csrfToken"] is None


def test_all_routes_need_a_session(console):
    assert len(ALL_ROUTES) > 30
    for route in ALL_ROUTES:
        path = route.path.replace(":path", "").replace("{name}", "x").replace("{id}", "1")
        response = console.anonymous_client().request(route.method, path, {})
        assert (response.status, response.json["error"]) == (401, "signed-out"), route
    assert console.anonymous_client().request("GET", "/nothing").status == 401


def test_session_cookie_is_http_only_and_same_site(console):
    console_client = console.anonymous_client()
    response = console_client.sign_in()
    assert response.json["username"] == USERNAME
    cookie = response.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "max-age=43200" in cookie
    assert "secure" not in cookie
    assert console_client.get("/session")["username"] == USERNAME
    assert console_client.request("GET", "/nothing").status == 404


def test_logout_revokes_the_cookie(console):
    console_client, thief = console.client(), console.anonymous_client()
    thief.cookies = dict(console_client.cookies)
    assert thief.get("/session")["username"] == USERNAME
    assert console_client.request("DELETE", "/session").status == 204
    assert thief.get("/session")["username"] is None
    assert thief.request("GET", "/acls").status == 401


def test_new_login_ends_the_previous_session(console):
    console_client, thief = console.client(), console.anonymous_client()
    thief.cookies = dict(console_client.cookies)
    console_client.sign_in()
    assert console_client.get("/session")["username"] == USERNAME
    assert thief.get("/session")["username"] is None


def test_changed_cookie_is_invalid(console):
    console_client = console.client()
    (name, cookie), *_ = console_client.cookies.items()
    for changed in (cookie[:-2], "A" + cookie, cookie.replace(".", ".."), "", ".", "x" * 5000):
        console_client.cookies = {name: changed}
        assert console_client.request("GET", "/acls").status == 401, changed


def test_unsafe_requests_need_the_csrf_token(console):
    console_client = console.client()
    console_client.csrf_token, token = None, console_client.csrf_token
    response = console_client.request("DELETE", "/session")
    assert (response.status, response.json["error"]) == (403, "csrf")
    console_client.csrf_token = console.client().csrf_token
    assert console_client.request("DELETE", "/session").status == 403, (
        "the token of another session"
    )
    console_client.csrf_token = token
    assert console_client.request("DELETE", "/session").status == 204


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_cross_site_requests_are_rejected(console, headers):
    console_client = console.client()
    response = console_client.request("DELETE", "/session", headers=headers)
    assert (response.status, response.json["error"]) == (403, "cross-site")
    login = {"username": USERNAME, "password": PASSWORD}
    assert console.anonymous_client().request("POST", "/session", login, headers).status == 403


def test_same_origin_requests_are_accepted(console):
    headers = {"Origin": f"http://127.0.0.1:{console.port}", "Sec-Fetch-Site": "same-origin"}
    assert console.client().request("DELETE", "/session", headers=headers).status == 204


def test_logins_are_held_after_failures(own_console):
    """The right password as well, or guessing would continue, but it succeeds."""
    client = own_console.anonymous_client()
    for _ in range(FAILURES_MAX):
        response = client.sign_in(password=WRONG)
        assert (response.status, response.json["error"]) == (401, "wrong-credentials")
    started = time.monotonic()
    assert client.sign_in().status == 200
    assert time.monotonic() - started >= TURN_SECONDS
    assert PASSWORD not in own_console.logged()


def test_only_a_few_logins_wait(own_console):
    """The others are refused at once."""
    guessers = [own_console.anonymous_client() for _ in range(FAILURES_MAX + 10)]
    for guesser in guessers[:FAILURES_MAX]:
        guesser.sign_in(password=WRONG)
    with ThreadPoolExecutor(10) as pool:
        responses = list(
            pool.map(lambda guesser: guesser.sign_in(password=WRONG), guessers[FAILURES_MAX:])
        )
    refused = [each for each in responses if each.status == 429]
    assert len(refused) == 10 - HOLD_SECONDS_MAX // TURN_SECONDS
    assert {each.json["error"] for each in refused} == {"throttled"}
    assert {each.headers["Retry-After"] for each in refused} == {"3"}


def test_clients_behind_a_trusted_proxy_are_throttled_separately(tmp_path, broker):
    login = {"username": USERNAME, "password": WRONG}

    def is_held(console):
        for number in range(FAILURES_MAX + 1):
            started = time.monotonic()
            forwarded = {"X-Forwarded-For": f"10.0.0.{number}"}
            response = console.anonymous_client().request("POST", "/session", login, forwarded)
            assert response.status == 401
        return time.monotonic() - started >= TURN_SECONDS

    with ConsoleProcess(tmp_path, broker) as console:
        assert is_held(console), "an untrusted X-Forwarded-For is ignored"
    with ConsoleProcess(tmp_path, broker, ui_trusted_proxies="127.0.0.0/8") as console:
        assert not is_held(console)


@pytest.mark.parametrize("missing", ["ui_username", "ui_password"])
def test_login_is_disabled_without_name_and_password(tmp_path, broker, missing):
    with ConsoleProcess(tmp_path, broker, **{missing: ""}) as console:
        anonymous = console.anonymous_client()
        assert not anonymous.get("/session")["isConfigured"]
        for method, path in (("POST", "/session"), ("GET", "/acls"), ("DELETE", "/session")):
            response = anonymous.request(method, path, {"username": "", "password": ""})
            assert (response.status, response.json["error"]) == (403, "ui-disabled")
            assert "KAFSCALE_UI_PASSWORD" in response.json["message"]


def test_new_password_ends_sessions_and_the_same_key_keeps_them(tmp_path, broker):
    key = {"ui_session_key": "long and random"}
    with ConsoleProcess(tmp_path, broker, **key) as first:
        console_client = first.client()
    with ConsoleProcess(tmp_path, broker, **key) as again:
        console_client.port = again.port
        assert console_client.get("/session")["username"] == USERNAME
    with ConsoleProcess(tmp_path, broker, **key, ui_password=WRONG) as changed:
        console_client.port = changed.port
        assert console_client.get("/session")["username"] is None


def test_all_responses_have_security_headers(console):
    for path in ("/", "/topics/orders", "/api/v1/session", "/api/v1/nothing", "/healthz"):
        headers = console.anonymous_client().request_path("GET", path).headers
        assert "script-src 'self';" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Strict-Transport-Security"] is None
        assert headers["Server"] is None
    assert (
        console.anonymous_client().request("GET", "/session").headers["Cache-Control"] == "no-store"
    )


def test_cookies_are_secure_and_hsts_is_set_behind_tls(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker, ui_tls_terminated_upstream="true") as console:
        response = console.anonymous_client().sign_in()
        assert "secure" in response.headers["Set-Cookie"].lower()
        assert "max-age=" in response.headers["Strict-Transport-Security"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b'{"username": 1, "password": ""}', {}, 400),
        (b'{"username": "\xff", "password": ""}', {}, 400),
        (b'{"username": "", "password": "", "more": 1}', {}, 400),
        (b"username=a", {"Content-Type": "application/x-www-form-urlencoded"}, 400),
        (b" " * (16 << 10) + b"{}", {}, 413),
        (b"{}", {"Host": "a b"}, 400),
    ],
)
def test_invalid_requests_are_rejected(console, body, headers, status):
    response = console.anonymous_client().request("POST", "/session", body, headers)
    assert response.status == status
    assert response.json["message"]


def test_healthz_needs_no_session(console):
    response = console.anonymous_client().request_path("GET", "/healthz")
    assert (response.status, response.body) == (200, b"ok\n")


def test_used_port_is_reported(tmp_path, console):
    with pytest.raises(RuntimeError, match="KAFSCALE_UI_PORT"):
        ConsoleProcess(tmp_path, ui_port=str(console.port)).start()


def test_event_stream_ends_with_the_session(console):
    console_client = console.client()
    with console_client.events() as events:
        assert next(events)[0] == "overview"
        assert console_client.request("DELETE", "/session").status == 204
        assert len(list(events)) <= 1, "but for one that was on its way, there are no more"


def test_shutdown_does_not_wait_for_event_streams(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker) as console, console.client().events() as events:
        assert next(events)[0] == "overview"
        console.terminate()
        assert "error" not in console.logged().lower().replace("errorrate", "")


def test_console_with_certificate_uses_tls(tmp_path, broker):
    created = make_certificates(tmp_path / "certificates")
    files = {
        "ui_cert_file": str(created.server_certificate),
        "ui_key_file": str(created.server_key),
    }
    with ConsoleProcess(tmp_path, broker, **files) as console:
        context = ssl.create_default_context(cafile=str(created.authority))
        console_client = console.anonymous_client(context=context)
        response = console_client.sign_in()
        assert response.status == 200
        assert "secure" in response.headers["Set-Cookie"].lower()
        assert "max-age=" in response.headers["Strict-Transport-Security"]
        assert console_client.get("/session")["username"] == USERNAME


def test_invalid_certificate_is_reported(tmp_path):
    (tmp_path / "key").write_text("nothing")
    files = {"ui_cert_file": str(tmp_path / "key"), "ui_key_file": str(tmp_path / "key")}
    with pytest.raises(RuntimeError, match=r"ui\.certFile"):
        ConsoleProcess(tmp_path, **files).start()
