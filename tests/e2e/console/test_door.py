"""The door of the console: who gets in, who does not, and what browsers are told."""

import ssl

import pytest

from kafscale.console.api.routes import ALL_ROUTES
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
    """For tests whose failed logins would count for others."""
    with ConsoleProcess(tmp_path, broker) as console:
        yield console


def test_a_stranger_is_told_only_that_they_may_sign_in(console):
    told = console.stranger().get("/session")
    assert told["isConfigured"]
    assert told["username"] is None
    assert told["csrfToken"] is None


def test_nothing_of_the_api_is_for_strangers(console):
    assert len(ALL_ROUTES) > 30
    for route in ALL_ROUTES:
        path = route.path.replace(":path", "").replace("{name}", "x").replace("{id}", "1")
        answer = console.stranger().ask(route.method, path, {})
        assert (answer.status, answer.json["error"]) == (401, "signed-out"), route
    assert console.stranger().ask("GET", "/nothing").status == 401


def test_who_signs_in_gets_a_cookie_that_scripts_and_other_sites_cannot_have(console):
    visitor = console.stranger()
    answer = visitor.sign_in()
    assert answer.json["username"] == USERNAME
    cookie = answer.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "max-age=43200" in cookie
    assert "secure" not in cookie
    assert visitor.get("/session")["username"] == USERNAME
    assert visitor.ask("GET", "/nothing").status == 404


def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(console):
    visitor, thief = console.visitor(), console.stranger()
    thief.cookies = dict(visitor.cookies)
    assert thief.get("/session")["username"] == USERNAME
    assert visitor.ask("DELETE", "/session").status == 204
    assert thief.get("/session")["username"] is None
    assert thief.ask("GET", "/acls").status == 401


def test_signing_in_again_ends_the_session_before(console):
    visitor, thief = console.visitor(), console.stranger()
    thief.cookies = dict(visitor.cookies)
    visitor.sign_in()
    assert visitor.get("/session")["username"] == USERNAME
    assert thief.get("/session")["username"] is None


def test_a_changed_cookie_is_worth_nothing(console):
    visitor = console.visitor()
    (name, cookie), *_ = visitor.cookies.items()
    for changed in (cookie[:-2], "A" + cookie, cookie.replace(".", ".."), "", ".", "x" * 5000):
        visitor.cookies = {name: changed}
        assert visitor.ask("GET", "/acls").status == 401, changed


def test_what_changes_something_needs_the_token_of_the_session(console):
    visitor = console.visitor()
    visitor.csrf_token, token = None, visitor.csrf_token
    answer = visitor.ask("DELETE", "/session")
    assert (answer.status, answer.json["error"]) == (403, "csrf")
    visitor.csrf_token = console.visitor().csrf_token
    assert visitor.ask("DELETE", "/session").status == 403, "the token of another session"
    visitor.csrf_token = token
    assert visitor.ask("DELETE", "/session").status == 204


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_cannot_change_anything_nor_sign_anybody_in(console, headers):
    visitor = console.visitor()
    answer = visitor.ask("DELETE", "/session", headers=headers)
    assert (answer.status, answer.json["error"]) == (403, "cross-site")
    login = {"username": USERNAME, "password": PASSWORD}
    assert console.stranger().ask("POST", "/session", login, headers).status == 403


def test_a_page_of_the_console_itself_may(console):
    headers = {"Origin": f"http://127.0.0.1:{console.port}", "Sec-Fetch-Site": "same-origin"}
    assert console.visitor().ask("DELETE", "/session", headers=headers).status == 204


def test_guessing_is_slowed_down(own_console):
    guesser = own_console.stranger()
    for _ in range(5):
        answer = guesser.sign_in(password=WRONG)
        assert (answer.status, answer.json["error"]) == (401, "wrong-credentials")
    answer = guesser.sign_in(password=WRONG)
    assert (answer.status, answer.json["error"]) == (429, "throttled")
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert guesser.sign_in().status == 429, "the right one as well, or guessing would go on"
    assert PASSWORD not in own_console.logged()


def test_who_comes_through_a_proxy_counts_by_themselves(tmp_path, broker):
    login = {"username": USERNAME, "password": WRONG}

    def statuses(console, count):
        asked = (
            console.stranger().ask("POST", "/session", login, {"X-Forwarded-For": f"10.0.0.{each}"})
            for each in range(count)
        )
        return {answer.status for answer in asked}

    with ConsoleProcess(tmp_path, broker) as console:
        assert statuses(console, 6) == {401, 429}, "what anybody may say is not believed"
    with ConsoleProcess(tmp_path, broker, ui_trusted_proxies="127.0.0.0/8") as console:
        assert statuses(console, 6) == {401}


@pytest.mark.parametrize("missing", ["ui_username", "ui_password"])
def test_without_a_name_and_a_password_nobody_gets_in(tmp_path, broker, missing):
    with ConsoleProcess(tmp_path, broker, **{missing: ""}) as console:
        stranger = console.stranger()
        assert not stranger.get("/session")["isConfigured"]
        for method, path in (("POST", "/session"), ("GET", "/acls"), ("DELETE", "/session")):
            answer = stranger.ask(method, path, {"username": "", "password": ""})
            assert (answer.status, answer.json["error"]) == (403, "ui-disabled")
            assert "KAFSCALE_UI_PASSWORD" in answer.json["message"]


def test_another_password_ends_sessions_and_the_same_key_keeps_them(tmp_path, broker):
    key = {"ui_session_key": "long and random"}
    with ConsoleProcess(tmp_path, broker, **key) as first:
        visitor = first.visitor()
    with ConsoleProcess(tmp_path, broker, **key) as again:
        visitor.port = again.port
        assert visitor.get("/session")["username"] == USERNAME
    with ConsoleProcess(tmp_path, broker, **key, ui_password=WRONG) as changed:
        visitor.port = changed.port
        assert visitor.get("/session")["username"] is None


def test_every_answer_carries_what_browsers_guard_us_by(console):
    for path in ("/", "/topics/orders", "/api/v1/session", "/api/v1/nothing", "/healthz"):
        headers = console.stranger().raw("GET", path).headers
        assert "script-src 'self';" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Strict-Transport-Security"] is None
        assert headers["Server"] is None
    assert console.stranger().ask("GET", "/session").headers["Cache-Control"] == "no-store"


def test_behind_tls_cookies_are_secure_and_browsers_stay_with_tls(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker, ui_behind_tls="true") as console:
        answer = console.stranger().sign_in()
        assert "secure" in answer.headers["Set-Cookie"].lower()
        assert "max-age=" in answer.headers["Strict-Transport-Security"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b'{"username": 1, "password": ""}', {}, 400),
        (b'{"username": "", "password": "", "more": 1}', {}, 400),
        (b"username=a", {"Content-Type": "application/x-www-form-urlencoded"}, 400),
        (b" " * (16 << 10) + b"{}", {}, 413),
        (b"{}", {"Host": "a b"}, 400),
    ],
)
def test_what_is_not_understood_is_said_to_be_so(console, body, headers, status):
    answer = console.stranger().ask("POST", "/session", body, headers)
    assert answer.status == status
    assert answer.json["message"]


def test_it_is_alive_for_everybody(console):
    answer = console.stranger().raw("GET", "/healthz")
    assert (answer.status, answer.body) == (200, b"ok\n")


def test_a_port_that_is_taken_is_said_to_be_so(tmp_path, console):
    with pytest.raises(RuntimeError, match="KAFSCALE_UI_PORT"):
        ConsoleProcess(tmp_path, ui_port=str(console.port)).start()


def test_events_end_with_the_session(console):
    visitor = console.visitor()
    with visitor.events() as events:
        assert next(events)[0] == "overview"
        assert visitor.ask("DELETE", "/session").status == 204
        assert len(list(events)) <= 1, "but for one that was on its way, there are no more"


def test_it_stops_at_once_though_somebody_listens(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker) as console, console.visitor().events() as events:
        assert next(events)[0] == "overview"
        console.terminate()
        assert "error" not in console.logged().lower().replace("errorrate", "")


def test_it_is_served_over_tls_where_there_is_a_certificate(tmp_path, broker):
    made = make_certificates(tmp_path / "certificates")
    files = {"ui_cert_file": str(made.server_certificate), "ui_key_file": str(made.server_key)}
    with ConsoleProcess(tmp_path, broker, **files) as console:
        context = ssl.create_default_context(cafile=str(made.authority))
        visitor = console.stranger(context=context)
        answer = visitor.sign_in()
        assert answer.status == 200
        assert "secure" in answer.headers["Set-Cookie"].lower()
        assert "max-age=" in answer.headers["Strict-Transport-Security"]
        assert visitor.get("/session")["username"] == USERNAME


def test_a_certificate_that_is_none_is_told(tmp_path):
    (tmp_path / "key").write_text("nothing")
    files = {"ui_cert_file": str(tmp_path / "key"), "ui_key_file": str(tmp_path / "key")}
    with pytest.raises(RuntimeError, match=r"ui\.certFile"):
        ConsoleProcess(tmp_path, **files).start()
