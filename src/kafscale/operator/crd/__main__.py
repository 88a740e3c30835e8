"""`python -m kafscale.operator.crd DIRECTORY...`: write the definitions into directories."""

import sys
from pathlib import Path

from kafscale.operator.crd.rendering import rendered

for directory in map(Path, sys.argv[1:]):
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in rendered().items():
        (directory / name).write_text(text, encoding="utf-8")
