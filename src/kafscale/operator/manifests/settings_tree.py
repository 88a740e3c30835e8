"""Settings as a tree of keys, as in a YAML file: merge, look up and list.

A key without a value is ignored, as in the file itself.
"""

from collections.abc import Iterator
from typing import Any

Tree = dict[str, Any]


def merge(base: Tree, overrides: Tree) -> Tree:
    """Both trees in a new one; `overrides` win.

    >>> merge({"s3": {"bucket": "a", "region": "b"}}, {"s3": {"region": "c"}, "etcd": None})
    {'s3': {'bucket': 'a', 'region': 'c'}}
    """
    result = dict(base)
    for key, value in overrides.items():
        existing = result.get(key)
        if isinstance(value, dict):
            result[key] = merge(existing if isinstance(existing, dict) else {}, value)
        elif value is not None:
            result[key] = value
    return result


def value_at(tree: Tree, path: str) -> Any:
    """The value at a path; None if there is none.

    >>> value_at({"s3": {"bucket": "a"}}, "s3.bucket"), value_at({"s3": "a"}, "s3.bucket")
    ('a', None)
    """
    value: Any = tree
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def paths(tree: Tree, prefix: str = "") -> Iterator[str]:
    """The path of every value.

    >>> list(paths({"s3": {"bucket": "a", "region": None}, "logging": {"level": "info"}}))
    ['s3.bucket', 'logging.level']
    """
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}"
