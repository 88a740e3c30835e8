"""Metrics and health over HTTP, over a plain socket."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.broker.network.http import AdminHttp, RequestHead, parse
from kafscale.observability.metrics.broker import BROKER_METRICS, Metrics
from unit.broker.harness import run


@asynccontextmanager
async def served(readiness=dict, **options):
    admin = AdminHttp(Metrics(), readiness, **options)
    await admin.listen("127.0.0.1", 0)
    try:
        yield admin
    finally:
        await admin.close()


async def read_reply(reader, *, with_body=True):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *rest = head.rstrip().split("\r\n")
    headers = dict(part.split(": ", 1) for part in rest)
    body = await reader.readexactly(int(headers["Content-Length"])) if with_body else b""
    return int(line.split()[1]), headers, body


async def ask(admin, request):
    """Send some bytes; read one response and the end of the connection."""
    reader, writer = await asyncio.open_connection(*admin.addresses[0])
    writer.write(request)
    status, headers, body = await read_reply(reader, with_body=not request.startswith(b"HEAD"))
    assert (await reader.read() == b"") == (headers["Connection"] == "close")
    writer.close()
    return status, headers, body


def get(path, method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n".encode()


def test_metrics_are_in_prometheus_text_format():
    async def scenario():
        async with served() as admin:
            status, headers, body = await ask(admin, get("/metrics"))
        assert status == 200
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert b"\nkafscale_active_connections 0\n" in body

    run(scenario)


def test_scrape_yields_to_the_loop_after_every_metric():
    async def scenario():
        scrape = asyncio.ensure_future(AdminHttp(Metrics(), dict)._exposition())
        turns = 0
        while not scrape.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= len(BROKER_METRICS)
        assert scrape.result().count(b"# TYPE") == len(BROKER_METRICS)

    run(scenario)


@pytest.mark.parametrize("path", ["/health", "/healthz", "/healthz?verbose=1"])
def test_liveness_is_independent_of_readiness(path):
    async def scenario():
        async with served(lambda: {"etcd": "unreachable"}) as admin:
            status, headers, body = await ask(admin, get(path))
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert json.loads(body) == {"status": "ok"}

    run(scenario)


def test_warnings_do_not_change_readiness():
    async def scenario():
        async with served(warnings=lambda: {"etcd": "nearly full"}) as admin:
            status, _, body = await ask(admin, get("/readyz"))
            assert status == 200
            assert json.loads(body) == {
                "ready": True,
                "reasons": {},
                "warnings": {"etcd": "nearly full"},
            }

    run(scenario)


def test_readiness_reports_its_reasons():
    async def scenario():
        reasons = {"etcd": "unreachable"}
        async with served(lambda: reasons) as admin:
            status, _, body = await ask(admin, get("/readyz"))
            assert status == 503
            assert json.loads(body) == {
                "ready": False,
                "reasons": {"etcd": "unreachable"},
                "warnings": {},
            }
            reasons.clear()
            status, _, body = await ask(admin, get("/readyz"))
            assert status == 200
            assert json.loads(body) == {"ready": True, "reasons": {}, "warnings": {}}

    run(scenario)


def test_head_request_gets_the_length_without_the_body():
    async def scenario():
        async with served() as admin:
            status, headers, _ = await ask(admin, get("/healthz", "HEAD"))
        assert (status, headers["Content-Length"]) == (200, str(len(b'{"status":"ok"}\n')))

    run(scenario)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/nothing"), 404),
        (get("/metrics", "POST"), 405),
        (b"hello\r\n\r\n", 400),
        (b"GET /metrics HTTP/9\r\n\r\n", 400),
        (b"GET metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", 431),
    ],
)
def test_invalid_requests_get_an_error_status(request_bytes, status):
    async def scenario():
        async with served() as admin:
            result, headers, _ = await ask(admin, request_bytes)
        assert result == status
        assert headers.get("Allow") == ("GET, HEAD" if status == 405 else None)

    run(scenario)


def test_connection_serves_pipelined_requests():
    async def scenario():
        async with served() as admin:
            reader, writer = await asyncio.open_connection(*admin.addresses[0])
            keep = b"GET /healthz HTTP/1.1\r\nHost: broker\r\n\r\n"
            writer.write(keep + keep + get("/readyz"))
            bodies = [(await read_reply(reader))[2] for _ in range(3)]
            assert await reader.read() == b""
            writer.close()
        assert [json.loads(body).get("ready") for body in bodies] == [None, None, True]

    run(scenario)


def test_slow_request_times_out():
    async def scenario():
        async with served(request_seconds_max=0.01) as admin:
            reader, writer = await asyncio.open_connection(*admin.addresses[0])
            writer.write(b"GET /heal")
            assert await reader.read() == b""
            writer.close()

    run(scenario)


def test_silent_connections_keep_nobody_out():
    async def scenario():
        async with served(connections_max=3) as admin, AsyncExitStack() as stack:
            silent = []
            for number in range(20):
                reader, writer = await asyncio.open_connection(*admin.addresses[0])
                stack.callback(writer.close)
                silent.append(reader)
                if number % 2:
                    writer.write(b"GET /metrics HTTP/1.1\r\n")
                assert (await ask(admin, get("/healthz")))[0] == 200
            assert [await reader.read() for reader in silent[:-3]] == [b""] * 17

    run(scenario)


def test_connection_that_is_used_stays():
    async def scenario():
        async with served(connections_max=2) as admin:
            reader, kept = await asyncio.open_connection(*admin.addresses[0])
            for _ in range(5):
                kept.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert (await read_reply(reader))[0] == 200
                _, other = await asyncio.open_connection(*admin.addresses[0])
                await asyncio.sleep(0.01)
                other.close()
            kept.close()

    run(scenario)


def test_close_ends_open_connections():
    async def scenario():
        async with served() as admin:
            reader, writer = await asyncio.open_connection(*admin.addresses[0])
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            await read_reply(reader)
            await admin.close()
            assert await reader.read() == b""
            writer.close()

    run(scenario)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_parser_never_raises(line, headers):
    parsed = parse(line + b"\r\n" + headers + b"\r\n\r\n")
    assert isinstance(parsed, RequestHead) or parsed is HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("version", "headers", "keeps_alive"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: Close", False),
        ("1.0", "", False),
        ("1.0", "connection: keep-alive", True),
        ("1.1", "Content-Length: 3", False),
        ("1.1", "Content-Length: 0", True),
        ("1.1", "Transfer-Encoding: chunked", False),
    ],
)
def test_keep_alive_follows_version_and_headers(version, headers, keeps_alive):
    parsed = parse(f"GET / HTTP/{version}\r\n{headers}\r\n\r\n".encode())
    assert parsed == RequestHead("GET", "/", keeps_alive)
