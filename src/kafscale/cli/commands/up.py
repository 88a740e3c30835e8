"""`kafscale up`: run a broker and the web console as child processes.

When one child ends, the other is stopped, and the command exits with the code of the first.
SIGTERM and Ctrl-C stop the console first, then the broker.
"""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from kafscale.cli.commands.config import ConfigFile, child_environment, load_config
from kafscale.cli.output import print_line
from kafscale.config import Config
from kafscale.config.model import BY_PATH, DEFAULT
from kafscale.errors import KafscaleError
from kafscale.net.address import ANY_ADDRESSES, is_loopback, parse

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 40.0
LISTENING: Final = " listening on "
"""Part of the line that a child prints when it accepts connections."""


def up(config: ConfigFile = None) -> None:
    """Run a broker and the web console on this machine until Ctrl-C.

    Only warnings and errors are logged; set KAFSCALE_LOG_LEVEL=info to see more.
    """
    code = asyncio.run(_run(load_config(config), config))
    if code:
        raise typer.Exit(code)


async def _run(config: Config, file: Path | None) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    children: list[Process] = []
    stopping = asyncio.create_task(stop.wait())
    serving = asyncio.create_task(_serve(config, file, children))
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return serving.result() if serving.done() else 0
    finally:
        for task in (serving, stopping):
            task.cancel()
        await asyncio.gather(serving, stopping, return_exceptions=True)
        await _stop(children)


async def _serve(config: Config, file: Path | None, children: list[Process]) -> int:
    """Start both, print their addresses, and return the exit code of the first that ends."""
    logs = {"logging.level": "warn", "logging.format": "text"}
    kafka = _local_address(await _start_child("broker", file, _unset(config, logs), children))
    servers = {
        "client.bootstrapServers": kafka,
        "client.controlServers": f"localhost:{config.broker.control_port}",
    }
    console = await _start_child("console", file, _unset(config, logs | servers), children)
    for label, value in _summary(config, kafka, console):
        print_line((f"{label:<9}", "dim"), value)
    sys.stdout.flush()
    ends = [asyncio.create_task(child.wait()) for child in children]
    done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    code = done.pop().result()
    return code if code >= 0 else 128 - code  # The exit code that shells use for signals.


async def _start_child(
    command: str, file: Path | None, more: Mapping[str, str], children: list[Process]
) -> str:
    """Start a child, wait until it listens, and return its address."""
    options = ("--config", str(file)) if file else ()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kafscale",
        command,
        *options,
        env=child_environment(more),
        stdout=PIPE,
    )
    children.append(child)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            line = (await child.stdout.readline()).decode()
    except TimeoutError:
        line = ""
    if LISTENING not in line:
        raise KafscaleError(f"the {command} did not start; see its output above")
    return line.partition(LISTENING)[2].split()[0]


async def _stop(children: Sequence[Process]) -> None:
    """Stop the children that still run, in reverse order: the console, then the broker."""
    for child in reversed(children):
        if child.returncode is not None:
            continue
        child.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


def _unset(config: Config, values: Mapping[str, str]) -> dict[str, str]:
    """The values as environment variables, without those of settings that the user has set."""
    return {
        BY_PATH[path].variables[0]: value
        for path, value in values.items()
        if config.origin(path) == DEFAULT
    }


def _local_address(address: str) -> str:
    """The address for clients on this machine, also if the broker listens on all addresses."""
    host, port = parse(address)
    return f"localhost:{port}" if host in ANY_ADDRESSES or is_loopback(host) else address


def _summary(config: Config, kafka: str, console: str) -> list[tuple[str, str]]:
    port, ui = config.broker.metrics_port, config.ui
    lines = [("kafka", kafka)]
    if is_loopback(config.bind_address(config.broker.host)):
        address = f":{config.broker.port}"
        lines.append(("", f"this machine only; KAFSCALE_BROKER_ADDR={address} opens it to others"))
    lines += [("metrics", f"http://localhost:{port}/metrics"), ("console", console)]
    if ui.username and ui.password:
        lines.append(("log in", f"as {ui.username}"))
    else:
        lines += [
            ("log in", "disabled: set KAFSCALE_UI_USERNAME and KAFSCALE_UI_PASSWORD to enable"),
            ("", "logins to the console, then start again"),
        ]
    return [*lines, ("stop", "with Ctrl-C")]
