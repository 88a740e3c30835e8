"""The `kafscale` command for one server: in this process, or as a separate process."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from typer.testing import CliRunner

from kafscale.cli.main import app

COMMAND = Path(sys.executable).with_name("kafscale")
PRODUCE_S_MAX = 15


class Command(subprocess.Popen[str]):
    """A command as a process, which is killed when a test fails."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)  # type: ignore[arg-type]


class Shell:
    """Runs commands against one server."""

    def __init__(self, address: str, **settings: str) -> None:
        """`settings` are environment variables without their prefix: `log_level="warn"`."""
        variables = {"bootstrap_servers": address} | settings
        self._own = {f"KAFSCALE_{name.upper()}": value for name, value in variables.items()}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("KAFSCALE_")}
        self.environment = inherited | self._own

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command in this process, assert its exit code, and return its output."""
        others = dict.fromkeys(name for name in os.environ if name.startswith("KAFSCALE_"))
        result = CliRunner().invoke(app, arguments, env=others | self._own, prog_name="kafscale")
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    def produce(self, *arguments: str, lines: Iterable[str], code: int = 0) -> str:
        """Run `kafscale produce` with lines on standard input; return its error output."""
        done = subprocess.run(  # noqa: S603
            [COMMAND, "produce", *arguments],
            input="".join(f"{line}\n" for line in lines),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PRODUCE_S_MAX,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr

    def start(self, *arguments: str, output: Path | None = None) -> "Command":
        """Start a command as a process, with pipes, or with its output in a file."""
        if output is not None:
            with output.open("ab") as file:
                return Command(
                    [COMMAND, *arguments],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
        return Command(
            [COMMAND, *arguments],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
