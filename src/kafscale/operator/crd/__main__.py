"""Write what is made from the definitions into directories, as `make generate` does.

python -m kafscale.operator.crd --definitions DIRECTORY... --schemas DIRECTORY...
"""

from argparse import ArgumentParser
from pathlib import Path

from kafscale.operator.crd.rendering import rendered, rendered_schemas

parser = ArgumentParser(prog="python -m kafscale.operator.crd")
parser.add_argument("--definitions", nargs="*", type=Path, default=[], help="for the CRDs")
parser.add_argument("--schemas", nargs="*", type=Path, default=[], help="for editors' schemas")
wanted = parser.parse_args()

for directories, files in ((wanted.definitions, rendered()), (wanted.schemas, rendered_schemas())):
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
