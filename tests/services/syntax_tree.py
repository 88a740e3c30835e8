"""Syntax trees of source files."""

import ast
import gc
from pathlib import Path


def parse(path: Path) -> ast.Module:
    """Parse a file.

    CPython 3.11 raises SystemError if another thread parses code meanwhile. It changes threads only
    where the garbage collector runs Python code, so that is off.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        if was_enabled:
            gc.enable()
