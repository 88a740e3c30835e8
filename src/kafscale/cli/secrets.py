"""Secrets of commands: from files and variables, never from arguments, which all users can see."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

_SECRET: Final = re.compile(
    r"(password|passphrase|secret|token|credential|jaas\.config|account[.-]key|key\.pem"
    r"|secret[.-](access[.-])?key)$",
    re.IGNORECASE,
)
"""How the properties of Kafka, librdkafka, Spark, Iceberg and Delta end whose values are secret."""


def refuse_secrets(option: str, pairs: Sequence[tuple[str, str]], place: str) -> None:
    """Raise an error if an option has the value of a secret property, which belongs to `place`."""
    for key, value in pairs:
        if value and _SECRET.search(key):
            raise typer.BadParameter(
                f"{key} is a secret, and every user of the machine can read the arguments of a"
                f" process; put it into {place}",
                param_hint=option,
            )


def read_secret(option: str, file: Path | None, variable: str) -> str:
    """The secret in a file, or else in an environment variable."""
    if file is None:
        return os.environ.get(variable, "")
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {file}: {error}", param_hint=option) from None
