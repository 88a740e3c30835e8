"""`kafscale up`: all processes start and stop together."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

from services.console import PASSWORD, USERNAME, ConsoleClient
from services.process import free_port
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)


class Up:
    def __init__(self, directory: Path, **settings: str) -> None:
        ports = [free_port() for _ in range(4)]
        self.kafka, self.metrics, _control, self.console = ports
        names = (
            "KAFSCALE_BROKER_PORT",
            "KAFSCALE_BROKER_METRICS_PORT",
            "KAFSCALE_BROKER_CONTROL_PORT",
            "KAFSCALE_UI_PORT",
        )
        clean = {name: text for name, text in os.environ.items() if not name.startswith("KAFSCALE")}
        self.log = directory / "up.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(  # noqa: S603 - the command is our own.
                [Path(sys.executable).with_name("kafscale"), "up"],
                cwd=directory,
                env=clean | dict(zip(names, map(str, ports), strict=True)) | settings,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)

    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        wait_until(
            lambda: text in self.output() or self.process.poll() is not None, text, seen=self.output
        )
        assert text in self.output(), self.output()

    def children(self) -> dict[str, int]:
        listed = subprocess.run(  # noqa: S603
            ["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
        rows = [line.split() for line in listed.stdout.splitlines()]
        return {row[-1]: int(row[0]) for row in rows}


def has_exited(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return False


def test_up_prints_addresses_and_stops_on_ctrl_c(tmp_path):
    login = {"KAFSCALE_UI_USERNAME": USERNAME, "KAFSCALE_UI_PASSWORD": PASSWORD}
    with Up(tmp_path, **login) as up:
        up.wait_for("Ctrl-C")
        output = up.output()
        assert f"localhost:{up.kafka}\n" in output
        assert f"KAFSCALE_BROKER_ADDR=:{up.kafka} opens it to others" in output
        assert f"http://localhost:{up.metrics}/metrics" in output
        assert f"http://127.0.0.1:{up.console}" in output
        assert f"as {USERNAME}" in output
        assert PASSWORD not in output
        console_client = ConsoleClient(up.console)
        assert console_client.sign_in().status == 200
        assert console_client.get("/users")["problem"] is None, "the console has found the broker"
        children = up.children()
        assert set(children) == {"broker", "console"}
        os.killpg(up.process.pid, signal.SIGINT)  # As a terminal does.
        assert up.process.wait(60) == 0, up.output()
        assert all(map(has_exited, children.values()))
        assert (tmp_path / "kafscale-data").is_dir()


@pytest.mark.long
def test_up_says_how_to_enable_login(tmp_path):
    with Up(tmp_path) as up:
        up.wait_for("Ctrl-C")
        assert "KAFSCALE_UI_USERNAME" in up.output()
        assert not ConsoleClient(up.console).get("/session")["isConfigured"]


@pytest.mark.parametrize("stopped", ["broker", "console"])
def test_all_processes_end_when_one_ends(tmp_path, stopped):
    with Up(tmp_path) as up:
        up.wait_for("Ctrl-C")
        children = up.children()
        os.kill(children[stopped], signal.SIGKILL)
        assert up.process.wait(60) == 128 + signal.SIGKILL, up.output()
        assert all(map(has_exited, children.values()))


@pytest.mark.long
def test_failed_start_is_reported_and_leaves_no_process(tmp_path):
    with Up(tmp_path) as first:
        first.wait_for("Ctrl-C")
        other = tmp_path / "other"
        other.mkdir()
        with Up(other, KAFSCALE_UI_PORT=str(first.console)) as second:
            assert second.process.wait(60) == 1
            assert "KAFSCALE_UI_PORT" in second.output()
            assert "Traceback" not in second.output()
            assert second.children() == {}
