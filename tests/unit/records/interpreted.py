"""Compiled modules as they run where there is no C compiler."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType


def interpreted(module: ModuleType) -> ModuleType:
    """Load the source of a module that may be compiled."""
    name = module.__name__.rpartition(".")[2]
    source = str(Path(module.__file__ or "").with_name(f"{name}.py"))
    loader = SourceFileLoader(f"interpreted_{name}", source)
    spec = importlib.util.spec_from_loader(loader.name, loader, origin=source)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded
