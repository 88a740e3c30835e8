"""Writes the generated files into directories, for `make generate`.

python -m kafscale.operator.crd --definitions DIRECTORY... --schemas DIRECTORY...
"""

from argparse import ArgumentParser
from pathlib import Path

from kafscale.operator.crd.rendering import render_definitions, render_schemas

parser = ArgumentParser(prog="python -m kafscale.operator.crd")
parser.add_argument(
    "--definitions", nargs="*", type=Path, default=[], help="directories for the CRDs"
)
parser.add_argument(
    "--schemas", nargs="*", type=Path, default=[], help="directories for JSON schemas"
)
arguments = parser.parse_args()

for directories, files in (
    (arguments.definitions, render_definitions()),
    (arguments.schemas, render_schemas()),
):
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
