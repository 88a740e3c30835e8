"""Probes and hooks of containers.

An unhealthy container is probed more often than its period, so that tests are fast; but only a
whole period without a success counts as a failure.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]
Check = Callable[[], Awaitable[bool]]
Results = AsyncIterator[bool]
Execute = Callable[[Sequence[str]], Awaitable[int]]

RETRY_S = 0.2
"""The interval of probes while unhealthy."""


async def results(probe: Manifest, check: Check, *, is_healthy: bool) -> Results:
    """Yields the health whenever enough consecutive probes agree."""
    needed = {True: probe.get("successThreshold", 1), False: probe.get("failureThreshold", 3)}
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    last, consecutive = is_healthy, 0
    while True:
        ends_s = time.monotonic() + probe.get("periodSeconds", 10)
        is_success = await _check_once(probe, check)
        while not is_success and not is_healthy and time.monotonic() + RETRY_S < ends_s:
            await asyncio.sleep(RETRY_S)
            is_success = await _check_once(probe, check)
        consecutive = consecutive + 1 if is_success == last else 1
        last = is_success
        if consecutive == needed[is_success]:
            is_healthy = is_success
            yield is_healthy
        await asyncio.sleep(ends_s - time.monotonic())


async def run_handler(
    handler: Manifest, address: str, ports: Mapping[str, int], execute: Execute
) -> bool:
    """Run the handler of a probe or hook once; return whether it succeeded."""
    if "exec" in handler:
        return await execute(handler["exec"]["command"]) == 0
    if "sleep" in handler:
        await asyncio.sleep(handler["sleep"]["seconds"])
        return True
    target = handler.get("httpGet") or handler.get("tcpSocket")
    assert target is not None, f"unsupported handler {handler}"
    host = target.get("host") or address
    port = target["port"] if isinstance(target["port"], int) else ports[target["port"]]
    try:
        if "httpGet" in handler:
            return 200 <= await _status(host, port, target) < 400
        _, writer = await asyncio.open_connection(host, port)
    except (OSError, ValueError, IndexError):
        return False
    writer.close()
    return True


async def _check_once(probe: Manifest, check: Check) -> bool:
    try:
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            return await check()
    except TimeoutError:
        return False


async def _status(host: str, port: int, target: Manifest) -> int:
    tls = ssl._create_unverified_context() if target.get("scheme") == "HTTPS" else None  # noqa: S323
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        headers = {"Host": f"{host}:{port}", "Connection": "close", "User-Agent": "kube-probe/1"}
        headers |= {each["name"]: each["value"] for each in target.get("httpHeaders", ())}
        lines = [
            f"GET {target.get('path', '/')} HTTP/1.1",
            *(f"{k}: {headers[k]}" for k in headers),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
