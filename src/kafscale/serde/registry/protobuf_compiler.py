"""Compiles Protobuf source with the protoc of grpcio-tools, if it is installed.

Invariant: files are written only inside a temporary directory, whatever the names of imports are.
protoc runs as a process, so that its errors can be captured.
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
    """Compile a source and its imports, by name, to an encoded FileDescriptorSet."""
    if importlib.util.find_spec("grpc_tools") is None:
        raise ConfigError(
            "Protobuf source needs grpcio-tools: install it, or give the descriptors that protoc "
            "writes with --include_imports --descriptor_set_out"
        )
    with TemporaryDirectory(prefix="kafscale-proto-") as directory:
        root = Path(directory, "in")
        files = {_safe_path(name): content for name, content in (imports or {}).items()}
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
        completed = subprocess.run(  # noqa: S603 - the arguments are ours.
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"protoc timed out after {_TIMEOUT_SECONDS} s") from error
    if completed.returncode:
        message = completed.stderr.replace(f"{root}/", "").strip()
        raise ConfigError(f"cannot compile the Protobuf definitions: {message}")


def _safe_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or path.parts == (MAIN_FILE,):
        raise ConfigError(f"invalid name of a Protobuf file: {name!r}")
    return path
