"""Topics and partitions, as groups know them."""

from collections.abc import Mapping

import msgspec

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by the id of their topic; no topic has an empty set."""


class TopicFacts(msgspec.Struct, frozen=True, gc=False):
    """What a group has to know of a topic."""

    name: str
    id: bytes
    partition_count: int
