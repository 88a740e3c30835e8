"""Descriptions of APIs, for `kafscale protocol list` and docs/protocol.md."""

import inspect
import sys
from typing import Any

from kafscale.protocol.api import NEVER, Api


def versions(api: Api[Any, Any]) -> str:
    first, last = api.version_min, api.version_max
    return str(first) if first == last else f"{first} to {last}"


def flexible(api: Api[Any, Any]) -> str:
    return "never" if api.flexible_since == NEVER else str(api.flexible_since)


def purpose(api: Api[Any, Any]) -> str:
    """The first sentence of the module that declares the API."""
    first_line = documentation(api).partition("\n")[0]
    sentence = first_line.partition(": ")[2]
    return sentence[:1].upper() + sentence[1:]


def documentation(api: Api[Any, Any]) -> str:
    """The docstring of the module that declares the API."""
    return inspect.getdoc(sys.modules[api.request.__module__]) or ""
