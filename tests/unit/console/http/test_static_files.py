"""The static files of the web app."""

import gzip

import pytest

from kafscale.console.http.static_files import static_app
from services.asgi import ask

SCRIPT = b"console.log('hello');" * 200


@pytest.fixture
def built(tmp_path):
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<title>Kafscale</title>")
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "index-abc.js").write_bytes(SCRIPT)
    (tmp_path / "secret").write_text("secret")
    return static_app(static)


def test_hashed_files_are_cached_for_a_year(built):
    status, headers, body = ask(built, "/assets/index-abc.js")
    assert (status, body) == (200, SCRIPT)
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert headers["content-type"].startswith("text/javascript")


def test_files_are_compressed_on_request(built):
    _, headers, body = ask(built, "/assets/index-abc.js", {"Accept-Encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == SCRIPT


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/topics/orders.eu", "/groups/a/b", "/index.html"]
)
def test_every_page_is_the_app_and_is_revalidated(built, path):
    status, headers, body = ask(built, path)
    assert (status, body) == (200, b"<title>Kafscale</title>")
    assert headers["cache-control"] == "no-cache"
    assert headers["content-type"].startswith("text/html")


def test_other_files_are_served(built):
    assert ask(built, "/favicon.svg")[2] == b"<svg/>"


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/assets/../../secret", "//etc/passwd", "/..%2fsecret", "/a/../../secret"],
)
def test_path_traversal_is_rejected(built, path):
    assert b"secret" not in ask(built, path)[2]
    assert b"root:" not in ask(built, path)[2]


def test_missing_build_is_reported(tmp_path):
    status, headers, body = ask(static_app(tmp_path / "nothing"), "/topics")
    assert status == 503
    assert b"make web" in body
    assert headers["cache-control"] == "no-cache"
