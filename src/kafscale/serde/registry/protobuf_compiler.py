"""Definitions in Protobuf's language, compiled by protoc where grpcio-tools brings it.

The law: nothing is written outside of a directory of its own, whatever names the imports have. It
runs as a process, so that what protoc complains about can be said in an error, not on a terminal.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from kafscale.errors import ConfigError

MAIN_FILE: Final = "kafscale_value.proto"
_TIMEOUT_SECONDS: Final = 60


def compile_source(text: str, imports: Mapping[str, str] | None = None) -> bytes:
    """An encoded FileDescriptorSet of a text and of the texts that it imports, by their names."""
    if importlib.util.find_spec("grpc_tools") is None:
        raise ConfigError(
            "to read Protobuf definitions as text, install grpcio-tools; or give the descriptors "
            "that protoc writes with --include_imports --descriptor_set_out"
        )
    with TemporaryDirectory(prefix="kafscale-proto-") as directory:
        root = Path(directory, "in")
        files = {_inside(name): content for name, content in (imports or {}).items()}
        for name, content in (files | {PurePosixPath(MAIN_FILE): text}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        output = Path(directory, "out")
        _run(root, output)
        return output.read_bytes()


def _run(root: Path, output: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{root}",
        "--include_imports",
        f"--descriptor_set_out={output}",
        MAIN_FILE,
    ]
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours.
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"protoc takes more than {_TIMEOUT_SECONDS} s") from error
    if done.returncode:
        complaint = done.stderr.replace(f"{root}/", "").strip()
        raise ConfigError(f"the Protobuf definitions cannot be compiled: {complaint}")


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or path.parts == (MAIN_FILE,):
        raise ConfigError(f"no file of Protobuf definitions can be named {name!r}")
    return path
