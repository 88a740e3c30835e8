"""Settings of topics: automatic creation and compression."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Choice, Integer


@dataclass(frozen=True, kw_only=True)
class Topics:
    """How topics come into being."""

    auto_create: bool = setting(True, Boolean(), variables=("KAFSCALE_AUTO_CREATE_TOPICS",))
    """Whether a topic is created when a client first names it and the client allows it. True, as in
    Kafka, so that a first try needs no preparation."""

    auto_create_partitions: int = setting(
        1, Integer(1, 10_000), variables=("KAFSCALE_AUTO_CREATE_PARTITIONS",)
    )
    """How many partitions such a topic gets. 1, as in Kafka: it keeps all records in one order."""


@dataclass(frozen=True, kw_only=True)
class Compression:
    """How segments are compressed."""

    type: str = setting("snappy", Choice(("none", "gzip", "snappy", "lz4", "zstd")))
    """How batches that arrive uncompressed are compressed when a segment is made; others stay as
    they came. `snappy` saves much of the space for little of the processor."""
