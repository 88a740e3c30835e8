"""Settings as a tree of keys, the way a file has them: laid over each other, looked up and listed.

A key without a value says nothing here, as in the file itself.
"""

from collections.abc import Iterator
from typing import Any

Tree = dict[str, Any]


def merged(below: Tree, above: Tree) -> Tree:
    """Both trees in a new one; where both say something, `above` wins.

    >>> merged({"s3": {"bucket": "a", "region": "b"}}, {"s3": {"region": "c"}, "etcd": None})
    {'s3': {'bucket': 'a', 'region': 'c'}}
    """
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(value, dict):
            result[key] = merged(old if isinstance(old, dict) else {}, value)
        elif value is not None:
            result[key] = value
    return result


def value_at(tree: Tree, path: str) -> Any:
    """What a tree has at a path; None for nothing.

    >>> value_at({"s3": {"bucket": "a"}}, "s3.bucket"), value_at({"s3": "a"}, "s3.bucket")
    ('a', None)
    """
    found: Any = tree
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


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
